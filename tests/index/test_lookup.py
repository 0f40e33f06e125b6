"""Ranking of lookup results: which article numbers become candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.index.codec.postings import KeyMatches
from aggregator.index.lookup import (
    MAX_CANDIDATES,
    MAX_SINGLE_KEY_MATCHES,
    LookupResult,
    rank_single_key_matches,
)


def result(near: dict[int, int], sharing: dict[int, int], best_first: Sequence[int] = ()) -> LookupResult:
    """Numbers with their distances, numbers with their shared sketch keys, and ``by_single_key``."""
    by_bits, by_sketch = (
        (np.array(sorted(of), np.uint64), np.array([of[n] for n in sorted(of)], np.int64))
        for of in (near, sharing)
    )
    return LookupResult(by_bits, by_sketch, np.array(best_first, np.uint64))


def ranking(sharing: dict[int, tuple[int, int, int]]) -> list[int]:
    """``rank_single_key_matches`` of numbers with shared keys, entries and rank of one of these keys."""
    rows = np.array([(number, *sharing[number]) for number in sorted(sharing)], np.int64).reshape(-1, 4)
    numbers, counts, key_entries, key_ranks = rows.T
    found = KeyMatches(numbers.astype(np.uint64), counts, key_entries, key_ranks)
    best_first = rank_single_key_matches(found)
    assert best_first.dtype == np.uint64
    ranked: list[int] = best_first.tolist()
    return ranked


def test_the_best_that_share_a_single_key_are_candidates() -> None:
    """In the order that the lookup gave them."""
    best_first = [*range(1100, 1200), *range(1000, 1100)]
    ranked = result({}, dict.fromkeys(best_first, 1), best_first).ranked_numbers

    assert ranked == best_first[:MAX_SINGLE_KEY_MATCHES]


def test_those_that_the_batch_appended_come_first() -> None:
    """They share a single key, too, but were not ranked with the others; latest first."""
    ranked = result({}, dict.fromkeys(range(1000, 1200), 1), range(1000, 1198)).ranked_numbers

    assert ranked[:3] == [1199, 1198, 1000]
    assert len(ranked) == MAX_SINGLE_KEY_MATCHES


def test_a_second_key_that_the_batch_appended_lifts_a_candidate() -> None:
    """Once, and before those that share a single key."""
    best_first = range(2000, 2100)
    ranked = result({}, {**dict.fromkeys(best_first, 1), 2003: 2}, best_first).ranked_numbers

    assert ranked[:5] == [2003, 2000, 2001, 2002, 2004]


def test_those_that_share_more_keys_come_first() -> None:
    """Most shared keys first, ties: earlier first, then those that share a single key."""
    best_first = range(1000, 1200)
    ranked = result({}, {7: 2, 5: 2, 9: 8} | dict.fromkeys(best_first, 1), best_first).ranked_numbers

    assert ranked[:4] == [9, 5, 7, 1000]
    assert len(ranked) == 3 + MAX_SINGLE_KEY_MATCHES


def test_both_kinds_alternate_up_to_the_limit() -> None:
    """Neither near fingerprints nor shared wording displace the other kind."""
    near, sharing = dict.fromkeys(range(100), 3), dict.fromkeys(range(500, 600), 4)
    ranked = result(near, sharing).ranked_numbers

    assert len(ranked) == MAX_CANDIDATES
    assert ranked[:4] == [0, 500, 1, 501]


def test_a_rare_key_says_more_than_a_common_one() -> None:
    """Ties: latest first; those that share several keys are not in it."""
    assert ranking({}) == []
    assert ranking({1: (1, 20, 0), 2: (1, 3, 0), 3: (1, 3, 0), 4: (2, 1, 0), 5: (1, 21, 0)}) == [3, 2, 1, 5]


def test_an_early_key_says_more_than_a_late_one() -> None:
    """Much more entries outweigh it."""
    assert ranking({1: (1, 3, 0), 2: (1, 3, 1), 3: (1, 3, 7), 4: (1, 9, 0)}) == [1, 2, 4, 3]
