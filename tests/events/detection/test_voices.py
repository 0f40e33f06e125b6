"""Voices: sources known in a language, what is one voice, and how many items are many."""

from __future__ import annotations

import pytest

from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import HOURS_PER_DAY, BurstRule
from aggregator.events.detection.voices import Bursts, Voices
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.events.detection.window_items import window_item
from tests.support.detector_stream import START_MS, DetectorStream, time_ms

NOW_HOUR = START_MS // HOUR_MS
RULE = BurstRule(adapts=True, min_sources=0)


def known_desk(sources: int = 10, a_day: int = 50, days: int = 7, lang: str = "en") -> Voices:
    """A desk whose outlets published ``a_day`` documents on each of the last days."""
    voices = Voices()
    for day in range(days, -1, -1):
        for i in range(a_day):
            voices.observe(lang, f"outlet{i % sources}.example", NOW_HOUR - HOURS_PER_DAY * day)
    return voices


def story(voices: Voices, sources: list[str], title: str = "") -> list[WindowItem]:
    """One item of each source, which publishes it now."""
    for source in sources:
        voices.observe("en", source, NOW_HOUR)
    return [
        window_item(i, "harbour", source=source, lang="en", title=title or f"Title {i}")
        for i, source in enumerate(sources)
    ]


def count(voices: Voices, members: list[WindowItem], needed: int = 6) -> tuple[float, int, int]:
    """(size, voices, items of new sources)."""
    found = voices.count(members, "en", needed, BurstRule(), NOW_HOUR)
    return found.size, found.voices, found.new_items


OUTLETS = [f"outlet{i}.example" for i in range(10)]
UNKNOWN = [f"unknown{i}.example" for i in range(16)]


@pytest.mark.parametrize(
    ("sources", "title", "expected"),
    [
        (UNKNOWN, "", (16, 16, 16)),  # several, but all of them new
        (UNKNOWN, "Harbour bridge falls", (16, 16, 16)),  # agency copy in outlets that nobody knew
        ([f"{name}.host.example" for name in "abcdefghijklmnop"], "", (2, 1, 16)),  # one site within an hour
        ([f"t.me/{name}" for name in "abcdefghijklmnop"], "Bridge falls", (16, 16, 16)),  # accounts
        (OUTLETS, "Harbour bridge falls", (10, 10, 0)),  # agency copy
        (["outlet1.example"] * 40, "", (2, 1, 0)),
    ],
)
def test_what_counts_of_a_story(sources: list[str], title: str, expected: tuple[int, int, int]) -> None:
    """On a desk with a week of history."""
    voices = known_desk()
    assert count(voices, story(voices, sources, title)) == expected


def test_without_a_week_of_history_new_sources_are_voices() -> None:
    """All sources of a new store are first seen within the same hour."""
    voices = known_desk(days=2)
    assert count(voices, story(voices, UNKNOWN, "Harbour bridge falls")) == (16, 16, 0)


def test_a_wire_tells_a_story_as_it_does_alone() -> None:
    """With ten other outlets, one that publishes 240 a day needs 16 items and does not change the number."""
    voices, outlets = known_desk(), known_desk()
    for day in range(7, -1, -1):
        for _ in range(240):
            voices.observe("en", "wire.example", NOW_HOUR - HOURS_PER_DAY * day)
    sizes = [count(voices, story(voices, ["wire.example"] * n))[0] for n in (15, 16)]
    assert sizes == [6.0, pytest.approx(6.4)]
    assert voices.items_needed("en", 15, 0.0) <= outlets.items_needed("en", 15, 0.0) + 1


def test_a_language_that_is_new_today_needs_as_many_as_on_a_first_day() -> None:
    """Few documents were in it before: nothing is usual yet."""
    voices = known_desk()
    for i in range(200):
        voices.observe("fr", f"journal{i % 10}.example", NOW_HOUR)
    assert voices.items_needed("fr", 15, 0.0) == 15
    assert voices.items_needed("en", 15, 0.0) == 3


def test_the_number_of_items_fits_the_desk() -> None:
    """Fewer on a smaller one, but not on the smallest, unless its voices are few: a fifth of them is enough.

    At most as many, and that many without history.
    """
    needed = [known_desk(100, n).items_needed("en", 15, 0.0) for n in (50, 160, 500, 2_000)]
    assert needed == [6, 6, 5, 7]
    assert [known_desk(n, 50).items_needed("en", 15, 0.0) for n in (5, 15, 19, 24, 50)] == [3, 3, 4, 5, 6]
    assert [known_desk(100, n).voices_needed("en") for n in (50, 160, 500, 2_000)] == [6, 8, 23, 90]
    assert known_desk(100, 2_000).items_needed("en", 5, 0.0) == 5
    assert known_desk(a_day=50).items_needed("en", 15, 1.0) == 15
    assert known_desk(sources=4).items_needed("en", 15, 0.0) == 15
    assert known_desk().items_needed("fr", 15, 0.0) == 15


def send_days(
    stream: DetectorStream, days: int = 8, a_day: int = 48, langs: tuple[str, ...] = ("en",)
) -> None:
    """Send other news of ten outlets of each language."""
    for i in range(days * a_day):
        for lang in langs:
            source, minute = f"outlet{i % 10}{lang}.example", (i / a_day - days) * 24 * 60
            stream.send(minute, f"topic{i}{lang} other{i}{lang}", source=source, lang=lang)


def test_a_small_desk_has_events_of_few_items_and_marks_new_sources() -> None:
    """The reason says the number, and which sources nobody knew."""
    stream = DetectorStream(RULE)
    send_days(stream)
    for i in range(8):
        stream.send(i, source=f"outlet{i}en.example", lang="en")
    for i in range(8):
        stream.send(i, "ferry estmark sinks", source=f"unknown{i}.example", lang="en")

    known, unknown = stream.fired
    assert known.size == 4
    assert "more than 3 make an event" in known.reason
    assert "first seen" not in known.reason
    assert "4 of 4 items from sources first seen today" in unknown.reason


def test_agency_copy_in_new_outlets_is_an_event_that_is_marked() -> None:
    """One text of twenty sites within five minutes, on a store that knows a week; one site is one voice."""
    stream = DetectorStream(RULE)
    send_days(stream)
    for i in range(20):
        stream.send(i / 4, source=f"paper{i}.example", lang="en", title="Ferry sinks off Estmark")
        stream.send(i / 4, "dam bursts", source=f"{i}.host.example", lang="en", title="Dam bursts near Tavin")

    (event,) = stream.fired
    assert event.title == "Ferry sinks off Estmark"
    assert f"{event.size} of {event.size} items from sources first seen today" in event.reason


def test_more_items_are_needed_above_the_alerts_of_a_day() -> None:
    """Of a language: the largest stories of the last week have the alerts."""
    rule = BurstRule(adapts=True, min_sources=0, alerts_per_day=1 / 7)
    stream = DetectorStream(rule)
    send_days(stream)
    for day in range(4):
        for i in range(4 if day < 2 else 7):
            stream.send(day * 24 * 60 + i, f"fire{day} town{day}", source=f"outlet{i}en.example", lang="en")

    assert [event.size for event in stream.fired] == [4, 5]


def test_alerts_of_one_language_leave_the_number_of_another_as_it_is() -> None:
    """English stories above the alerts of a day do not hide what is large in French."""
    stream = DetectorStream(BurstRule(adapts=True, min_sources=0, alerts_per_day=1 / 7))
    send_days(stream, langs=("en", "fr"))
    for day, lang in enumerate(("en", "en", "en", "fr")):
        for i in range(4):
            words = f"fire{day} town{day} smoke{day}"
            stream.send(day * 24 * 60 + i, words, source=f"outlet{i}{lang}.example", lang=lang)

    assert [(event.size, event.languages) for event in stream.fired] == [(4, ("en",)), (4, ("fr",))]


def send_subject(
    stream: DetectorStream, source: str, title: str = "In Estmark and Tavin a kelp pact"
) -> None:
    """Seven headlines within 18 hours."""
    words = " ".join(word for word in title.lower().split() if len(word) > 3)
    for i in range(7):
        stream.send(180 * i, words, source=f"{source}{i}en.example", lang="en", title=title)


def test_what_six_outlets_tell_within_a_day_is_an_event_of_a_small_desk() -> None:
    """It has the articles from before the window, is counted in a day, and does not fire again."""
    stream = DetectorStream(RULE)
    send_days(stream)
    send_subject(stream, "outlet")
    saved = stream.detector.dump()

    (event,) = stream.fired
    assert (event.size, event.peak, len(event.sources)) == (6, 6, 6)
    assert event.first_seen_ms == time_ms(0)
    assert "in 15 h 00 min" in event.reason
    assert "in 24 h; more than 5 make an event" in event.reason
    assert BurstDetector.load(saved, RULE).dump() == saved


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("unknown", "In Estmark and Tavin a kelp pact"),  # first seen today
        ("outlet", "In Estmark and tavin a kelp pact"),  # one name
        ("outlet", "In Estmark and Tavin"),  # two names, and nothing that happened
    ],
)
def test_what_is_no_subject_of_the_day(source: str, title: str) -> None:
    """Two names and a third word, of outlets that are known."""
    stream = DetectorStream(RULE)
    send_days(stream)
    send_subject(stream, source, title)

    assert stream.fired == []


def test_a_burst_has_the_most_that_was_told_of_it() -> None:
    """A cluster is one burst; its final peak is set when it ends."""
    memory = Bursts()
    memory.record(1, 16, "en", 0)
    memory.record(2, 20, "en", HOUR_MS)
    memory.record(3, 30, "de", HOUR_MS)
    memory.record(1, 12, "en", 2 * HOUR_MS)
    assert memory.peaks("en", 0) == [20, 16]
    assert memory.peaks("en", HOUR_MS) == [20]

    memory.record(1, 18, "en", 3 * HOUR_MS)
    memory.raise_peak(1, 40)
    memory.raise_peak(9, 50)  # had no burst
    assert memory.peaks("en", 0) == [40, 20]


def test_bursts_are_forgotten_after_a_week() -> None:
    memory = Bursts()
    for day in range(9):
        memory.record(day, 16 + day, "en", day * DAY_MS)
    assert memory.peaks("en", 0) == list(range(24, 16, -1))
