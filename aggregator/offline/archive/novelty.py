"""Which articles that share their wording tell different news? The rules of ``frames.py``, for many pairs at once.

Those on figures and on teasers; those on names ask for terms, which an archive's columns do not have.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aggregator.analysis.analyzer import SHORT_WORDS
from aggregator.dedup.templates import FRAME_FIGURES, FRAMED_RATIO, KEPT_FIGURES, WHOLE, announces
from aggregator.dedup.verdict import Policy
from aggregator.offline.archive.char_ngrams import RUNS_PER_WORD, SURE_CONTAINMENT_POWER
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, rows_of
from aggregator.offline.archive.verify import Overlaps, common_of, keyed

Flags = npt.NDArray[np.bool_]


def other_figures(columns: Columns, pairs: Pairs, found: Overlaps, policy: Policy) -> Flags:
    """(n,) Are the figures of each pair those of two articles: one frame twice, two flashes, an update to be kept?

    ``frames.refilled``, and what ``verdict.news`` says of figures.
    """
    a, b = rows_of(pairs)
    first, second = columns.figured[a].astype(float), columns.figured[b].astype(float)
    common = common_of(_figures(columns, a), _figures(columns, b), len(pairs))
    fewer = np.minimum(first, second)
    lettered = columns.lettered[a] == 1
    refilled = (
        (found.size_ratio >= FRAMED_RATIO)
        & (found.containment < np.where(lettered, WHOLE**SURE_CONTAINMENT_POWER, WHOLE))
        & (fewer >= FRAME_FIGURES)
        & (common < KEPT_FIGURES * fewer)
    )
    short = np.maximum(columns.words[a], columns.words[b]) < SHORT_WORDS
    kept = short | policy.keep_updates
    told: Flags = refilled | (kept & (common < fewer))
    return told


def only_announces(columns: Columns, row: int, longer: int) -> bool:
    """``frames.announces`` of two rows."""
    unit = RUNS_PER_WORD if columns.lettered[row] else 1.0
    return announces(float(columns.size[row]) / unit, float(columns.size[longer]) / unit)


def _figures(columns: Columns, rows: Rows) -> npt.NDArray[np.uint64]:
    return keyed(columns.figure, columns.figure_end[rows], columns.figured[rows])
