"""How similar must two texts be, given their titles? ``titled.py`` for many pairs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aggregator.titled import required_similarity, title_similarity

Rows = npt.NDArray[np.int64]


def required_similarities(titles: Sequence[tuple[str, str]], a: Rows, b: Rows) -> npt.NDArray[np.float64]:
    """(n,) the least cosine of each pair of rows; ``titles``: title and language of each row."""
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    found = (required_similarity(title_similarity(*titles[one], *titles[other])) for one, other in pairs)
    return np.fromiter(found, np.float64, len(a))
