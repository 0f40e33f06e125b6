"""Pair scorers by a transformer: the bi-encoder of Silcock et al. 2022, here from all-MiniLM-L6-v2.

Off the shelf, and fine-tuned on the training half of the labels (``encoder_training.py``). Extras ``minilm``
and ``neural``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aggregator.analysis.extractors.minilm import Transformer, encode, load_transformer
from aggregator.domain import Article
from aggregator.offline.archive import vectors
from aggregator.offline.archive.vector_candidates import DEFAULT_LANG
from aggregator.offline.evaluation.encoder_training import fine_tune, load_weights, save_weights
from aggregator.offline.evaluation.scored_pairs import ScoredPairs


def bi_encoder(articles: Sequence[Article]) -> ScoredPairs:
    """Cosine of sentence vectors, 64 nearest articles of each by faiss."""
    return _nearest(articles, load_transformer())


def fine_tuned_bi_encoder(articles: Sequence[Article], weights: Path) -> ScoredPairs:
    """As ``bi_encoder``, with the weights of ``train``."""
    return _nearest(articles, load_weights(weights))


def train(articles: Sequence[Article], labels: Sequence[str], weights: Path) -> None:
    """Fine-tune the encoder on articles, with equal ``labels`` for copies, and write its weights."""
    langs = [article.lang or DEFAULT_LANG for article in articles]
    save_weights(fine_tune(articles, labels, langs), weights)


def _nearest(articles: Sequence[Article], transformer: Transformer) -> ScoredPairs:
    texts = [article.text or article.title for article in articles]
    return ScoredPairs(*vectors.nearest_pairs(encode(transformer, texts)))


# Scorers of a method that is trained on one half of the labels, whose file of weights they get.
TRAINED_METHODS: Mapping[str, Callable[[Sequence[Article], Path], ScoredPairs]] = {
    "bi-encoder, fine-tuned": fine_tuned_bi_encoder,
}
