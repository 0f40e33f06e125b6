"""Representatives of the groups, and the rows that are removed from the deduplicated copy.

A row is removed only if its text equals, or is a confirmed duplicate of, that of a kept row: articles of a
group may share nothing but a third one. It stays if it has news that the kept row lacks: a story after its
teaser, a page with a second report. It stays without a text, unless headlines are asked to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggregator.analysis.shingles import distinct
from aggregator_archive.arrays import Array, Flags, Floats, Rows, unpack_pairs
from aggregator_archive.encode import UNDATED
from aggregator_archive.job import Job
from aggregator_archive.pair_rule import PairRule
from aggregator_archive.pipeline import DedupeResult


@dataclass(frozen=True, slots=True, eq=False)
class RepresentativeChoice:
    """Representatives and removed rows.

    representative  (n,) the representative of each row's group
    copy_of         (n,) the row that is kept in place of each row; the row itself if it is kept
    """

    representative: Rows
    copy_of: Rows

    @property
    def is_kept(self) -> Flags:
        """(n,) whether each row is part of the deduplicated copy."""
        kept: Flags = self.copy_of == np.arange(len(self.copy_of))
        return kept


def choose_representatives(result: DedupeResult, job: Job) -> RepresentativeChoice:
    """Choose the representative of each group and the rows to remove.

    The earliest (undated last), the longest, or the medoid (largest total resemblance to its group).
    """
    rank = _preference_ranks(result, job.representative)
    representative = _best_per_group(result.labels, rank)
    first_row = result.distinct_texts.first_row
    preferred = _best_per_group(first_row, rank)  # among rows of equal text
    neighbors = _neighbor_lookup(result)
    rule = PairRule(result.columns, job.policy)
    replaced = np.arange(len(first_row))  # by the first row of a removed text
    linked = distinct(np.concatenate(unpack_pairs(result.confirmed.pairs)))
    for row in linked[np.argsort(rank[preferred[linked]])].tolist():
        others, undecided = neighbors(row)
        better = rank[preferred[others]] < rank[preferred[row]]
        for other, is_open in zip(others[better].tolist(), undecided[better].tolist(), strict=True):
            if replaced[other] != other or (is_open and not rule.is_copy(row, other)):
                continue
            if not rule.keeps(row, other):
                replaced[row] = preferred[other]
                break
    is_removed = replaced[first_row] != first_row
    copy_of = np.where(is_removed, replaced[first_row], preferred)
    if not job.by_headline:
        copy_of = np.where(result.columns.has_text, copy_of, np.arange(len(copy_of)))
    return RepresentativeChoice(representative, copy_of)


def _preference_ranks(result: DedupeResult, preference: str) -> Rows:
    """(n,) rank of each row, 0 for the most preferred; ties by date, then by row."""
    columns, count = result.columns, len(result.columns)
    age = np.where(columns.date_ms == UNDATED, np.iinfo(np.int64).max, columns.date_ms)
    keys: dict[str, Array] = {"earliest": age, "longest": -columns.words.astype(np.int64)}
    key = keys[preference] if preference in keys else -_total_resemblance(result)
    order = np.lexsort((np.arange(count), age, key))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return rank


def _total_resemblance(result: DedupeResult) -> Floats:
    """(n,) sum of the resemblance of each row to the others of its group."""
    a, b = unpack_pairs(result.confirmed.pairs)
    same = result.labels[a] == result.labels[b]
    strength = np.where(same, result.confirmed.overlaps.resemblance, 0.0).astype(np.float64)
    count = len(result.columns)
    total = np.bincount(a, strength, count).astype(np.float64) + np.bincount(b, strength, count)
    per_row: Floats = total[result.distinct_texts.first_row]
    return per_row


def _best_per_group(groups: Rows, rank: Rows) -> Rows:
    """(n,) the most preferred row of each row's group."""
    best = np.full(len(groups), len(groups), np.int64)
    np.minimum.at(best, groups, rank)
    by_rank = np.empty(len(rank), np.int64)
    by_rank[rank] = np.arange(len(rank))
    best_row: Rows = by_rank[best[groups]]
    return best_row


def _neighbor_lookup(result: DedupeResult) -> Callable[[int], tuple[Rows, Flags]]:
    """A function that returns the rows linked to a row within its group, and which pairs are undecided."""
    a, b = unpack_pairs(result.confirmed.pairs)
    same = result.labels[a] == result.labels[b]
    source, target = np.r_[a[same], b[same]], np.r_[b[same], a[same]]
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    undecided = np.tile(result.confirmed.undecided[same], 2)[order]
    starts = np.searchsorted(source, np.arange(len(result.columns) + 1))

    def neighbors_of(row: int) -> tuple[Rows, Flags]:
        own = slice(starts[row], starts[row + 1])
        return target[own], undecided[own]

    return neighbors_of
