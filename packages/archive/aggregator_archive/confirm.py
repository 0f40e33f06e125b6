"""Confirmation of candidates: which pairs are copies by the method's rule, with their estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.dedup.policy import Policy
from aggregator_archive.arrays import Array
from aggregator_archive.checkpoint import save_once
from aggregator_archive.columns import Columns, DistinctTexts, open_columns
from aggregator_archive.group_confirmation import confirmed_by_groups
from aggregator_archive.job import Method
from aggregator_archive.pair_rule import COPY, SHARES_ENOUGH, PairRule, order_by_arrival
from aggregator_archive.pairs import Pairs, unpack_pairs
from aggregator_archive.verify import OVERLAP_FIELDS, PairOverlaps, estimate_overlaps

PAIRS_PER_TASK = 1 << 18
MIN_WEAK_RESEMBLANCE = 0.01
DIFFERENT_SPACES = 255  # in place of the distance of fingerprints that are not comparable
_PAIR_FIELDS = ("pairs", "distance", "sharing", "weak", "weak_resemblance")  # of a file, with OVERLAP_FIELDS


@dataclass(frozen=True, slots=True, eq=False)
class ConfirmedPairs:
    """Pairs that passed verification, ascending, with their estimates; and weak pairs, which did not pass."""

    pairs: Pairs
    overlaps: PairOverlaps
    distance: npt.NDArray[np.uint8]  # Hamming distance, 0 to 64; DIFFERENT_SPACES if not comparable
    sharing: Pairs  # failed pairs that a second outlet can confirm (``pair_rule.SHARES_ENOUGH``)
    weak: Pairs  # failed pairs with a resemblance of at least MIN_WEAK_RESEMBLANCE
    weak_resemblance: npt.NDArray[np.float32]


def confirm_to_file(directory: str, pairs: Pairs, method: Method, policy: Policy, out: str) -> None:
    """Verify candidates of the columns in ``directory``; writes the file ``out``, unless it exists."""

    def compute() -> dict[str, Array]:
        confirmed = confirm_pairs(open_columns(Path(directory)), pairs, method, policy)
        arrays = {name: getattr(confirmed, name) for name in _PAIR_FIELDS}
        overlaps = {name: getattr(confirmed.overlaps, name).astype(np.float32) for name in OVERLAP_FIELDS}
        return arrays | overlaps

    save_once(Path(out), compute)


def confirm_pairs(columns: Columns, pairs: Pairs, method: Method, policy: Policy) -> ConfirmedPairs:
    """The pairs that are duplicates by the method's rule, with their estimates."""
    overlaps = estimate_overlaps(columns, pairs)
    decisions = _decide_pairs(columns, pairs, overlaps, method, policy)
    kept = decisions == COPY
    weak = ~kept & (overlaps.resemblance >= MIN_WEAK_RESEMBLANCE)
    return ConfirmedPairs(
        pairs[kept],
        overlaps.select(kept),
        _distances(columns, pairs[kept]),
        pairs[decisions == SHARES_ENOUGH],
        pairs[weak],
        overlaps.resemblance[weak].astype(np.float32),
    )


def _decide_pairs(
    columns: Columns, pairs: Pairs, pair_overlaps: PairOverlaps, method: Method, policy: Policy
) -> npt.NDArray[np.uint8]:
    """(n,) the decision on each pair (``pair_rule.py``)."""
    if method.verify == "containment":
        return PairRule(columns, policy).decide(pairs, pair_overlaps.containment)
    return np.full(len(pairs), COPY, np.uint8)


def _distances(columns: Columns, pairs: Pairs) -> npt.NDArray[np.uint8]:
    a, b = unpack_pairs(pairs)
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b])
    return np.where(columns.space[a] == columns.space[b], distance, DIFFERENT_SPACES).astype(np.uint8)


def slices_by_later_article(columns: Columns, pairs: Pairs) -> tuple[Pairs, list[int]]:
    """The pairs ordered by their later article, and the ends of slices of about ``PAIRS_PER_TASK``.

    No slice ends between two pairs of one later article: its boilerplate is estimated from all of them.
    """
    later = order_by_arrival(columns, pairs)[1]
    order = np.argsort(later, kind="stable")
    later = later[order]
    last = later[np.arange(PAIRS_PER_TASK - 1, len(later), PAIRS_PER_TASK)]
    ends = np.searchsorted(later, last, side="right").tolist()
    return pairs[order], sorted({*ends, len(later)} - {0})


def collect_confirmed(
    columns: Columns, distinct_texts: DistinctTexts, files: Sequence[Path]
) -> ConfirmedPairs:
    """The confirmed pairs of all files of ``confirm_to_file``, and those that other pairs confirm."""
    confirmed = _concatenate_parts([np.load(file) for file in files])
    return _confirm_by_groups(columns, distinct_texts, confirmed)


def _confirm_by_groups(
    columns: Columns, distinct_texts: DistinctTexts, confirmed: ConfirmedPairs
) -> ConfirmedPairs:
    """The confirmed pairs, and those that copies of a second outlet confirm."""
    added = confirmed_by_groups(columns, distinct_texts.first_row, confirmed.pairs, confirmed.sharing)
    if not len(added):
        return confirmed
    overlaps = estimate_overlaps(columns, added)
    pairs = np.concatenate([confirmed.pairs, added])
    distance = np.concatenate([confirmed.distance, _distances(columns, added)])
    order = np.argsort(pairs)
    still_weak = ~np.isin(confirmed.weak, added)
    return replace(
        confirmed,
        pairs=pairs[order],
        overlaps=confirmed.overlaps.join(overlaps).select(order),
        distance=distance[order],
        weak=confirmed.weak[still_weak],
        weak_resemblance=confirmed.weak_resemblance[still_weak],
    )


def _concatenate_parts(parts: Sequence[Any]) -> ConfirmedPairs:
    def column(name: str, empty: Array) -> Array:
        return np.concatenate([empty, *(part[name] for part in parts)])

    pairs, sharing, weak = (column(name, np.empty(0, np.uint64)) for name in ("pairs", "sharing", "weak"))
    order, weak_order = np.argsort(pairs), np.argsort(weak)
    overlaps = [column(name, np.empty(0, np.float32))[order] for name in OVERLAP_FIELDS]
    return ConfirmedPairs(
        pairs[order],
        PairOverlaps(*overlaps),
        column("distance", np.empty(0, np.uint8))[order],
        sharing,
        weak[weak_order],
        column("weak_resemblance", np.empty(0, np.float32))[weak_order],
    )
