"""Conversion of stream items: terms, time, which of them count, bulk loads."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from aggregator.analysis.text import tokenizer
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.description import surface_forms
from aggregator.events.detection.items import (
    MAX_PER_MINUTE,
    MIN_PER_MINUTE,
    VARIANTS,
    UndatedArticles,
    limit_per_minute,
    to_window_item,
)
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS
from tests.events.detection.test_expectation import REACTIONS, terms
from tests.support.detector_stream import START_MS, DetectorStream


@pytest.mark.parametrize(
    ("adjective", "name"),
    [("Egyptian", "Egypt"), ("French", "France"), ("Libyan", "Libya"), ("Turkish", "Turkey")],
)
def test_the_variants_are_stems_of_the_tokenizer(adjective: str, name: str) -> None:
    """Both words give the same term."""
    (variant,), (term,) = tokenizer.tokenize(adjective, "en"), tokenizer.tokenize(name, "en")
    assert VARIANTS[variant] == term


def test_no_name_is_a_variant_of_another() -> None:
    """A second replacement would change nothing."""
    assert not set(VARIANTS.values()) & set(VARIANTS)


def test_an_item_holds_a_name_once() -> None:
    """With the larger weight of its two forms; editors read a word of the headlines."""
    stream = DetectorStream()
    item = stream.item(0, "army", title="Egyptian army moves", lang="en")
    terms = (("egyptian", 1.0), ("egypt", 0.5), ("armi", 0.2), ("none", 0.0))
    member = to_window_item(replace(item, terms=terms), START_MS, START_MS, 1000)
    assert member.terms == {"egypt": 255, "armi": 51}
    assert surface_forms(["egypt"], [member]) == {"egypt": "Egyptian"}


@pytest.mark.parametrize(("age_h", "counts"), [(0.0, True), (4.0, True), (4.2, False)])
def test_items_published_over_a_window_before_their_arrival_do_not_count(age_h: float, counts: bool) -> None:
    """Published exactly 4 h before arrival still counts: 20 items that arrive in one moment."""
    stream = DetectorStream()

    for _ in range(20):
        stream.send(0, published_at_ms=START_MS - round(age_h * HOUR_MS))

    assert bool(stream.fired) is counts


def test_items_with_a_future_date_or_none_count_at_arrival() -> None:
    """Every second item is dated nine days ahead."""
    stream = DetectorStream()

    for i in range(16):
        stream.send(i, published_at_ms=START_MS + 9 * DAY_MS if i % 2 else None)

    assert len(stream.fired) == 1


def test_an_hourly_poll_has_the_timeline_of_the_publications() -> None:
    """First seen, timeline and rate are those of the outlets, not of the crawler."""
    stream = DetectorStream()
    for i in range(18):
        stream.send(180, published_at_ms=START_MS + 10 * i * MINUTE_MS, source=f"outlet{i}.example")
    stream.tick(181)

    event = stream.last_event()
    assert event.first_seen_ms == START_MS
    assert event.last_seen_ms == START_MS + 170 * MINUTE_MS
    assert event.rate == 1 and len(event.timeline) == 18
    assert event.detected_at_ms >= START_MS + 180 * MINUTE_MS


def test_a_date_without_a_time_says_nothing_about_the_hour() -> None:
    """Midnight of the day of arrival."""
    stream = DetectorStream()
    midnight_ms = START_MS - START_MS % DAY_MS
    for i in range(16):
        stream.send(i, published_at_ms=midnight_ms)

    assert len(stream.fired) == 1


@pytest.mark.integration
@pytest.mark.parametrize("dated", [True, False])
def test_thousands_of_undated_articles_in_a_minute_are_a_bulk_load(dated: bool) -> None:
    """The cluster among them fires only if the articles have dates."""
    stream = DetectorStream()
    for i in range(3_000):
        stream.send(i / 100_000, f"topic{i} place{i}", published_at_ms=START_MS if dated else None)
    for i in range(60):
        stream.send(0.5, source=f"outlet{i}.example", published_at_ms=START_MS if dated else None)

    assert bool(stream.fired) is dated


@pytest.mark.parametrize("age_min", [None, 0, 60])
def test_backfilled_articles_fire_no_event(age_min: float | None) -> None:
    """Undated, just published, an hour old: 40 of one cluster, and then 15 live ones are not enough."""
    stream = DetectorStream()
    for i in range(40):
        published_ms = None if age_min is None else START_MS + round((i / 60 - age_min) * MINUTE_MS)
        stream.send(i / 60, backfill=True, published_at_ms=published_ms)
    stream.send_burst(15, start=1)
    assert stream.fired == []

    stream.send(20)

    assert [event.size for event in stream.fired] == [16]


def test_backfilled_articles_train_the_baseline_at_their_publication() -> None:
    """Those of yesterday at this hour make the cluster usual today; undated ones do not."""
    fired = {}
    for dated in (True, False):
        stream = DetectorStream()
        stream.send(-1, "market opens")
        for i in range(60):
            published_ms = START_MS - DAY_MS + i * MINUTE_MS if dated else None
            stream.send(0, backfill=True, published_at_ms=published_ms)
        stream.send_burst(20, start=5)
        fired[dated] = bool(stream.fired)

    assert fired == {True: False, False: True}


def test_a_backfilled_article_joins_an_event_uncounted() -> None:
    """An editor sees it where it was published; the status stays."""
    stream = DetectorStream()
    stream.send_burst(16)

    item = stream.send(17, backfill=True, published_at_ms=START_MS - 9 * HOUR_MS)
    stream.tick(18)

    event = stream.last_event()
    assert item.id in event.items and (event.size, event.peak) == (17, 16)
    assert event.first_seen_ms == START_MS - 9 * HOUR_MS
    assert event.last_seen_ms == START_MS + 15 * MINUTE_MS


def test_a_poll_of_one_source_does_not_look_like_acceleration() -> None:
    """Collected every hour, dated articles give the timeline, rate and peak of their publication."""
    live, polled = DetectorStream(), DetectorStream()
    for i, title in enumerate(REACTIONS):
        minute = 10.0 * i + 3 * (i % 3)
        for stream, arrival in ((live, minute), (polled, 60.0 * (minute // 60 + 1))):
            published_ms = START_MS + round(minute * MINUTE_MS)
            stream.send(
                arrival, title=title, terms=terms(title), source="one.example", published_at_ms=published_ms
            )
    live.tick(200)
    polled.tick(200)

    at_publication, by_poll = live.last_event(), polled.last_event()
    assert by_poll.timeline == at_publication.timeline and len(by_poll.timeline) == len(REACTIONS)
    assert (by_poll.rate, by_poll.peak) == (at_publication.rate, at_publication.peak) == (1, len(REACTIONS))


HOUR = 480_000
NOW_MS = HOUR * HOUR_MS


def baseline_of(documents_per_hour: int, hours: int = 8 * 24) -> Baseline:
    """A stream with so many documents in each of the last ``hours``."""
    baseline = Baseline(4 * HOUR_MS)
    for hour in range(HOUR - hours, HOUR + 1):
        for _ in range(documents_per_hour):
            baseline.add(hour, (ALL_DOCUMENTS,))
        baseline.refresh_totals(hour)
    return baseline


def ignored(undated: UndatedArticles, baseline: Baseline, minute: int, count: int) -> int:
    """How many of ``count`` articles in one minute are taken for a bulk load."""
    return sum(undated.is_bulk(NOW_MS + minute * MINUTE_MS, baseline) for _ in range(count))


def test_the_limit_is_what_a_whole_window_usually_has() -> None:
    """Without a day of history it is the largest limit; a small stream has the smallest."""
    assert 400 <= limit_per_minute(baseline_of(100), HOUR) <= 500
    assert limit_per_minute(baseline_of(10), HOUR) == MIN_PER_MINUTE
    assert limit_per_minute(baseline_of(1_000, hours=30), HOUR) == MAX_PER_MINUTE
    assert limit_per_minute(baseline_of(100, hours=5), HOUR) == MAX_PER_MINUTE


def test_a_load_is_ignored_until_a_minute_stays_below_the_limit() -> None:
    """Its first minute up to the limit counts, since nothing distinguishes it from a poll."""
    undated, baseline = UndatedArticles(), baseline_of(10)

    assert [
        ignored(undated, baseline, minute, count) for minute, count in enumerate((250, 900, 900, 90))
    ] == [
        0,
        600,
        900,
        90,
    ]
    assert undated.ignored == 1590
    assert ignored(undated, baseline, 4, 250) == 0
    assert undated.ignored == 0


def test_a_load_ends_with_a_minute_without_articles() -> None:
    """The next poll of the crawler counts."""
    undated, baseline = UndatedArticles(), baseline_of(10)
    assert ignored(undated, baseline, 0, 400) == 100

    assert ignored(undated, baseline, 2, 250) == 0


def test_a_state_saved_by_an_earlier_version_is_read() -> None:
    """It has the minute and the count only."""
    saved = msgspec.msgpack.encode((480, 7))

    assert msgspec.msgpack.decode(saved, type=UndatedArticles) == UndatedArticles(480, 7, ignored=0)
