"""TF-IDF weights of a text by the formula, term by term: the reference for those of the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from aggregator.analysis.features import FeatureModel, HashedModel, tf_weights
from aggregator.analysis.simhash import l2_normalize


def term_weights(
    model: FeatureModel | HashedModel, terms: Sequence[str] | Mapping[str, int]
) -> dict[str, float]:
    """Term -> TF-IDF weight in order of first occurrence, L2 norm 1."""
    counts = Counter(terms)
    if not counts:
        return {}
    idf = np.array([model.row_and_idf(term)[1] for term in counts])
    weights = l2_normalize(tf_weights(np.array(list(counts.values()))) * idf)
    return dict(zip(counts, weights.tolist(), strict=True))
