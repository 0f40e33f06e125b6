"""Confirmation of candidates: which pairs are copies by the method's rule, with their estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.analysis import shingles
from aggregator.analysis.shingles import distinct
from aggregator.analysis.text.normalization import source_key
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import confirming_groups
from aggregator.domain import Sketch
from aggregator_archive.arrays import (
    Array,
    Flags,
    Floats,
    Pairs,
    Rows,
    merge_pairs,
    order_pairs,
    pack_pairs,
    save_once,
    unpack_pairs,
)
from aggregator_archive.cluster import Links, components
from aggregator_archive.columns import Columns, DistinctTexts, open_columns
from aggregator_archive.encode import UNDATED
from aggregator_archive.pair_rule import COPY, SHARES_ENOUGH, UNDECIDED, PairRule, order_by_arrival

PAIRS_PER_TASK = 1 << 18
MIN_WEAK_RESEMBLANCE = 0.01
DIFFERENT_SPACES = 255  # in place of the distance of fingerprints that are not comparable


@dataclass(frozen=True, slots=True, eq=False)
class ConfirmedPairs:
    """Pairs that passed verification, ascending, with their estimates; and weak pairs, which did not pass."""

    pairs: Pairs
    overlaps: PairOverlaps
    distance: npt.NDArray[np.uint8]  # Hamming distance, 0 to 64; DIFFERENT_SPACES if not comparable
    undecided: Flags  # pairs that others join, so that they were not verified (``pair_rule.UNDECIDED``)
    sharing: Pairs  # failed pairs that a second outlet can confirm (``pair_rule.SHARES_ENOUGH``)
    weak: Pairs  # failed pairs with a resemblance of at least MIN_WEAK_RESEMBLANCE
    weak_resemblance: npt.NDArray[np.float32]


def confirm_to_file(directory: str, pairs: Pairs, policy: Policy, out: str) -> None:
    """Verify candidates of the columns in ``directory``; writes the file ``out``, unless it exists."""
    save_once(Path(out), lambda: confirm_pairs(open_columns(Path(directory)), pairs, policy))


def confirm_pairs(columns: Columns, pairs: Pairs, policy: Policy) -> dict[str, Array]:
    """The fields of ``ConfirmedPairs`` by the rule of the service, in the order of ``pairs``."""
    overlaps = estimate_overlaps(columns, pairs)
    decisions = PairRule(columns, policy).decide(pairs, overlaps.containment)
    return _by_decision(columns, pairs, overlaps, decisions)


def _by_decision(
    columns: Columns, pairs: Pairs, overlaps: PairOverlaps, decisions: npt.NDArray[np.uint8]
) -> dict[str, Array]:
    kept = (decisions == COPY) | (decisions == UNDECIDED)
    weak = ~kept & (overlaps.resemblance >= MIN_WEAK_RESEMBLANCE)
    return {name: getattr(overlaps, name)[kept].astype(np.float32) for name in OVERLAP_FIELDS} | {
        "pairs": pairs[kept],
        "distance": _distances(columns, pairs[kept]),
        "undecided": decisions[kept] == UNDECIDED,
        "sharing": pairs[decisions == SHARES_ENOUGH],
        "weak": pairs[weak],
        "weak_resemblance": overlaps.resemblance[weak].astype(np.float32),
    }


def _distances(columns: Columns, pairs: Pairs) -> npt.NDArray[np.uint8]:
    a, b = unpack_pairs(pairs)
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b])
    return np.where(columns.space[a] == columns.space[b], distance, DIFFERENT_SPACES).astype(np.uint8)


def slices_by_later_article(columns: Columns, pairs: Pairs) -> tuple[Pairs, list[int]]:
    """The pairs ordered by their later article, and the ends of slices of about ``PAIRS_PER_TASK``.

    The pairs of one later article are in one slice.
    """
    later = order_by_arrival(columns, pairs)[1]
    order = np.argsort(later, kind="stable")
    later = later[order]
    last = later[np.arange(PAIRS_PER_TASK - 1, len(later), PAIRS_PER_TASK)]
    ends = np.searchsorted(later, last, side="right").tolist()
    return pairs[order], sorted({*ends, len(later)} - {0})


def collect_confirmed(
    columns: Columns, distinct_texts: DistinctTexts, files: Sequence[Path], policy: Policy
) -> ConfirmedPairs:
    """The confirmed pairs of all files of ``confirm_to_file``, and those that copies of others confirm.

    Undecided pairs that no other pairs join are decided, so the groups are those of a decision on each pair.
    """
    none = np.empty(0, np.uint64)
    empty = _by_decision(columns, none, estimate_overlaps(columns, none), np.empty(0, np.uint8))
    found = _concatenate(empty, *map(np.load, files))
    while (open_ := found["undecided"] & ~_are_joined(columns, found["pairs"], found["undecided"])).any():
        decided = {name: found[name][~open_] for name in _OF_CONFIRMED}
        found = _concatenate(found | decided, confirm_pairs(columns, found["pairs"][open_], policy))
    added = confirmed_by_groups(columns, distinct_texts.first_row, found["pairs"], found["sharing"])
    still_weak = ~np.isin(found["weak"], added)
    weak = {name: found[name][still_weak] for name in _OF_WEAK}
    copies = estimate_overlaps(columns, added), np.full(len(added), COPY, np.uint8)
    found = _concatenate(found | weak, _by_decision(columns, added, *copies))
    order, weak_order = np.argsort(found["pairs"]), np.argsort(found["weak"])
    found |= {name: found[name][order] for name in _OF_CONFIRMED}
    found |= {name: found[name][weak_order] for name in _OF_WEAK}
    overlaps = PairOverlaps(*(found.pop(name) for name in OVERLAP_FIELDS))
    return ConfirmedPairs(overlaps=overlaps, **found)


def _concatenate(*parts: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _are_joined(columns: Columns, pairs: Pairs, undecided: Flags) -> Flags:
    """Which pairs the decided ones join."""
    a, b = unpack_pairs(pairs)
    group = components(Links(len(columns), a[~undecided], b[~undecided], np.ones(int((~undecided).sum()))))
    return np.equal(group[a], group[b])


@dataclass(frozen=True, slots=True, eq=False)
class PairOverlaps:
    """Estimated overlaps of n pairs, (n,) each; the fields are those of ``shingles.OverlapEstimate``."""

    containment: Floats
    resemblance: Floats
    shared: Floats
    size_ratio: Floats
    error: Floats


OVERLAP_FIELDS = PairOverlaps.__slots__
_OF_CONFIRMED, _OF_WEAK = ("pairs", "distance", "undecided", *OVERLAP_FIELDS), ("weak", "weak_resemblance")


def estimate_overlaps(columns: Columns, pairs: Pairs) -> PairOverlaps:
    """The overlap of each pair, estimated from the samples."""
    a, b = unpack_pairs(pairs)
    found = np.zeros((len(pairs), len(OVERLAP_FIELDS)))
    order = np.argsort(a, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(a[order])) + 1):
        if not len(at):
            continue
        others = [_sketch(columns, row) for row in b[at].tolist()]
        overlaps = shingles.estimate_overlaps(_sketch(columns, int(a[at[0]])), others)
        found[at] = [[getattr(overlap, name) for name in OVERLAP_FIELDS] for overlap in overlaps]
    return PairOverlaps(*found.T)


def _sketch(columns: Columns, row: int) -> Sketch:
    sample = columns.variable("sample", row)
    return Sketch(int(columns.size[row]), sample, np.zeros(len(sample), np.uint8))


def confirmed_by_groups(columns: Columns, first_row: Rows, copies: Pairs, sharing: Pairs) -> Pairs:
    """The pairs of ``sharing`` that become copies, ascending.

    ``first_row``: (n,) the first row of each row's text (``columns.DistinctTexts``); all pairs are of first
    rows. ``copies``: the confirmed pairs; ``sharing``: those with ``pair_rule.SHARES_ENOUGH``. An article
    that repeats an earlier one anyway is not affected.
    """
    earlier, later = order_by_arrival(columns, sharing)
    # Not by np.unique, which imports numpy.ma: 0.1 s of a small run.
    copied = distinct(order_by_arrival(columns, copies)[1])
    repeats = np.intersect1d(copied, distinct(later), assume_unique=True)
    open_ = ~np.isin(later, repeats)
    earlier, later = earlier[open_], later[open_]
    printed = _earlier_prints(columns, first_row, earlier, later)
    copy_a, copy_b = unpack_pairs(copies)
    group = components(Links(len(columns), copy_a, copy_b, np.ones(len(copies))))
    merged: dict[int, int] = {}  # labels of groups that an article of another group joined to one

    def group_of(row: int) -> int:
        label = int(group[row])
        while label in merged:
            label = merged[label]
        return label

    found: list[tuple[int, int]] = []
    for row in sorted(printed, key=lambda row: (int(columns.date_ms[row]), row)):
        confirming = confirming_groups((group_of(at), outlet) for at, outlet in printed[row])
        confirmed = {earlier_row for earlier_row, _ in printed[row] if group_of(earlier_row) in confirming}
        for earlier_row in sorted(confirmed):
            found.append((earlier_row, row))
            if (label := group_of(earlier_row)) != group_of(row):
                merged[group_of(row)] = label
    if not found:
        return np.empty(0, np.uint64)
    return merge_pairs([pack_pairs(*order_pairs(*np.array(found, np.int64).T))])


def outlet_codes(sources: Sequence[str]) -> Rows:
    """(n,) a number for each source, by ``source_key``; 0 is an unknown outlet."""
    codes: dict[str, int] = {"": 0}
    return np.array([codes.setdefault(source_key(name), len(codes)) for name in sources], np.int64)


def _earlier_prints(
    columns: Columns, first_row: Rows, earlier: Rows, later: Rows
) -> dict[int, list[tuple[int, int]]]:
    """For each later row, the (earlier row, outlet) of other outlets that it shares enough with."""
    codes = outlet_codes(columns.sources)
    members: dict[int, list[int]] = defaultdict(list)
    for row in np.flatnonzero(np.isin(first_row, earlier)).tolist():
        members[int(first_row[row])].append(row)
    prints: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for earlier_row, row in zip(earlier.tolist(), later.tolist(), strict=True):
        own = int(codes[columns.source[row]])
        for member in members[earlier_row]:
            outlet = int(codes[columns.source[member]])
            if outlet and outlet == own:
                continue
            if _arrived_before(columns, member, row):
                prints[row].append((earlier_row, outlet or -1 - member))
    return prints


def _arrived_before(columns: Columns, row: int, other: int) -> bool:
    date, other_date = int(columns.date_ms[row]), int(columns.date_ms[other])
    if UNDATED in (date, other_date) or date == other_date:
        return row < other
    return date < other_date
