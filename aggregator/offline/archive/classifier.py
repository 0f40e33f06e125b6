"""Is a pair a copy, judged by all its figures together? Trained on articles whose groups are known (re-ranking).

A logistic regression over what the columns say of a pair, so that it costs no more than the rule of
``confirm.py`` and runs wherever that does. Nothing is shipped: what counts as a copy is in the labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.offline.archive.columns import Columns, columns_from_signatures
from aggregator.offline.archive.encode import Encoder, Encoding
from aggregator.offline.archive.join import find_candidates
from aggregator.offline.archive.pairs import Pairs, unpack_pairs
from aggregator.offline.archive.verify import PairOverlaps, estimate_overlaps

Floats = npt.NDArray[np.float64]
Weights = tuple[float, ...]  # one for each of ``features``, and the bias


def features(columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps) -> Floats:
    """(n, 5): containment, resemblance, ln(1 + shared), ratio of sizes, Hamming distance / 64 (two spaces: .5)."""
    a, b = unpack_pairs(pairs)
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) / 64
    distance = np.where(columns.space[a] == columns.space[b], distance, 0.5)
    shared = np.log1p(pair_overlaps.shared)
    return np.stack(
        [pair_overlaps.containment, pair_overlaps.resemblance, shared, pair_overlaps.size_ratio, distance],
        axis=1,
    )


def are_copies(weights: Weights, feature_rows: Floats) -> npt.NDArray[np.bool_]:
    """Which of ``features`` speak for a copy more than against it."""
    sums: npt.NDArray[np.float64] = feature_rows @ np.array(weights[:-1]) + weights[-1]
    return sums >= 0


def train(
    articles: Sequence[Article], labels: Sequence[str], encoding: Encoding, radius_bits: int
) -> Weights:
    """From the candidate pairs among labelled articles. Raises BadInput when they are all copies, or none is."""
    encoder = Encoder(encoding)
    columns = columns_from_signatures([encoder.encode(article) for article in articles])
    pairs = find_candidates(columns, np.arange(len(columns)), radius_bits)
    a, b = unpack_pairs(pairs)
    named = np.unique(np.array(labels), return_inverse=True)[1]
    same = named[a] == named[b]
    if same.all() or not same.any():
        raise InvalidInput(
            "The labelled articles need candidate pairs of one cluster and of two, to learn from."
        )
    return _fit_weights(features(columns, pairs, estimate_overlaps(columns, pairs)), same)


def _fit_weights(feature_rows: Floats, is_same: npt.NDArray[np.bool_]) -> Weights:
    """The weights of the figures as they are; they are scaled for the fit only."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit(feature_rows)
    model = LogisticRegression(max_iter=1_000).fit(scaled.transform(feature_rows), is_same)
    weights = model.coef_[0] / scaled.scale_
    return (*weights.tolist(), float(model.intercept_[0] - weights @ scaled.mean_))
