"""Pair scorers by a transformer, as of Silcock et al. 2022, here from the weights of all-MiniLM-L6-v2.

bi-encoder              cosine of the vectors of two texts, 64 nearest articles of each; off the shelf
bi-encoder, fine-tuned  the same, trained on half of the labels (``encoder_training.py``)
re-ranking              the latter, with uncertain pairs decided by a cross-encoder (``cross_encoder.py``)

Extras ``minilm`` and ``neural``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from aggregator.domain import Article
from aggregator_archive import vectors
from aggregator_archive.vector_candidates import DEFAULT_LANG
from aggregator_lab.evaluation import cross_encoder
from aggregator_lab.evaluation.encoder_training import STEPS, fine_tune, load_weights, save_weights
from aggregator_lab.evaluation.scored_pairs import ScoredPairs
from aggregator_lab.extractors.minilm import Transformer, encode, load_transformer

# Files of a directory of trained weights.
BI_ENCODER, CROSS_ENCODER, THRESHOLD = "bi-encoder", "cross-encoder", "threshold"


def bi_encoder(articles: Sequence[Article]) -> ScoredPairs:
    """Cosine of sentence vectors, 64 nearest articles of each by faiss."""
    return _nearest(articles, load_transformer())


def fine_tuned_bi_encoder(articles: Sequence[Article], weights: Path) -> ScoredPairs:
    """As ``bi_encoder``, with the weights of ``train``."""
    return _nearest(articles, load_weights(weights / BI_ENCODER))


def reranked(articles: Sequence[Article], weights: Path) -> ScoredPairs:
    """As ``fine_tuned_bi_encoder``, with the verdict of the cross-encoder on the least certain pairs."""
    scored = fine_tuned_bi_encoder(articles, weights)
    threshold = float((weights / THRESHOLD).read_text())
    chosen = cross_encoder.uncertain(scored.score, threshold)
    texts = _texts(articles)
    pairs = [(texts[scored.a[at]], texts[scored.b[at]]) for at in chosen.tolist()]
    classifier = cross_encoder.load_weights(weights / CROSS_ENCODER)
    probability = cross_encoder.probabilities(classifier, pairs)
    return cross_encoder.rerank(scored, chosen, probability)


RERANKING = "re-ranking"
# Scorers that are trained on one half of the labels; they get the directory of its weights.
TRAINED_METHODS: Mapping[str, Callable[[Sequence[Article], Path], ScoredPairs]] = {
    "bi-encoder, fine-tuned": fine_tuned_bi_encoder,
    RERANKING: reranked,
}


def train(
    articles: Sequence[Article],
    labels: Sequence[str],
    weights: Path,
    *,
    rerank: bool = True,
    steps: int = STEPS,
) -> None:
    """Fine-tune the encoders on articles, with equal ``labels`` for copies, and write them to a directory.

    ``rerank``: also what ``reranked`` needs.
    """
    langs = [article.lang or DEFAULT_LANG for article in articles]
    trained = fine_tune(articles, labels, langs, steps)
    weights.mkdir()
    save_weights(trained, weights / BI_ENCODER)
    if not rerank:
        return
    rows = encode(trained, _texts(articles))
    classifier = cross_encoder.fine_tune(articles, labels, langs, rows, steps)
    save_weights(classifier, weights / CROSS_ENCODER)
    a, b, cosine = vectors.nearest_pairs(rows)
    same = np.array([labels[i] == labels[j] for i, j in zip(a.tolist(), b.tolist(), strict=True)], bool)
    (weights / THRESHOLD).write_text(str(cross_encoder.best_threshold(cosine, same)))


def _nearest(articles: Sequence[Article], transformer: Transformer) -> ScoredPairs:
    return ScoredPairs(*vectors.nearest_pairs(encode(transformer, _texts(articles))))


def _texts(articles: Sequence[Article]) -> list[str]:
    return [article.text or article.title for article in articles]
