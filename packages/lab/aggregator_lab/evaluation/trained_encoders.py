"""Fine-tuned transformers as pair scorers, after Silcock et al. 2022, from the weights of all-MiniLM-L6-v2.

    bi-encoder     loss = cross entropy of the copy among all texts of the batch, by cosine / TEMPERATURE
                   (InfoNCE)
    cross-encoder  one pass over both texts of a pair, trained on copies and on as many pairs of an article
                   and one of the nearest articles of another label

A pass of the cross-encoder costs as much as the vectors of two texts, so it decides only the
``RERANKED_PAIRS`` pairs with a cosine nearest to the threshold. A batch has two texts each of up to
``BATCH_LABELS`` labels; each is an article of the label, in half of the cases with print noise. Seeded, one
thread, some minutes on one core. Extras ``minilm`` and ``neural``.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.domain import Article
from aggregator_archive.arrays import Floats, Rows, batches
from aggregator_lab.evaluation import vectors
from aggregator_lab.evaluation.noise import NOISE_LEVELS, noisy_text
from aggregator_lab.evaluation.vectors import ScoredPairs, texts_of
from aggregator_lab.extractors.minilm import Transformer, encode, load_transformer, mean_states
from aggregator_lab.extractors.model import Features
from aggregator_lab.labeled import DEFAULT_LANG

STEPS = 30
BATCH_LABELS = 12
TRAINED_TOKENS = 128
PAIR_TOKENS = 192  # of both texts together
LEARNING_RATE = 3e-5
TEMPERATURE = 0.05
NOISY_SHARE = 0.5
HARD_NEGATIVES = 5
RERANKED_PAIRS = 400
MIN_PROBABILITY = 0.5
_PAIRS_PER_PASS = 16
_SEED = 1
_BI_ENCODER, _CROSS_ENCODER, _THRESHOLD = "bi-encoder", "cross-encoder", "threshold"  # files of ``train``

Texts = Sequence[tuple[str, str]]


def fine_tuned_bi_encoder(articles: Sequence[Article], weights: Path) -> ScoredPairs:
    """Cosine by the trained weights of ``train``, 64 nearest articles of each."""
    trained = _load_weights(weights / _BI_ENCODER, classifier=False)
    return ScoredPairs(*vectors.nearest_pairs(encode(trained, texts_of(articles))))


def reranked(articles: Sequence[Article], weights: Path) -> ScoredPairs:
    """As ``fine_tuned_bi_encoder``, with the verdict of the cross-encoder on the least certain pairs."""
    scored = fine_tuned_bi_encoder(articles, weights)
    chosen = uncertain(scored.score, float((weights / _THRESHOLD).read_text()))
    texts = texts_of(articles)
    pairs = [(texts[scored.a[at]], texts[scored.b[at]]) for at in chosen.tolist()]
    return rerank(
        scored, chosen, probabilities(_load_weights(weights / _CROSS_ENCODER, classifier=True), pairs)
    )


# Scorers that are trained on one half of the labels; they get the directory of its weights.
TRAINED_METHODS: Mapping[str, Callable[[Sequence[Article], Path], ScoredPairs]] = {
    "bi-encoder, fine-tuned": fine_tuned_bi_encoder,
    "re-ranking": reranked,
}


def train(articles: Sequence[Article], labels: Sequence[str], weights: Path, steps: int = STEPS) -> None:
    """Train both encoders on articles, copies with equal ``labels``, and write them to a new directory.

    Raises ConfigurationError if the extra ``minilm`` is missing.
    """
    weights.mkdir()
    trained = train_bi_encoder(articles, labels, steps)
    rows = encode(trained, texts_of(articles))
    classifier = train_cross_encoder(articles, labels, rows, steps)
    for transformer, name in ((trained, _BI_ENCODER), (classifier, _CROSS_ENCODER)):
        transformer.torch.save(transformer.model.state_dict(), weights / name)
    a, b, cosine = vectors.nearest_pairs(rows)
    same = np.array([labels[i] == labels[j] for i, j in zip(a.tolist(), b.tolist(), strict=True)], bool)
    (weights / _THRESHOLD).write_text(str(best_threshold(cosine, same)))


def training_pairs(
    articles: Sequence[Article], labels: Sequence[str], rng: random.Random
) -> list[tuple[str, str]]:
    """Two texts each of up to ``BATCH_LABELS`` different labels; never a text and itself."""
    by_label: dict[str, list[Article]] = defaultdict(list)
    for article, label in zip(articles, labels, strict=True):
        by_label[label].append(article)

    def noisy(article: Article) -> str:
        level, seed = rng.choice(NOISE_LEVELS), str(rng.random())
        return noisy_text(article.text, articles, level, article.lang or DEFAULT_LANG, seed)

    pairs = []
    for label in rng.sample(sorted(by_label), min(BATCH_LABELS, len(by_label))):
        first, second = rng.choices(by_label[label], k=2)
        left = noisy(first) if rng.random() < NOISY_SHARE else first.text
        right = noisy(second) if first is second or rng.random() < NOISY_SHARE else second.text
        pairs.append((left, right))
    return pairs


def train_bi_encoder(articles: Sequence[Article], labels: Sequence[str], steps: int) -> Transformer:
    """The encoder trained on copies."""
    transformer = load_transformer()
    torch, model, _ = transformer
    rng = random.Random(_SEED)

    def loss() -> Any:
        pairs = training_pairs(articles, labels, rng)
        firsts, seconds = (
            mean_states(transformer, texts, TRAINED_TOKENS) for texts in zip(*pairs, strict=True)
        )
        similarity = firsts @ seconds.T / TEMPERATURE
        own = torch.arange(len(pairs))
        cross_entropy = torch.nn.functional.cross_entropy
        return cross_entropy(similarity, own) + cross_entropy(similarity.T, own)

    _descend(torch, model, loss, steps, last_rate=0.1)
    return transformer


def train_cross_encoder(
    articles: Sequence[Article], labels: Sequence[str], rows: Features, steps: int
) -> Transformer:
    """A classifier of pairs; ``rows``: (n, d) vectors of the articles, of L2 norm 1."""
    transformer = load_transformer(classifier=True)
    torch, model, _ = transformer
    rng = random.Random(_SEED)
    negatives = hard_negatives(rows, labels)

    def loss() -> Any:
        copies = training_pairs(articles, labels, rng)
        chosen = [rng.randrange(len(articles)) for _ in copies]
        others = [(articles[row].text, articles[rng.choice(negatives[row].tolist())].text) for row in chosen]
        truth = torch.tensor([1.0] * len(copies) + [0.0] * len(others))
        return torch.nn.functional.binary_cross_entropy_with_logits(
            _logits(transformer, [*copies, *others]), truth
        )

    _descend(torch, model, loss, steps)
    return transformer


def hard_negatives(rows: Features, labels: Sequence[str]) -> Rows:
    """(n, k) rows of the nearest articles of other labels, k <= ``HARD_NEGATIVES``; two labels or more."""
    numbers = np.unique(np.array(labels), return_inverse=True)[1]
    same = numbers[:, None] == numbers[None]
    cosines = np.where(same, -np.inf, rows @ rows.T)
    others = min(HARD_NEGATIVES, int((~same).sum(axis=1).min()))
    nearest: Rows = np.argsort(-cosines, axis=1, kind="stable")[:, :others]
    return nearest


def probabilities(transformer: Transformer, pairs: Texts) -> Floats:
    """(n,) probabilities that the texts of a pair are copies."""
    result = np.zeros(len(pairs))
    for batch in batches(len(pairs), _PAIRS_PER_PASS):
        with transformer.torch.inference_mode():
            result[batch] = _logits(transformer, pairs[batch]).sigmoid().numpy()
    return result


def uncertain(cosine: Floats, threshold: float) -> Rows:
    """Positions of at most ``RERANKED_PAIRS`` cosines nearest to ``threshold``, ascending."""
    return np.sort(np.argsort(np.abs(cosine - threshold), kind="stable")[:RERANKED_PAIRS])


def rerank(scored: ScoredPairs, chosen: Rows, probability: Floats) -> ScoredPairs:
    """The pairs with other scores of the ``chosen`` ones: 1 for a probability from 0.5 on, else 0.

    Scores that stay near the threshold would not count: the thresholds that are tried are further apart.
    """
    score = scored.score.copy()
    score[chosen] = probability >= MIN_PROBABILITY
    return ScoredPairs(scored.a, scored.b, score)


def best_threshold(score: Floats, same: npt.NDArray[np.bool_]) -> float:
    """The score from which on pairs have the highest F1; 1 without pairs of copies."""
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(same[order])
    if not len(hits) or not hits[-1]:
        return 1.0
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    return float(score[order[int(f1.argmax())]])


def _descend(torch: Any, model: Any, loss: Callable[[], Any], steps: int, last_rate: float = 1.0) -> None:
    """Minimize ``loss`` by AdamW; the rate falls to ``last_rate`` of the first one. Dropout is seeded."""
    torch.manual_seed(_SEED)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, last_rate, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedule.step()
    model.eval()


def _logits(transformer: Transformer, pairs: Texts) -> Any:
    """The tensor (n,) of one batch, above 0 for copies."""
    tokens = transformer.tokenizer(
        *(list(texts) for texts in zip(*pairs, strict=True)),
        padding=True,
        truncation=True,
        max_length=PAIR_TOKENS,
        return_tensors="pt",
    )
    return transformer.model(**tokens).logits.squeeze(1)


def _load_weights(file: Path, *, classifier: bool) -> Transformer:
    transformer = load_transformer(classifier=classifier)
    transformer.model.load_state_dict(transformer.torch.load(file, weights_only=True))
    return transformer
