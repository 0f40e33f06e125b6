"""Burst rule of the detector: boundaries, what counts, time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aggregator.domain import article_number_at
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule
from aggregator.time_units import MINUTE_MS
from tests.support.detector_stream import RULE, START_MS, DetectorStream, time_ms


@pytest.mark.parametrize(("items", "fires"), [(15, False), (16, True)])
def test_more_than_15_items_fire(items: int, fires: bool) -> None:
    """15 items do not fire: "more than 15" is 16."""
    stream = DetectorStream()

    stream.send_burst(items)

    assert bool(stream.fired) is fires


@pytest.mark.parametrize(("last", "fires"), [(240, True), (240 + 1 / 60_000, False)])
def test_an_item_exactly_one_window_old_counts(last: float, fires: bool) -> None:
    """The 16th item comes exactly 4 h after the first, or one millisecond later."""
    stream = DetectorStream()
    stream.send_burst(15, step=16)

    stream.send(last)

    assert bool(stream.fired) is fires


def test_two_simultaneous_clusters_are_two_events() -> None:
    """Unrelated items join neither."""
    stream = DetectorStream()

    for i in range(16):
        stream.send(i, "harbour bridge collapse")
        stream.send(i + 0.3, "election result capital")
        stream.send(i + 0.6, f"lonely{i} cluster{i} here{i}")

    assert len(stream.fired) == 2
    assert all(event.size == 16 for event in stream.fired)


def test_duplicates_of_one_source_are_sightings_and_of_other_sources_items() -> None:
    """16 duplicates by one publisher do not fire; by 16 publishers they do."""
    one_source, many_sources = DetectorStream(), DetectorStream()
    for stream in (one_source, many_sources):
        first = stream.send(0, source="s0.example")
        for i in range(1, 16):
            source = "s0.example" if stream is one_source else f"s{i}.example"
            fields: dict[str, Any] = {
                "verdict": "duplicate",
                "canonical_first": first.first_version,
                "exact": True,
            }
            stream.send(i, source=source, **fields)

    assert one_source.fired == []
    assert [len(event.sources) for event in many_sources.fired] == [16]


def test_what_an_outlet_adds_to_its_own_text_is_listed_and_not_counted() -> None:
    """It is not a second report; before and after the event fires, also under another spelling."""
    stream = DetectorStream(rule=BurstRule(items=3))
    first = stream.send(0, source="Wire")
    own: dict[str, Any] = {"verdict": "duplicate", "canonical_first": first.number, "source": "wire"}
    own["keep"] = True
    early = stream.send(1, **own)
    stream.send_burst(2, start=2)
    assert stream.fired == []
    stream.send(4)
    late = stream.send(5, **own)
    stream.send(6, **{**own, "keep": False})
    stream.tick(7)

    event = stream.last_event()
    assert {early.id, late.id} < {*event.items} and (event.size, event.sightings) == (6, 1)
    assert len(event.sources) == 4


def test_sightings_do_not_change_the_size() -> None:
    """They are counted separately, and no item is later for them."""
    stream = DetectorStream()
    stream.send_burst()
    canonical = article_number_at(START_MS, 1)

    stream.send(30, verdict="duplicate", canonical_first=canonical, source="outlet1.example")

    event = stream.last_event()
    assert (event.size, event.sightings) == (16, 1)
    assert event.last_seen_ms == START_MS + 15 * MINUTE_MS


def test_an_update_of_an_article_does_not_count_twice() -> None:
    """A new version has a new number and the first number of the article."""
    stream = DetectorStream()
    stream.send_burst(15)

    stream.send(16, first_version=article_number_at(START_MS, 1), id="a1")

    assert stream.fired == []


def test_an_update_keeps_the_place_of_its_article_and_is_recorded() -> None:
    """Of an event that is open or fires later, also when the first version has left the window."""
    stream = DetectorStream(rule=BurstRule(items=3))
    items = [stream.send(n) for n in range(3)]
    for item, minute in zip(items, (2.5, 160, 320), strict=True):
        now_ms = time_ms(minute)
        update = replace(item, number=article_number_at(now_ms), arrived_ms=now_ms, published_at_ms=now_ms)
        stream.observe(update)
        stream.send_burst(4, start=minute + 1, step=50)
    stream.tick(500)

    event = stream.last_event()
    assert event.updates == {"a1": time_ms(2.5), "a2": time_ms(160), "a3": time_ms(320)}
    assert (event.size, event.times[:3]) == (15, tuple(map(time_ms, range(3))))


def test_items_slightly_out_of_order_are_sorted_by_time() -> None:
    """Arrival order across index spaces is not exact; the window is sorted."""
    stream = DetectorStream()
    stream.send_burst(15, start=5, step=16)

    stream.send(0)

    assert len(stream.fired) == 1
    stream.tick(241)
    assert stream.detector.window[0].at_ms == START_MS + 5 * MINUTE_MS


def test_an_item_from_before_the_window_joins_without_firing() -> None:
    """It does not turn the clock back."""
    stream = DetectorStream()
    stream.send_burst(15)
    stream.tick(230)

    late = stream.item(-60, "harbour bridge collapse")
    stream.detector.observe(late, late.arrived_ms)

    assert stream.detector.drain_changes() == []


def test_the_detector_recovers_from_a_clock_that_ran_ahead() -> None:
    """A tick over one window behind the newest item resets the clock; detection continues."""
    stream = DetectorStream()
    stream.send(60 * 24 * 365)
    stream.tick(0)

    stream.send_burst(16, start=1)

    assert len(stream.fired) == 1
    assert stream.detector.clock_ms == START_MS + 16 * MINUTE_MS


def test_a_small_step_back_of_the_clock_changes_nothing() -> None:
    """Within one window the clock keeps its time until the ticks reach it."""
    stream = DetectorStream()
    stream.send_burst(15)

    stream.tick(-30)
    stream.send(16)

    assert len(stream.fired) == 1


@pytest.mark.parametrize("jump_h", [5, 24, 24 * 30])
def test_a_jump_forward_of_the_clock_closes_open_events(jump_h: int) -> None:
    """Hours without a tick: the old event closes once, and a new cluster fires as usual."""
    stream = DetectorStream()
    stream.send_burst()
    stream.send_burst(16, start=jump_h * 60, words="election result capital")

    assert [event.status for event in stream.events_of_kind("closed")] == ["closed"]
    assert len(stream.fired) == 2 and len({event.id for event in stream.fired}) == 2


def test_a_backlog_fires_only_for_recently_published_items() -> None:
    """After six hours of silence, items published over one window ago do not fire."""
    stream = DetectorStream()
    stream.send(0, "quiet morning")
    for i in range(20):
        published_ms = START_MS + (60 + i) * MINUTE_MS
        stream.send(400, "harbour bridge collapse", published_at_ms=published_ms)
    assert stream.fired == []

    for i in range(16):
        stream.send(
            400 + i / 10, "ferry passengers rescued", published_at_ms=START_MS + (380 + i) * MINUTE_MS
        )
    assert len(stream.fired) == 1


def test_ten_times_the_volume_of_unrelated_items_does_not_fire() -> None:
    """Volume alone is not a cluster."""
    stream = DetectorStream()
    for i in range(400):
        stream.send(i / 10, f"topic{i} place{i} person{i}")

    assert stream.fired == []


@pytest.mark.parametrize(("words", "joins"), [("mayor parade", False), ("harbour parade", True)])
def test_the_last_items_of_an_event_take_in_nothing_else(words: str, joins: bool) -> None:
    """The two that are left also name the mayor's parade, which the event was not about."""
    stream = DetectorStream()
    for hour in range(-200, 0):
        stream.send(hour * 60, f"ferry topic{hour}")
    stream.send_burst(16)
    stream.send_burst(2, 16, words="harbour mayor parade")
    (event,) = stream.fired
    for i in range(3):
        stream.send(4 * 60 + 15.5 + i / 10, terms=tuple((word, 1.0) for word in words.split()))

    assert stream.detector.events[0].id == event.id
    assert (stream.detector.events[0].size > 18) is joins


def test_work_in_steps_gives_the_same_state_as_one_call() -> None:
    """The start of a minute in which many clusters grew takes several steps."""
    whole, stepped, stream = BurstDetector(RULE), BurstDetector(RULE), DetectorStream()
    words = ("harbour bridge collapse", "orchard strike vote", "lantern museum fire")
    for i in range(60):
        item = stream.item(0.01 * i, words[i % 3])
        whole.observe(item, item.arrived_ms)
        stepped.observe(item, item.arrived_ms)
    first, last = stream.item(2, "harbour bridge collapse"), stream.item(2, "harbour bridge collapse")

    whole.observe(first, first.arrived_ms)
    step_count = len(list(stepped.advance_clock_steps(first.arrived_ms)))
    assert step_count >= 3
    stepped.observe(first, first.arrived_ms)
    whole.observe(last, last.arrived_ms)  # with the first, a twentieth of the cluster
    stepped.observe(last, last.arrived_ms)
    assert stepped.dump() == whole.dump()

    list(whole.tick(last.arrived_ms + 1))
    assert list(stepped.tick(last.arrived_ms + 1))
    assert stepped.dump() == whole.dump()
    assert len(list(stepped.dump_chunks())) > len(words)
    assert stepped.drain_changes() == whole.drain_changes()
