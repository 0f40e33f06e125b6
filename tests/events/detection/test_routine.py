"""Routine: templates, releases at round times, the case of headlines, and series that return."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest

from aggregator.events.detection import routine
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.routine import (
    SeriesMemory,
    is_routine,
    is_template,
    occurrences_inside,
    round_time_share,
    shows_names,
    title_case_share,
)
from aggregator.time_units import DAY_MS, MINUTE_MS
from tests.events.detection.window_items import cluster_of, window_item
from tests.support.detector_stream import RULE, START_MS, DetectorStream


@pytest.mark.parametrize(
    ("title", "shows", "title_case"),
    [
        ("At least 12 dead in Thornby market fire", True, False),
        ("Northwater Announces Third Quarter Results", False, True),
        ("Orbex PLC - Transaction in Own Shares", False, True),
        ("MARKET FIRE KILLS TWELVE", False, True),
        ("Thornby fire", True, False),
        ("Orbex Results", False, False),  # too short to show a style
        ("thornby market is open again", False, False),
        ("渡轮星期一恢复通航", False, False),
        ("12 34", False, False),
        ("", False, False),
    ],
)
def test_a_headline_shows_names_or_a_style(title: str, shows: bool, title_case: bool) -> None:
    assert shows_names(title) is shows
    assert title_case_share([window_item(0, title)]) == float(title_case)


def test_the_share_is_that_of_all_headlines() -> None:
    members = [window_item(0, "Orbex Names New Chief"), window_item(1, "Orbex says it has a new chief")]

    assert title_case_share(members) == 0.5
    assert title_case_share([]) == 0.0


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Fire Destroys Factory in Thornby", []),  # In Title Case
        ("Fire destroys a Factory of cars", ["Factory"]),
        ("Factory fire is out", []),  # the first word
        ("Thornby stocks - Factory orders to watch", []),  # the first word of a part
        ("Thornby: Factory of cars burns", []),
        ("Thornby sales rise; factory to close", ["factory"]),  # a small letter is not a name anywhere
        ("Half-built factory burns in Thornby", ["factory"]),  # a hyphen does not begin a part
    ],
)
def test_occurrences_are_inside_a_part_of_a_headline(title: str, expected: list[str]) -> None:
    """The first word of a headline, or of a part of it, has a capital letter whatever it is."""
    member = window_item(0, title, lang="en", terms={"factori": 100, "factory": 100})

    assert [*occurrences_inside("factori", [member]), *occurrences_inside("factory", [member])] == expected
    assert not list(occurrences_inside("thornbi", [member]))  # not a term of the item


TOWNS = (
    "Thornby",
    "Quayside",
    "Estmark",
    "Hollin",
    "Marsby",
    "Petworth",
    "Caldby",
    "Aldwick",
    "Brenton",
    "Oss",
)
SERIES = [f"{town} retailer posts May same-store sales up {i} pct" for i, town in enumerate(TOWNS)]
NEWS = [
    "At least 12 dead in Thornby market fire",
    "Thornby fire: what is known",
    "Mayor calls for calm after blaze",
    "Fire crews search ruins of Thornby market",
    "Insurers see high claims after fire in Thornby",
    "Thornby hospital treats 40",
    "Prime minister visits scene of blaze",
    "Witness: market roof fell within minutes",
]


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (SERIES, True),
        (NEWS, False),
        ([f"{town} Fund: Net Asset Value" for town in TOWNS], True),
        ([f"{town} Plc - Portfolio Update" for town in TOWNS], True),
        ([f"Fire in {town}" for town in TOWNS], False),  # one common word
        ([f"{a} Ada Nimmo {b}" for a, b in pairwise(TOWNS)], False),  # a name
        ([], False),
        (["2031", "12", ""], False),
    ],
)
def test_templates_are_the_same_words_around_exchanged_names(titles: list[str], expected: bool) -> None:
    """Two common words in the same order, or three in most headlines; one word is a topic."""
    assert is_template(titles) is expected


def send_titles(stream: DetectorStream, titles: list[str], source: str, start: float = 0.0) -> None:
    """Send the titles twice with the same terms, one a minute."""
    for i, title in enumerate(titles * 2):
        fields = {"source": source.format(i), "title": title}
        stream.send(start + 1 + i * 1.1, "retailer sales", **fields)


@pytest.mark.parametrize(("source", "fired"), [("one.example", 0), ("outlet{}.example", 1)])
def test_a_template_of_one_publisher_does_not_fire(source: str, fired: int) -> None:
    """Twenty outlets with the same words are news."""
    stream = DetectorStream()
    send_titles(stream, SERIES, source)
    assert len(stream.fired) == fired


@pytest.mark.parametrize(("minutes", "fired"), [(15, 0), (13, 1)])
def test_releases_at_round_times_do_not_fire(minutes: int, fired: int) -> None:
    """Of one publisher, among items at other times."""
    stream = DetectorStream()
    for i in range(60):
        stream.send(i * 3.7 + 1, f"topic{i} aspect{i}", title=f"{TOWNS[i % 10]} matter", source="one.example")
    for i in range(20):
        title = f"{TOWNS[i % 10]} {TOWNS[i % 7]}"
        stream.send(minutes * (14 + i // 10), "virtual storage", title=title, source="one.example")
    assert len(stream.fired) == fired


def test_a_stream_with_round_times_only_is_judged_by_its_words() -> None:
    """A crawler that rounds to the hour: round times say nothing."""
    stream = DetectorStream()
    for i in range(20):
        title = f"{TOWNS[i % 10]} {TOWNS[i % 7]}"
        stream.send(60, "virtual storage", title=title, source="one.example")
    assert len(stream.fired) == 1


def test_round_times_are_multiples_of_15_minutes() -> None:
    """The seconds do not matter; no items have no share."""
    members = [window_item(i, "fire", at_ms=START_MS + i * 60_000) for i in range(30)]
    assert round_time_share(members) == pytest.approx(2 / 30)
    assert round_time_share([]) == 0.0


VERBS = ("Expands", "Opens", "Names", "Signs", "Extends", "Launches", "Selects", "Joins", "Unveils", "Rates")
NOTICES = [
    " ".join([town, verb, *VERBS[: i % 3], "Retailer in", TOWNS[-i]])
    for i, (town, verb) in enumerate(zip(TOWNS, VERBS, strict=True))
]
SENTENCES = [f"Retailer of {town} says sales are no better" for town in TOWNS]


@pytest.mark.parametrize(
    ("titles", "usual", "expected"),
    [
        (NOTICES, SENTENCES, True),
        (NOTICES, NOTICES, False),  # an outlet that writes all its headlines so
        (NOTICES[:5] + SENTENCES[:5], SENTENCES, False),  # reports, and reactions of companies
    ],
)
def test_headlines_in_another_style_than_the_stream_are_notices(
    titles: list[str], usual: list[str], expected: bool
) -> None:
    """Press releases and notices are written In Title Case, the headlines of the newsroom as sentences."""
    members = [window_item(i, f"word{i}", title=title) for i, title in enumerate(titles)]
    others = [window_item(100 + i, f"other{i}", title=title) for i, title in enumerate(usual * 3)]

    assert is_routine(cluster_of(*members), deque([*others, *members])) is expected


def test_many_outlets_in_title_case_are_news() -> None:
    """What is the style of one publisher does not count where none has half of the items."""
    members = [
        window_item(i, f"word{i}", title=title, source=f"{i}.example") for i, title in enumerate(NOTICES)
    ]

    assert not is_routine(cluster_of(*members), deque(members))


TERMS = ("retail", "sale")


def send_series(stream: DetectorStream, day: float, count: int, terms: tuple[str, ...] = TERMS) -> None:
    """Send ``count`` items with these terms from 08:00 of the day on."""
    for i in range(count):
        stream.send(day * 1440 + i, terms=tuple((term, 1.0) for term in terms))


def quiet_month(stream: DetectorStream, start_day: int, end_day: int) -> None:
    """Send unrelated items, so that the baseline knows every day."""
    for hour in range(start_day * 24, end_day * 24):
        stream.send(hour * 60, f"topic{hour}")


@pytest.mark.parametrize(
    ("days", "terms", "fired"),
    [
        ((0, 30), TERMS, 1),  # the second month is expected
        ((0, 30.25), TERMS, 2),  # at another time of day
        ((0, 30), ("estmark",), 2),  # one term comes back by chance
        ((0, 30, 61), ("estmark",), 2),  # but not twice at that hour
    ],
)
def test_what_returns_at_the_same_time_of_day_is_expected(
    days: tuple[float, ...], terms: tuple[str, ...], fired: int
) -> None:
    """Half of the earlier peak: 16 of 20 are no event."""
    stream, known = DetectorStream(), -8
    for day in days:
        quiet_month(stream, known, int(day))
        known = int(day) + 1
        send_series(stream, day, 20, terms)
    assert len(stream.fired) == fired


def test_far_more_than_the_last_time_fires() -> None:
    """Half of 20 is expected, four times as much is an event."""
    stream = DetectorStream()
    quiet_month(stream, -8, 0)
    send_series(stream, 0, 20)
    quiet_month(stream, 1, 30)
    send_series(stream, 30, 45)
    assert [event.size for event in stream.fired] == [16, 40]
    assert stream.fired[1].expected == 10.0


def test_a_series_stays_expected_while_it_lasts() -> None:
    """Two hours after it began, another item comes; half of 20 items are expected all the time."""
    stream = DetectorStream()
    quiet_month(stream, -8, 0)
    send_series(stream, 0, 20)
    quiet_month(stream, 1, 30)
    send_series(stream, 30, 20)
    stream.send(30 * 1440 + 130, terms=tuple((term, 1.0) for term in TERMS))

    assert len(stream.fired) == 1


def test_the_memory_is_saved_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restored detector knows the bursts; the oldest are dropped."""
    stream = DetectorStream()
    send_series(stream, 0, 20)
    restored = BurstDetector.load(stream.detector.dump(), RULE)
    assert restored.series.bursts == stream.detector.series.bursts != []

    monkeypatch.setattr(routine, "MAX_ENTRIES", 1)
    send_series(stream, 0.2, 20, ("ferry", "estmark"))
    assert [burst.terms for burst in stream.detector.series.bursts] == [["estmark", "ferry"]]


def test_old_entries_expire() -> None:
    """After 400 days, when the next burst is recorded."""
    memory, stream = SeriesMemory(), DetectorStream()
    send_series(stream, 0, 20)
    (cluster,) = stream.detector.clusters.by_key.values()
    memory.record(cluster, 16, "en", 16, START_MS)
    cluster.key += 1
    memory.record(cluster, 16, "en", 16, START_MS + 401 * DAY_MS)
    assert [burst.at_ms for burst in memory.bursts] == [START_MS + 401 * DAY_MS]
    assert memory.expected_items(cluster, START_MS + 401 * DAY_MS + MINUTE_MS) == 0.0
