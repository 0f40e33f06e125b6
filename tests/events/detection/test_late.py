"""Late articles: those of a wrong time zone count, the others teach little, and deletions unlearn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.domain import Problem, StreamItem
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.late import MAX_TAUGHT_PER_DAY
from aggregator.events.detection.model import EditorOverrides
from aggregator.events.detection.numbers import end_of, items_within
from aggregator.events.event import Event
from aggregator.events.selection import growth, severity, urgency
from aggregator.index.keys import term_hash
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS
from tests.support.detector_stream import RULE, START_MS, DetectorStream

WEEK_AGO_MS = START_MS - 7 * DAY_MS
DRILL = "harbour bridge drill"


def desk_with_a_week(sources: int = 40) -> DetectorStream:
    """A declared history of 8 days, an article an hour of each source."""
    stream = DetectorStream()
    for hour in range(8 * 24, 0, -1):
        for source in range(sources):
            at_ms = START_MS - hour * HOUR_MS
            words = f"topic{hour} place{source}"
            stream.send(0, words, published_at_ms=at_ms, backfill=True, source=f"daily{source}.example")
    return stream


def taught(stream: DetectorStream, term: str) -> int:
    """How many documents of the history hold a term."""
    return sum(counts.get(term, 0) for counts in stream.detector.baseline.counts_by_hour.values())


@pytest.fixture(scope="module")
def week() -> bytes:
    """The state of a desk with 8 days of declared history."""
    return desk_with_a_week().detector.dump()


@pytest.fixture
def stream(week: bytes) -> DetectorStream:
    """That desk."""
    found = DetectorStream()
    found.item_count = 1_000_000
    found.detector = BurstDetector.load(week, RULE)
    return found


@pytest.mark.parametrize("items", [10, 300])
@pytest.mark.parametrize(
    "sources",
    [
        ["evil.example"],
        [f"news{n}.evil.example" for n in range(20)],
        ["daily1.example"],
        ["daily1.example", "daily2.example", "daily3.example"],
    ],
)
@pytest.mark.parametrize("days", [0, 7, 30])
def test_no_source_hides_an_event_by_forged_dates(
    stream: DetectorStream, items: int, sources: list[str], days: int
) -> None:
    """Dated a week ago at this hour, or spread; of new sources and of known ones."""
    for n in range(items):
        age_ms = days * DAY_MS * n // items + 5 * HOUR_MS if days else 7 * DAY_MS + n * HOUR_MS // items
        stream.send(0, DRILL, published_at_ms=START_MS - age_ms, source=sources[n % len(sources)])
    assert not stream.fired
    for n in range(24):
        stream.send(1 + n / 24, "harbour bridge collapse", source=f"daily{n}.example")
    stream.tick(6)

    assert len(stream.fired) == 1


def test_late_articles_teach_of_the_time_when_their_source_was_known(stream: DetectorStream) -> None:
    """At most three a day, also of the past that a key declares that is bound to the source; counted."""
    bound = {"backfill": True, "problems": int(Problem.late)}
    for fields in (
        {"source": "Daily1.example"},
        {"source": "Daily2.EXAMPLE", **bound},
        {"source": "new.example"},
    ):
        for _ in range(9):
            stream.send(0, DRILL, published_at_ms=WEEK_AGO_MS, **fields)
    assert taught(stream, "drill") == 2 * MAX_TAUGHT_PER_DAY
    assert stream.detector.learned_history.late == "3 of 9 from Daily1.example"

    for _ in range(9):
        stream.send(0, DRILL, published_at_ms=WEEK_AGO_MS, source="archive.example", backfill=True)
    assert taught(stream, "drill") == 2 * MAX_TAUGHT_PER_DAY + 9


def test_a_wire_learns_from_its_own_backlog() -> None:
    """With fewer than five sources every late article teaches."""
    stream = DetectorStream()
    for n in range(50):
        stream.send(0, DRILL, published_at_ms=WEEK_AGO_MS + n * HOUR_MS, source="wire.example")

    assert taught(stream, "drill") == 50


@pytest.mark.parametrize(("late_h", "fires"), [(5.0, True), (8.5, True), (5.25, False), (40.0, False)])
def test_dates_in_a_wrong_time_zone_count_at_their_arrival(late_h: float, fires: bool) -> None:
    """All are late by the same hours; a backlog is not, nor by half hours."""
    stream = DetectorStream()
    for n in range(24):
        stream.send(0, published_at_ms=START_MS - round(late_h * HOUR_MS) - n * MINUTE_MS, source=f"{n % 12}")

    assert bool(stream.fired) is fires


def test_a_source_that_was_in_time_has_no_wrong_zone() -> None:
    """After an outage of the crawler its articles count at their dates."""
    stream = DetectorStream()
    for n in range(24):
        stream.send(0, f"topic{n}", published_at_ms=START_MS, source=f"{n}")
    for n in range(24):
        stream.send(600, published_at_ms=START_MS + 5 * HOUR_MS - n, source=f"{n}")

    assert not stream.fired


def deleted(item: StreamItem) -> StreamItem:
    """The entry of the stream that deletes an article."""
    hashes = tuple(term_hash(term) for term, _ in (*item.terms, ("\0" + item.lang, 1.0)))
    return replace(item, kind="deleted", terms=(), title="", deleted_terms=hashes)


@pytest.mark.parametrize("age_ms", [0, 7 * DAY_MS])
def test_a_deletion_unlearns(stream: DetectorStream, age_ms: int) -> None:
    """Late or live; what was never taught is not subtracted from what others taught."""
    before = {hour: dict(counts) for hour, counts in stream.detector.baseline.counts_by_hour.items()}
    declared = [
        stream.send(0, "Egyptian harbour", published_at_ms=START_MS - age_ms, backfill=age_ms > 0, lang="en",
                    terms=(("egyptian", 1.0), ("harbour", 1.0)))
        for _ in range(3)
    ]  # fmt: skip
    forged = [stream.send(0, "harbour", published_at_ms=WEEK_AGO_MS, source="evil.example") for _ in range(5)]
    assert taught(stream, "egypt") == taught(stream, "harbour") == 3
    for item in (*forged, *declared):
        stream.observe(deleted(item))

    assert stream.detector.baseline.counts_by_hour == before | {
        hour: {} for hour in stream.detector.baseline.counts_by_hour.keys() - before.keys()
    }


@pytest.mark.parametrize("removed_first", [False, True])
def test_an_event_that_falls_below_its_number_ends(removed_first: bool) -> None:
    """The service also removes a deleted article from its event. What is left may be of another event."""
    stream = DetectorStream()
    sent = [stream.send(n / 10) for n in range(20)]
    if removed_first:
        removed = {item.id: (item.first_version, "") for item in sent[:5]}
        stream.detector.set_overrides(EditorOverrides(placed=removed))
    assert len(stream.detector.events) == 1
    for item in sent[:5]:
        stream.observe(deleted(item))

    assert [change.kind for change in stream.changes][-1] == "closed" and not stream.detector.events

    stream.send_burst(2, start=3)
    first, second = stream.fired
    assert first.id != second.id and second.size == 16


def test_articles_of_yesterday_that_arrive_now_are_no_fresh_news() -> None:
    """The story had slowed down; a new source brings its articles of the last day, and nothing is urgent."""
    stream = DetectorStream()
    for n in range(16):
        stream.send(n, published_at_ms=START_MS + n * MINUTE_MS)
    last, now_ms = Event.of(stream.last_event()), START_MS + 3 * HOUR_MS
    assert severity(last, now_ms) == "fading"

    for n in range(12):
        stream.send(179, published_at_ms=START_MS - (13 * n + 300) * MINUTE_MS, source="weekly.example")
    event = Event.of(stream.last_event())

    assert event.size == 28 and len(event.claims) == 12
    assert (event.last_seen_ms, event.first_seen_ms) == (last.last_seen_ms, last.first_seen_ms)
    assert (severity(event, now_ms), growth(event, now_ms).last_hour) == ("fading", 0)
    assert urgency(event, now_ms)[1] == pytest.approx(urgency(last, now_ms)[1], abs=0.1)
    assert items_within(event, START_MS + HOUR_MS, now_ms) == 0
    assert max(event.times) == START_MS + 179 * MINUTE_MS  # the article is not taken at its word
    assert end_of(event, event.last_seen_ms) == (False, False)


def test_one_article_late_by_whole_hours_is_no_time_zone() -> None:
    """A third one is, since three of three are late by the same hours."""
    stream = DetectorStream()
    for n in range(16):
        stream.send(n, published_at_ms=START_MS + n * MINUTE_MS)
    late = [
        stream.send(20, published_at_ms=START_MS - 700 * MINUTE_MS, source=f"{n}.example") for n in range(3)
    ]

    claims = stream.last_event().claims
    assert [claims.get(item.id) for item in late] == [START_MS - 700 * MINUTE_MS] * 2 + [0]


def test_an_event_whose_last_item_has_no_date_says_that_it_arrived() -> None:
    """With a date the same item says that it was published."""
    undated, dated = DetectorStream(), DetectorStream()
    for n in range(17):
        dated.send(n, published_at_ms=START_MS + n * MINUTE_MS)
        undated.send(n, published_at_ms=START_MS + n * MINUTE_MS if n < 16 else None)

    ends = [end_of(found, found.last_seen_ms) for found in (dated.last_event(), undated.last_event())]
    assert ends == [(False, False), (True, False)]
