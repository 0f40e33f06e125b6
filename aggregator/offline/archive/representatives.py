"""Which article stands for its group, and which rows leave the deduplicated copy?

A row leaves only when its text equals, or was confirmed to be a copy of, one that stays: a group may hold
articles that have nothing in common but a third one, and neither of those is lost. A story does not leave for its teaser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.encode import UNDATED
from aggregator.offline.archive.novelty import is_teaser_row
from aggregator.offline.archive.pairs import unpack_pairs
from aggregator.offline.archive.pipeline import DedupeResult

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RepresentativeChoice:
    """representative   (n,) int64: the row that stands for each row's group
    copy_of            (n,) int64: the row that stays in place of each row; itself when it stays
    """

    representative: Rows
    copy_of: Rows

    @property
    def is_kept(self) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = self.copy_of == np.arange(len(self.copy_of))
        return found


def choose_representatives(result: DedupeResult, preference: str) -> RepresentativeChoice:
    """``prefer``: earliest (undated last), longest or medoid (shares most with the others of its group)."""
    rank = _preference_ranks(result, preference)
    representative = _best_per_group(result.labels, rank)
    stand = _best_per_group(result.distinct_texts.first_row, rank)  # of equal texts the preferred one
    copy_of = stand.copy()
    order = _linked_rows_by_rank(result, rank)
    neighbours = _neighbor_lookup(result)
    gone: dict[int, int] = {}
    for row in order.tolist():
        for other in neighbours(row):
            if other in gone or rank[stand[other]] >= rank[stand[row]]:
                continue
            if not is_teaser_row(result.columns, other, row):
                gone[row] = int(stand[other])
                break
    if gone:
        replaced = np.arange(len(copy_of))
        replaced[np.fromiter(gone, np.int64)] = np.fromiter(gone.values(), np.int64)
        leaves = replaced[result.distinct_texts.first_row] != result.distinct_texts.first_row
        copy_of = np.where(leaves, replaced[result.distinct_texts.first_row], copy_of)
    return RepresentativeChoice(representative, copy_of)


def _preference_ranks(result: DedupeResult, preference: str) -> Rows:
    """(n,) 0 is preferred to all others."""
    columns, count = result.columns, len(result.columns)
    first_key = {"earliest": _earliest_first_key, "longest": _longest_first_key}.get(preference)
    key: npt.NDArray[np.generic] = first_key(columns) if first_key else -_total_resemblance(result)
    order = np.lexsort((np.arange(count), _earliest_first_key(columns), key))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return rank


def _earliest_first_key(columns: Columns) -> Rows:
    return np.where(columns.date_ms == UNDATED, np.iinfo(np.int64).max, columns.date_ms)


def _longest_first_key(columns: Columns) -> Rows:
    return -columns.words.astype(np.int64)


def _total_resemblance(result: DedupeResult) -> npt.NDArray[np.float64]:
    """How much each row resembles the others of its group, summed."""
    a, b = unpack_pairs(result.confirmed.pairs)
    same = result.labels[a] == result.labels[b]
    strength = np.where(same, result.confirmed.overlaps.resemblance, 0.0).astype(np.float64)
    count = len(result.columns)
    total = np.bincount(a, strength, count).astype(np.float64) + np.bincount(b, strength, count)
    found: npt.NDArray[np.float64] = total[result.distinct_texts.first_row]
    return found


def _best_per_group(groups: Rows, rank: Rows) -> Rows:
    """(n,) the row of lowest rank in each row's group."""
    best = np.full(len(groups), len(groups), np.int64)
    np.minimum.at(best, groups, rank)
    by_rank = np.empty(len(rank), np.int64)
    by_rank[rank] = np.arange(len(rank))
    found: Rows = by_rank[best[groups]]
    return found


def _linked_rows_by_rank(result: DedupeResult, rank: Rows) -> Rows:
    linked = np.unique(np.concatenate(unpack_pairs(result.confirmed.pairs)))
    stand = _best_per_group(result.distinct_texts.first_row, rank)
    found: Rows = linked[np.argsort(rank[stand[linked]])]
    return found


def _neighbor_lookup(result: DedupeResult) -> Callable[[int], list[int]]:
    """A function giving the rows linked to a row within its group."""
    a, b = unpack_pairs(result.confirmed.pairs)
    same = result.labels[a] == result.labels[b]
    source, target = np.r_[a[same], b[same]], np.r_[b[same], a[same]]
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    starts = np.searchsorted(source, np.arange(len(result.columns) + 1))

    def of(row: int) -> list[int]:
        found: list[int] = target[starts[row] : starts[row + 1]].tolist()
        return found

    return of
