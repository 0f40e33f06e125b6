"""Ranking of lookup results: which article numbers become candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.index.lookup_result import (
    MAX_CANDIDATES,
    MAX_COMMON_KEY_MATCHES,
    MAX_SINGLE_KEY_MATCHES,
    LookupResult,
)


def result(near: dict[int, int], sharing: dict[int, int], common: Sequence[int] = ()) -> LookupResult:
    """Numbers with their distances, numbers with their counts of shared sketch keys, and the common ones."""
    by_bits, by_sketch = (
        (np.array(sorted(of), np.uint64), np.array([of[n] for n in sorted(of)], np.int64))
        for of in (near, sharing)
    )
    return LookupResult(by_bits, by_sketch, np.array(sorted(common), np.uint64))


def test_the_latest_that_share_a_single_key_are_candidates() -> None:
    """A common phrase is in ever more articles; a duplicate arrives soon after its original."""
    single_key = dict.fromkeys(range(1000, 1200), 1)

    assert result({}, single_key).ranked_numbers == list(range(1199, 1199 - MAX_SINGLE_KEY_MATCHES, -1))


def test_few_that_share_a_common_key_are_candidates() -> None:
    """The latest of them; those that share a single rare key take the other places, however old."""
    rare, common = range(1000, 1100), range(2000, 2100)
    ranked = result({}, dict.fromkeys([*rare, *common], 1), common).ranked_numbers

    assert ranked[:MAX_COMMON_KEY_MATCHES] == list(common)[: -MAX_COMMON_KEY_MATCHES - 1 : -1]
    others = MAX_SINGLE_KEY_MATCHES - MAX_COMMON_KEY_MATCHES
    assert ranked[MAX_COMMON_KEY_MATCHES:] == list(rare)[: -others - 1 : -1]


def test_a_second_key_makes_a_candidate_of_one_that_shares_a_common_key() -> None:
    """It may be one that the batch appended."""
    common = range(2000, 2100)

    assert result({}, {**dict.fromkeys(common, 1), 2000: 2}, common).ranked_numbers[0] == 2000


def test_those_that_share_more_keys_come_first() -> None:
    """Most shared keys first, ties: earlier first, then those that share a single key."""
    sharing = {7: 2, 5: 2, 9: 8} | dict.fromkeys(range(1000, 1200), 1)
    ranked = result({}, sharing).ranked_numbers

    assert ranked[:4] == [9, 5, 7, 1199]
    assert len(ranked) == 3 + MAX_SINGLE_KEY_MATCHES


def test_both_kinds_alternate_up_to_the_limit() -> None:
    """Neither near fingerprints nor shared wording displace the other kind."""
    near, sharing = dict.fromkeys(range(100), 3), dict.fromkeys(range(500, 600), 4)
    ranked = result(near, sharing).ranked_numbers

    assert len(ranked) == MAX_CANDIDATES
    assert ranked[:4] == [0, 500, 1, 501]
