"""Groups of outlets that publish the same texts."""

from __future__ import annotations

from aggregator.provenance.families import FamilyRule, Pair, SharedTexts, find_families


def shared(count: int, days: int = 5) -> SharedTexts:
    """``count`` texts on ``days`` days."""
    found = SharedTexts()
    for n in range(count):
        found.add(n % days)
    return found


def families(texts: dict[int, int], **pairs: SharedTexts) -> list[tuple[int, ...]]:
    """The families; a pair is named like ``p12``."""
    by_pair: dict[Pair, SharedTexts] = {(int(name[1]), int(name[2])): s for name, s in pairs.items()}
    return find_families(texts, by_pair)


def test_outlets_that_share_a_tenth_of_the_smaller_ones_texts() -> None:
    """9 of 100 are too few."""
    assert families({1: 1000, 2: 100}, p12=shared(10)) == [(1, 2)]
    assert families({1: 1000, 2: 100}, p12=shared(9)) == []


def test_the_evidence_must_not_be_one_day_or_few_texts() -> None:
    """One busy day, and an outlet with three texts, prove nothing."""
    assert families({1: 100, 2: 100}, p12=shared(50, days=2)) == []
    assert families({1: 100, 2: 3}, p12=shared(3)) == []
    assert families({1: 100, 2: 6}, p12=shared(5)) == [(1, 2)]


def test_a_republisher_of_three_newswires_does_not_join_them() -> None:
    """Connected components would make one family of four."""
    texts = {1: 1000, 2: 1000, 3: 1000, 4: 100}

    assert families(texts, p14=shared(30), p24=shared(25), p34=shared(12)) == [(1, 4)]


def test_a_member_is_joined_by_its_mean_share() -> None:
    """Outlet 3 shares 13 % with one member and 8 % with the other."""
    texts = dict.fromkeys((1, 2, 3), 100)

    assert families(texts, p12=shared(20), p13=shared(13), p23=shared(8)) == [(1, 2, 3)]
    assert families(texts, p12=shared(20), p13=shared(13), p23=shared(6)) == [(1, 2)]


def test_families_are_listed_largest_first() -> None:
    """Each outlet is in one at most."""
    texts = dict.fromkeys(range(1, 7), 100)
    found = families(texts, p12=shared(20), p34=shared(30), p35=shared(30), p45=shared(30), p56=shared(9))

    assert found == [(3, 4, 5), (1, 2)]


def test_another_rule() -> None:
    """The thresholds are arguments, for the benchmark."""
    rule = FamilyRule(min_share=0.05, min_shared_texts=2, min_days=1)

    assert find_families({1: 40, 2: 40}, {(1, 2): shared(2, 1)}, rule) == [(1, 2)]
    assert find_families({1: 41, 2: 41}, {(1, 2): shared(2, 1)}, rule) == []
