"""Fine-tuning of the bi-encoder: contrastive, on pairs of copies, some minutes on one processor core.

    loss = cross entropy of the copy among all texts of the batch, by cosine / TEMPERATURE     (InfoNCE)

A batch has two texts each of up to ``BATCH_LABELS`` labels. Each is an article of the label, in half of
the cases with the noise of ``ocr_noise.NOISE_LEVELS``: pairs come from labeled copies and planted noise only.
Seeded, one thread.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from aggregator.domain import Article
from aggregator_lab.evaluation.ocr_noise import NOISE_LEVELS
from aggregator_lab.evaluation.print_noise import noisy_text
from aggregator_lab.extractors.minilm import Transformer, load_transformer, mean_states

STEPS = 30
BATCH_LABELS = 12
TRAINED_TOKENS = 128
LEARNING_RATE = 3e-5
TEMPERATURE = 0.05
NOISY_SHARE = 0.5
_SEED = 1


def training_pairs(
    articles: Sequence[Article], labels: Sequence[str], langs: Sequence[str], rng: random.Random
) -> list[tuple[str, str]]:
    """Return two texts each of up to ``BATCH_LABELS`` different labels."""
    by_label: dict[str, list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        by_label[label].append(row)

    def noisy(row: int) -> str:
        level, seed = rng.choice(NOISE_LEVELS), str(rng.random())
        return noisy_text(articles[row].text, articles, level, langs[row], seed)

    pairs = []
    for label in rng.sample(sorted(by_label), min(BATCH_LABELS, len(by_label))):
        first, second = rng.choices(by_label[label], k=2)
        pairs.append(
            (
                noisy(first) if rng.random() < NOISY_SHARE else articles[first].text,
                # A text and itself would teach nothing.
                noisy(second) if first == second or rng.random() < NOISY_SHARE else articles[second].text,
            )
        )
    return pairs


def fine_tune(
    articles: Sequence[Article], labels: Sequence[str], langs: Sequence[str], steps: int = STEPS
) -> Transformer:
    """Return the encoder trained on copies, articles with equal ``labels``.

    Raises ConfigurationError if the extra ``minilm`` is missing.
    """
    transformer = load_transformer()
    torch, model, _ = transformer
    torch.manual_seed(_SEED)  # of the dropout
    rng = random.Random(_SEED)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, steps)
    cross_entropy = torch.nn.functional.cross_entropy
    for _ in range(steps):
        pairs = training_pairs(articles, labels, langs, rng)
        firsts, seconds = (
            mean_states(transformer, texts, TRAINED_TOKENS) for texts in zip(*pairs, strict=True)
        )
        similarity = firsts @ seconds.T / TEMPERATURE
        own = torch.arange(len(pairs))
        loss = cross_entropy(similarity, own) + cross_entropy(similarity.T, own)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    return transformer


def save_weights(transformer: Transformer, file: Path) -> None:
    """Write the weights of a trained encoder."""
    transformer.torch.save(transformer.model.state_dict(), file)


def load_weights(file: Path) -> Transformer:
    """Return the encoder with the weights of ``save_weights``."""
    transformer = load_transformer()
    transformer.model.load_state_dict(transformer.torch.load(file, weights_only=True))
    return transformer
