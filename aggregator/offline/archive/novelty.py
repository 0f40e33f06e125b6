"""Rules for similar texts with different news, for many pairs: changed figures and teasers.

Batch version of ``dedup/templates.py``. The rules on names need terms, which an archive's columns do not
have.
"""

from __future__ import annotations

import numpy as np

from aggregator.analysis.analyzer import SHORT_BELOW_WORDS
from aggregator.dedup.templates import (
    NEAR_COMPLETE_CONTAINMENT,
    SAME_LENGTH_RATIO,
    TEMPLATE_MAX_COMMON_FIGURES_RATIO,
    TEMPLATE_MIN_FIGURES,
    is_teaser_of,
)
from aggregator.dedup.verdict import Policy
from aggregator.offline.archive.arrays import Flags, Keys, Rows
from aggregator.offline.archive.char_ngrams import NGRAMS_PER_WORD_SHINGLE, STRONG_CONTAINMENT_EXPONENT
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, unpack_pairs
from aggregator.offline.archive.verify import PairOverlaps, count_common_keys, position_keys


def have_different_figures(
    columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps, policy: Policy
) -> Flags:
    """(n,) whether the figures of each pair show two articles.

    They do if one template is filled twice (``templates.same_template_other_figures``), or if the figures
    changed (``templates.figures_changed``) and the articles are short or the policy keeps updates.
    """
    a, b = unpack_pairs(pairs)
    first, second = columns.figure_count[a].astype(float), columns.figure_count[b].astype(float)
    common = count_common_keys(_figure_keys(columns, a), _figure_keys(columns, b), len(pairs))
    fewer = np.minimum(first, second)
    near_complete = np.where(
        columns.uses_char_ngrams[a] == 1,
        NEAR_COMPLETE_CONTAINMENT**STRONG_CONTAINMENT_EXPONENT,
        NEAR_COMPLETE_CONTAINMENT,
    )
    same_template = (
        (pair_overlaps.size_ratio >= SAME_LENGTH_RATIO)
        & (pair_overlaps.containment < near_complete)
        & (fewer >= TEMPLATE_MIN_FIGURES)
        & (common < TEMPLATE_MAX_COMMON_FIGURES_RATIO * fewer)
    )
    short = np.maximum(columns.words[a], columns.words[b]) < SHORT_BELOW_WORDS
    changed: Flags = same_template | ((short | policy.updates_are_new) & (common < fewer))
    return changed


def is_teaser_row(columns: Columns, row: int, longer_row: int) -> bool:
    """Whether ``row`` is a teaser of ``longer_row`` (``templates.is_teaser_of``)."""
    unit = NGRAMS_PER_WORD_SHINGLE if columns.uses_char_ngrams[row] else 1.0
    return is_teaser_of(float(columns.size[row]) / unit, float(columns.size[longer_row]) / unit)


def _figure_keys(columns: Columns, rows: Rows) -> Keys:
    return position_keys(columns.figure, columns.figure_end[rows], columns.figure_count[rows])
