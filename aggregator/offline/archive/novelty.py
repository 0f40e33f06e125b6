"""Which articles that share their wording tell different news? The rules of ``frames.py``, for many pairs at once.

Those on figures and on teasers; those on names ask for terms, which an archive's columns do not have.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aggregator.analysis.analyzer import SHORT_BELOW_WORDS
from aggregator.dedup.templates import (
    NEAR_COMPLETE_CONTAINMENT,
    SAME_LENGTH_RATIO,
    TEMPLATE_MAX_COMMON_FIGURES_RATIO,
    TEMPLATE_MIN_FIGURES,
    is_teaser_of,
)
from aggregator.dedup.verdict import Policy
from aggregator.offline.archive.char_ngrams import NGRAMS_PER_WORD_SHINGLE, STRONG_CONTAINMENT_EXPONENT
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, unpack_pairs
from aggregator.offline.archive.verify import PairOverlaps, count_common_keys, position_keys

Flags = npt.NDArray[np.bool_]


def have_different_figures(
    columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps, policy: Policy
) -> Flags:
    """(n,) Are the figures of each pair those of two articles: one frame twice, two flashes, an update to be kept?

    ``frames.refilled``, and what ``verdict.news`` says of figures.
    """
    a, b = unpack_pairs(pairs)
    first, second = columns.figured[a].astype(float), columns.figured[b].astype(float)
    common = count_common_keys(_figure_keys(columns, a), _figure_keys(columns, b), len(pairs))
    fewer = np.minimum(first, second)
    lettered = columns.lettered[a] == 1
    refilled = (
        (pair_overlaps.size_ratio >= SAME_LENGTH_RATIO)
        & (
            pair_overlaps.containment
            < np.where(
                lettered, NEAR_COMPLETE_CONTAINMENT**STRONG_CONTAINMENT_EXPONENT, NEAR_COMPLETE_CONTAINMENT
            )
        )
        & (fewer >= TEMPLATE_MIN_FIGURES)
        & (common < TEMPLATE_MAX_COMMON_FIGURES_RATIO * fewer)
    )
    short = np.maximum(columns.words[a], columns.words[b]) < SHORT_BELOW_WORDS
    kept = short | policy.updates_are_new
    told: Flags = refilled | (kept & (common < fewer))
    return told


def is_teaser_row(columns: Columns, row: int, longer_row: int) -> bool:
    """``frames.announces`` of two rows."""
    unit = NGRAMS_PER_WORD_SHINGLE if columns.lettered[row] else 1.0
    return is_teaser_of(float(columns.size[row]) / unit, float(columns.size[longer_row]) / unit)


def _figure_keys(columns: Columns, rows: Rows) -> npt.NDArray[np.uint64]:
    return position_keys(columns.figure, columns.figure_end[rows], columns.figured[rows])
