"""Cross-encoder: one transformer pass over both texts of a pair, and the re-ranking of uncertain pairs by it.

The classifier starts from the weights of all-MiniLM-L6-v2 and is fine-tuned on pairs of copies, as the
bi-encoder is (``encoder_training.py``), and on as many pairs of an article and one of the nearest articles of
another label. A pass costs as much as the vectors of two texts. Therefore only the ``RERANKED_PAIRS`` pairs
with a cosine nearest to the threshold are passed through it: those that the bi-encoder is least certain of.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.analysis.extractors.contract import Features
from aggregator.domain import Article
from aggregator_archive.arrays import Floats, Rows, batches
from aggregator_lab.evaluation.encoder_training import LEARNING_RATE, STEPS, training_pairs
from aggregator_lab.evaluation.scored_pairs import ScoredPairs
from aggregator_lab.extractors.minilm import Transformer, load_transformer

PAIR_TOKENS = 192  # of both texts together
RERANKED_PAIRS = 400
HARD_NEGATIVES = 5
MIN_PROBABILITY = 0.5
_PAIRS_PER_PASS = 16
_SEED = 1

Texts = Sequence[tuple[str, str]]


def hard_negatives(vectors: Features, labels: Sequence[str]) -> Rows:
    """Return (n, k) rows of the nearest articles of other labels, k at most ``HARD_NEGATIVES``.

    ``vectors``: (n, d) of L2 norm 1; at least two labels.
    """
    numbers = np.unique(np.array(labels), return_inverse=True)[1]
    same = numbers[:, None] == numbers[None]
    cosines = np.where(same, -np.inf, vectors @ vectors.T)
    others = min(HARD_NEGATIVES, int((~same).sum(axis=1).min()))
    nearest: Rows = np.argsort(-cosines, axis=1, kind="stable")[:, :others]
    return nearest


def fine_tune(
    articles: Sequence[Article],
    labels: Sequence[str],
    langs: Sequence[str],
    vectors: Features,
    steps: int = STEPS,
) -> Transformer:
    """Return a classifier trained on copies, articles with equal ``labels``; ``vectors`` as above.

    Raises ConfigurationError if the extra ``minilm`` is missing.
    """
    transformer = load_transformer(classifier=True)
    torch, model, _ = transformer
    torch.manual_seed(_SEED)
    rng = random.Random(_SEED)
    negatives = hard_negatives(vectors, labels)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        copies = training_pairs(articles, labels, langs, rng)
        rows = [rng.randrange(len(articles)) for _ in copies]
        others = [(articles[row].text, articles[rng.choice(negatives[row].tolist())].text) for row in rows]
        truth = torch.tensor([1.0] * len(copies) + [0.0] * len(others))
        sums = _logits(transformer, [*copies, *others])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(sums, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    return transformer


def load_weights(file: Path) -> Transformer:
    """Return the classifier with the weights of ``encoder_training.save_weights``."""
    transformer = load_transformer(classifier=True)
    transformer.model.load_state_dict(transformer.torch.load(file, weights_only=True))
    return transformer


def probabilities(transformer: Transformer, pairs: Texts) -> Floats:
    """Return (n,) probabilities that the texts of a pair are copies."""
    result = np.zeros(len(pairs))
    for batch in batches(len(pairs), _PAIRS_PER_PASS):
        with transformer.torch.inference_mode():
            result[batch] = _logits(transformer, pairs[batch]).sigmoid().numpy()
    return result


def uncertain(cosine: Floats, threshold: float) -> Rows:
    """Return the positions of at most ``RERANKED_PAIRS`` cosines nearest to ``threshold``, ascending."""
    return np.sort(np.argsort(np.abs(cosine - threshold), kind="stable")[:RERANKED_PAIRS])


def rerank(scored: ScoredPairs, chosen: Rows, probability: Floats) -> ScoredPairs:
    """Return the pairs with other scores of the ``chosen`` ones: 1 for a probability from 0.5 on, else 0.

    Scores that stay near the threshold would not count: the thresholds that are tried are further apart.
    """
    score = scored.score.copy()
    score[chosen] = probability >= MIN_PROBABILITY
    return ScoredPairs(scored.a, scored.b, score)


def best_threshold(score: Floats, same: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return the score from which on pairs have the highest F1; 1 without pairs of copies."""
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(same[order])
    if not len(hits) or not hits[-1]:
        return 1.0
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    return float(score[order[int(f1.argmax())]])


def _logits(transformer: Transformer, pairs: Texts) -> Any:
    """Return the tensor (n,) of one batch, above 0 for copies."""
    firsts, seconds = zip(*pairs, strict=True)
    tokens = transformer.tokenizer(
        list(firsts),
        list(seconds),
        padding=True,
        truncation=True,
        max_length=PAIR_TOKENS,
        return_tensors="pt",
    )
    return transformer.model(**tokens).logits.squeeze(1)
