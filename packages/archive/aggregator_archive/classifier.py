"""Pair classifier: logistic regression over the estimates of a pair, trained on labeled articles.

Its features come from the columns, so it costs no more than the rule of ``verify.py``. No weights are
shipped: the labels define what a duplicate is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.arrays import Flags, Floats
from aggregator_archive.columns import Columns, columns_from_signatures
from aggregator_archive.encode import Encoder, Encoding
from aggregator_archive.join import find_candidates
from aggregator_archive.pairs import Pairs, unpack_pairs
from aggregator_archive.verify import PairOverlaps, estimate_overlaps

Weights = tuple[float, ...]  # one per feature, then the bias


def features(columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps) -> Floats:
    """(n, 5): containment, resemblance, ln(1 + shared), size ratio, distance / 64 (two spaces: 0.5)."""
    a, b = unpack_pairs(pairs)
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) / 64
    distance = np.where(columns.space[a] == columns.space[b], distance, 0.5)
    shared = np.log1p(pair_overlaps.shared)
    return np.stack(
        [pair_overlaps.containment, pair_overlaps.resemblance, shared, pair_overlaps.size_ratio, distance],
        axis=1,
    )


def are_copies(weights: Weights, feature_rows: Floats) -> Flags:
    """Which pairs are duplicates with a probability of at least 0.5; ``feature_rows``: see ``features``."""
    sums: Floats = feature_rows @ np.array(weights[:-1]) + weights[-1]
    return sums >= 0


def train(
    articles: Sequence[Article], labels: Sequence[str], encoding: Encoding, radius_bits: int
) -> Weights:
    """Train on the candidate pairs among labeled articles; ``labels``: cluster of each article.

    Raises InvalidInput unless there are candidate pairs both within a cluster and across clusters.
    """
    encoder = Encoder(encoding)
    columns = columns_from_signatures([encoder.encode(article) for article in articles])
    pairs = find_candidates(columns, np.arange(len(columns)), radius_bits)
    a, b = unpack_pairs(pairs)
    cluster = np.unique(np.array(labels), return_inverse=True)[1]
    same = cluster[a] == cluster[b]
    if same.all() or not same.any():
        raise InvalidInput(
            "The labeled articles need similar pairs both within a cluster and across clusters, to train on."
        )
    return _fit_weights(features(columns, pairs, estimate_overlaps(columns, pairs)), same)


def _fit_weights(feature_rows: Floats, is_same: Flags) -> Weights:
    """Weights for unscaled features; they are standardized for the fit only."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit(feature_rows)
    model = LogisticRegression(max_iter=1_000).fit(scaled.transform(feature_rows), is_same)
    weights = model.coef_[0] / scaled.scale_
    return (*weights.tolist(), float(model.intercept_[0] - weights @ scaled.mean_))
