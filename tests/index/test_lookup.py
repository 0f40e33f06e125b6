"""Ranking of lookup results: which article numbers become candidates."""

from __future__ import annotations

import numpy as np

from aggregator.index.lookup import MAX_CANDIDATES, MAX_SINGLE_KEY_MATCHES, LookupResult


def result(near: dict[int, int], sharing: dict[int, int]) -> LookupResult:
    """Numbers with their distances, and numbers with their counts of shared sketch keys."""
    return LookupResult(
        *(
            (np.array(sorted(of), np.uint64), np.array([of[n] for n in sorted(of)], np.int64))
            for of in (near, sharing)
        )
    )


def test_the_latest_that_share_a_single_key_are_candidates() -> None:
    """A common phrase is in ever more articles; a duplicate arrives soon after its original."""
    single_key = dict.fromkeys(range(1000, 1200), 1)

    assert result({}, single_key).ranked_numbers == list(range(1199, 1199 - MAX_SINGLE_KEY_MATCHES, -1))


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
