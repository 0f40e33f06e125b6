"""Pairs that copies of a second outlet confirm, by ``verdict.confirming_groups`` as in the service.

What two outlets have printed already is the report, not a quotation: an article that shares enough with
copies of both, in one group, need not begin like them. The groups are known only when all other pairs are
decided.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from aggregator.dedup.verdict import confirming_groups
from aggregator.index.codec.distinct import distinct
from aggregator_archive.arrays import Rows
from aggregator_archive.cluster import Links, components
from aggregator_archive.columns import Columns
from aggregator_archive.encode import UNDATED
from aggregator_archive.pair_rule import is_teaser_row, order_by_arrival, outlet_codes
from aggregator_archive.pairs import Pairs, merge_pairs, order_pairs, pack_pairs, unpack_pairs


def confirmed_by_groups(columns: Columns, first_row: Rows, copies: Pairs, sharing: Pairs) -> Pairs:
    """The pairs of ``sharing`` that become copies, ascending.

    ``first_row``: (n,) the first row of each row's text (``columns.DistinctTexts``); all pairs are of first
    rows. ``copies``: the confirmed pairs; ``sharing``: those with ``pair_rule.SHARES_ENOUGH``. An article
    that repeats an earlier one anyway is not affected.
    """
    earlier, later = order_by_arrival(columns, sharing)
    repeats = _rows_with_copies(columns, copies, distinct(later))
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


def _rows_with_copies(columns: Columns, copies: Pairs, rows: Rows) -> Rows:
    """Those of ``rows`` that repeat an earlier article which is not only their teaser."""
    earlier, later = order_by_arrival(columns, copies)
    at = np.flatnonzero(np.isin(later, rows))
    is_repeated = [
        not is_teaser_row(columns, *pair)
        for pair in zip(earlier[at].tolist(), later[at].tolist(), strict=True)
    ]
    return distinct(later[at][np.array(is_repeated, bool)])


def _earlier_prints(
    columns: Columns, first_row: Rows, earlier: Rows, later: Rows
) -> dict[int, list[tuple[int, int]]]:
    """For each later row, the (earlier row, outlet) that it shares enough with, also of equal texts.

    Articles without an outlet count as one of their own each, and those of its own outlet not at all.
    """
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
