"""Memory of series: what comes back at the same time of day is expected."""

from __future__ import annotations

import pytest

from aggregator.events.detection import BurstDetector, series
from aggregator.events.detection.series import SeriesMemory
from aggregator.time_units import DAY_MS, MINUTE_MS
from tests.support.detector_stream import RULE, START_MS, DetectorStream

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

    monkeypatch.setattr(series, "MAX_ENTRIES", 1)
    send_series(stream, 0.2, 20, ("ferry", "estmark"))
    assert [burst.terms for burst in stream.detector.series.bursts] == [["estmark", "ferry"]]


def test_words_of_the_calendar_are_not_common_terms() -> None:
    """Sales of May return as sales of June."""
    stream = DetectorStream()
    send_series(stream, 0, 20, ("march", "retail", "sale"))
    assert [burst.terms for burst in stream.detector.series.bursts] == [["retail", "sale"]]


def test_old_entries_expire() -> None:
    """After 400 days, when the next burst is recorded."""
    memory, stream = SeriesMemory(), DetectorStream()
    send_series(stream, 0, 20)
    (cluster,) = stream.detector.clusters.by_key.values()
    memory.record(cluster, START_MS)
    cluster.key += 1
    memory.record(cluster, START_MS + 401 * DAY_MS)
    assert [burst.at_ms for burst in memory.bursts] == [START_MS + 401 * DAY_MS]
    assert memory.expected_items(cluster, START_MS + 401 * DAY_MS + MINUTE_MS) == 0.0
