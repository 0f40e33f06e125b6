"""Statistics of outlets: originals, copies, repeats, lags, partners, families."""

from __future__ import annotations

from aggregator.provenance import statistics
from aggregator.provenance.statistics import (
    Pair,
    Partner,
    SharedTexts,
    SourceCounter,
    SourceStatistics,
    find_families,
)
from aggregator.provenance.window import PublicationWindow
from tests.provenance.items import MINUTE_MS, item, report_on


def shared(count: int, days: int = 5) -> SharedTexts:
    """``count`` texts on ``days`` days."""
    return SharedTexts(count, (1 << min(count, days)) - 1)


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
    rule = (0.05, 2, 1)

    assert find_families({1: 40, 2: 40}, {(1, 2): shared(2, 1)}, *rule) == [(1, 2)]
    assert find_families({1: 41, 2: 41}, {(1, 2): shared(2, 1)}, *rule) == []


def named(sources: tuple[SourceStatistics, ...], name: str) -> SourceStatistics:
    """The statistics of one outlet."""
    return next(source for source in sources if source.name == name)


def test_each_outlet_counts_once_per_text() -> None:
    """Original, copy and repeat, by publication time though the copy arrived first."""
    report = report_on(
        item(10, "B", minute=8),
        item(11, "A", of=10, minute=3),
        item(12, "B", of=10, minute=9),
        item(13, "C", of=10, minute=9),
        item(14, "A", of=10, minute=10),
        item(15, "A", minute=15),
    )
    a, b, c = (named(report.sources, name) for name in "ABC")

    assert (a.articles, a.originals, a.copies, a.repeats, a.copied) == (3, 2, 0, 1, 1)
    assert (b.articles, b.originals, b.copies, b.repeats, b.copied) == (2, 0, 1, 1, 0)
    assert (c.articles, c.originals, c.copies, c.repeats) == (1, 0, 1, 0)
    assert (a.median_lag_ms, b.median_lag_ms, c.median_lag_ms) == (None, 5 * MINUTE_MS, 6 * MINUTE_MS)
    assert b.copied_from == (Partner("A", 1),) and a.copied_by == (Partner("B", 1), Partner("C", 1))
    assert [source.name for source in report.sources] == ["A", "B", "C"]
    assert (report.articles, report.unnamed) == (6, 0)


def test_articles_of_one_time_are_both_originals() -> None:
    """Nothing says who had it first; a later one is a copy of the first in the order of arrival."""
    report = report_on(item(1, "A", minute=0), item(2, "B", of=1, minute=0), item(3, "C", of=1, minute=1))

    assert [named(report.sources, name).originals for name in "ABC"] == [1, 1, 0]
    assert named(report.sources, "C").copied_from == (Partner("A", 1),)


def test_articles_without_a_source_are_counted_and_not_listed() -> None:
    """They can be the first publication, but are nobody's copy or original."""
    report = report_on(item(1, "", minute=0), item(2, "B", of=1, minute=1), item(3, ""))

    assert report.unnamed == 2
    assert [source.name for source in report.sources] == ["B"]
    assert (report.sources[0].copies, report.sources[0].copied_from) == (1, ())


def test_undated_articles_are_reported() -> None:
    """Their order is that of their arrival."""
    report = report_on(item(1, "A", minute=0), item(2, "A"), item(3, "A", minute=99))

    assert named(report.sources, "A").undated == 2


def test_a_family_with_its_first_publishers() -> None:
    """Two outlets that share 6 texts on 6 days; a third shares one."""
    day = 24 * 60
    entries = [item(n, f"Other {n}") for n in range(20)]
    for n in range(6):
        first, second = ("A", "B") if n < 4 else ("B", "A")
        at = 100 + n * day
        entries += [item(at, first, minute=at), item(at + 1, second, of=at, minute=at + 1)]
    entries.append(item(at + 2, "C", of=at, minute=at + 2))
    report = report_on(*entries)
    (family,) = report.families

    assert family.members == ("A", "B") and family.texts == 6
    assert family.first == (Partner("A", 4), Partner("B", 2))
    assert [named(report.sources, name).family for name in ("A", "B", "C")] == [0, 0, None]


def test_counting_yields_in_between() -> None:
    """A window of half a million articles takes seconds."""
    window = PublicationWindow()
    for n in range(0, 4 * statistics.GROUPS_PER_STEP, 2):
        window.add(item(n, "A"))
        window.add(item(n + 1, "B", of=n))
    counter = SourceCounter(window.publications())

    assert len(list(counter.steps())) == 2
    assert named(counter.report(0, None).sources, "B").copies == 2 * statistics.GROUPS_PER_STEP


def test_an_empty_report() -> None:
    """Nothing stored yet."""
    report = report_on()

    assert (report.articles, report.sources, report.families, report.since_ms) == (0, (), (), None)


def test_a_delay_is_between_two_times_of_one_kind() -> None:
    """B states no time, so its arrival is 500 minutes after the first of a text; C does, as A."""
    found = report_on(
        item(0, "A", minute=0), item(1, "C", of=0, minute=1), item(500, "B", of=0),
        item(501, "D"), item(503, "B", of=501), item(504, "A", of=501, minute=504),
    ).sources  # fmt: skip

    assert (named(found, "C").median_lag_ms, named(found, "C").copies) == (MINUTE_MS, 1)
    assert (named(found, "B").median_lag_ms, named(found, "B").copies) == (2 * MINUTE_MS, 2)
    assert (named(found, "A").median_lag_ms, named(found, "A").copies) == (None, 1)
