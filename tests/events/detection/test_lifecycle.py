"""Life of an event: firing, reason, fading, revival, closing, merging, removal of articles, its counts."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase

import pytest

from aggregator.domain import article_number_at
from aggregator.events.detection import lifecycle
from aggregator.events.detection.description import typical_headline
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.lifecycle import OpenEvent
from aggregator.events.detection.model import BurstRule, EditorOverrides
from aggregator.events.detection.numbers import TIMELINE_BUCKET_MS, Item, with_items
from aggregator.events.figures import Toll
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.events.detection.window_items import cluster_of, window_item
from tests.support.detector_stream import START_MS, DetectorStream, time_ms
from tests.support.factories import event as stored_event


def opened(*numbers: int, id_: str = "e1") -> OpenEvent:
    """An event of these items."""
    event = OpenEvent(id_, cluster_key=1, detected_at_ms=0, expected=0.4567, window_ms=20)
    for number in numbers:
        event.add(window_item(number, source=f"s{number % 2}", lang="en", cosine=0.12345))
    return event


def test_items_may_be_added_out_of_order() -> None:
    """First and last time are those of the items, also if the first item is at the time 0 or negative."""
    event = opened(5, 0, 9, -3).to_event()

    assert (event.first_seen_ms, event.last_seen_ms, event.size) == (-3, 9, 4)
    assert event.items == ("a5", "a0", "a9", "a-3")


def test_the_timeline_counts_items_in_intervals_of_ten_minutes() -> None:
    """The last millisecond belongs to the interval; empty intervals are left out."""
    event = opened(3 * TIMELINE_BUCKET_MS, TIMELINE_BUCKET_MS - 1, 0).to_event()

    assert event.timeline == ((0, 2), (3 * TIMELINE_BUCKET_MS, 1))
    assert event.rate == 2


def test_a_voice_counts_at_its_latest_item() -> None:
    """Also after a merge, and items without a source are one voice."""
    event = opened(1, 2, 3 * TIMELINE_BUCKET_MS)  # voices s1, s0, s0
    event.add(window_item(TIMELINE_BUCKET_MS, source=""))
    event.absorb(opened(5 * TIMELINE_BUCKET_MS + 1, id_="e2"))  # s1

    assert event.to_event().voices == tuple((n * TIMELINE_BUCKET_MS, 1) for n in (1, 3, 5))


def test_the_value_is_rounded_and_has_no_repeated_source() -> None:
    """Decimals without meaning would only enlarge the stored event."""
    event = opened(1, 2, 3).to_event()

    assert (event.expected, event.cosines) == (0.46, (0.123,) * 3)
    assert (event.sources, event.languages) == (("s1", "s0"), ("en",))


def test_items_without_source_or_language_add_none() -> None:
    """An unnamed source is not shown as an empty name."""
    event = opened()
    event.add(window_item(1, source="", lang=""))

    assert (event.to_event().sources, event.to_event().languages, event.size) == ((), (), 1)


def test_lists_are_limited_while_counts_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit an item is counted and not listed."""
    monkeypatch.setattr(lifecycle, "MAX_EVENT_ITEMS", 2)

    event = opened(1, 2, 3)

    assert (event.size, event.to_event().items, event.to_event().sources) == (3, ("a1", "a2"), ("s1", "s0"))
    assert event.to_event().numbers == (1, 2)
    event.absorb(opened(4, id_="e2"))
    assert (event.size, list(event.items)) == (4, ["a1", "a2"])


def test_an_absorbed_event_leaves_its_items_and_its_own_absorbed_ones() -> None:
    """Counts and times of both, intervals added."""
    event, other = opened(10, 20), opened(5, 15, id_="e2")
    other.absorbed, other.sightings, other.announced_size = ["e3"], 2, 2

    event.absorb(other)
    shown = event.to_event()

    assert (shown.size, shown.sightings, shown.first_seen_ms, shown.last_seen_ms) == (4, 2, 5, 20)
    assert (shown.timeline, shown.peak) == (((0, 4),), 4)
    assert list(event.items) == ["a10", "a20", "a5", "a15"]
    assert shown.numbers == (10, 20, 5, 15)
    assert event.absorbed == ["e2", "e3"]


def test_terms_are_shown_in_their_surface_form() -> None:
    """A term that no headline contains is left out, unless that leaves none."""
    event = opened(1)
    event.terms = ["thornbi", "detail1", "storm"]

    event.surface_forms = {"thornbi": "Thornby", "detail1": ""}
    assert event.to_event().terms == ("Thornby", "storm")
    event.surface_forms = dict.fromkeys(event.terms, "")
    assert event.to_event().terms == ("thornbi", "detail1", "storm")


def test_an_event_fires_once_with_all_its_fields() -> None:
    """A growing event is not announced again; it has every field an editor needs."""
    stream = DetectorStream()

    stream.send_burst(40)

    (event,) = stream.fired
    last = stream.last_event()
    assert event.status == "breaking"
    assert (event.size, event.peak, last.size, last.peak) == (16, 16, 40, 40)
    assert event.items == tuple(f"a{i}" for i in range(1, 17))
    assert last.items[:16] == event.items and len(last.cosines) == 40
    assert event.detected_at_ms == START_MS + 15 * MINUTE_MS
    assert (event.first_seen_ms, last.last_seen_ms) == (START_MS, START_MS + 39 * MINUTE_MS)
    assert event.timeline == ((START_MS, 10), (START_MS + 10 * MINUTE_MS, 6))
    assert event.rate == 10
    assert set(event.terms[:3]) == {"Harbour", "bridge", "collapse"}
    assert event.reason.startswith("16 items from 16 outlets in 15 min, where none is usual in 4 h; ")
    assert event.title.startswith("Harbour bridge collapse")
    assert last.id == event.id


def test_the_reason_does_not_count_unnamed_sources() -> None:
    """Items without a source name are not reported as "0 sources"."""
    stream = DetectorStream()

    for minute, aspect in enumerate(ascii_lowercase[:16]):
        stream.send(minute, source="", title=f"{aspect * 4} bridge {aspect * 5}")

    assert stream.fired[0].reason.startswith("16 items in 15 min, where ")


def test_the_reason_counts_time_from_the_first_item() -> None:
    """As the event does: not from a doubtful one, hours before."""
    times = {"a": 0, "b": 2 * HOUR_MS, "c": 2 * HOUR_MS + 15 * MINUTE_MS}
    items = {id_: Item(1.0, at_ms, id_, doubtful=id_ == "a") for id_, at_ms in times.items()}
    found = with_items(stored_event("e1", "Bridge"), items, ())
    reason = DetectorStream().detector.open_events._format_reason(found, 2, 0)

    assert found.first_seen_ms == times["b"]
    assert reason.startswith("3 items from 3 outlets (1 doubtful and earlier) in 15 min, where ")


def test_an_event_fades_revives_and_closes_under_one_id() -> None:
    """Breaking -> fading -> breaking -> fading -> closed, with one alert."""
    stream = DetectorStream()
    stream.send_burst(30)
    stream.tick(256)
    assert stream.last_event().status == "fading"
    stream.send_burst(30, start=257, step=0.1)
    stream.tick(261)
    assert stream.last_event().status == "breaking"
    stream.tick(257 + 3 + 241)

    assert len(stream.fired) == 1
    assert [event.id for event in stream.events_of_kind("closed")] == [stream.fired[0].id]
    assert stream.last_event().status == "closed"
    assert stream.detector.events == []


def test_the_headline_has_no_lower_toll_than_two_outlets_report() -> None:
    """Within a minute, also while the event fades; one outlet alone decides nothing."""
    stream = DetectorStream(rule=BurstRule(items=5))
    for minute in range(30):
        stream.send(minute, title="Harbour bridge collapse kills at least 8, 9 missing", lang="en")
    known = ((time_ms(0), "dead", 8), (time_ms(0), "missing", 9))
    assert stream.last_event().tolls == known
    more = {"title": "Bridge: 1,500 dead after harbour collapse, 4 missing", "lang": "en"}
    stream.send(30, **more, source="one.example")
    stream.send(31, **more, source="one.example")
    stream.tick(33)
    assert "8" in stream.last_event().title

    stream.tick(256)
    assert stream.last_event().status == "fading"
    wrong = [
        stream.send(n, **more, source=f"{n}.example", published_at_ms=time_ms(n - 9)) for n in (257, 258)
    ]
    stream.tick(260)

    assert stream.last_event().status == "fading" and "1,500 dead" in stream.last_event().title
    later = ((time_ms(30), "dead", 1500), (time_ms(30), "missing", 4))  # first reported then
    assert stream.last_event().tolls == (*known, *later)

    for item in wrong:
        stream.observe(replace(item, kind="deleted", arrived_ms=time_ms(261)))
    assert stream.last_event().tolls == known  # one outlet says the others


def test_a_toll_is_of_the_arrival_of_its_first_report() -> None:
    """So what an editor could not have seen is new; published before counts in the order of tolls."""
    stream = DetectorStream(rule=BurstRule(items=5))
    for minute in range(8):
        stream.send(minute, title="Harbour bridge collapse kills at least 8", lang="en")
    for minute, number, before in ((20, 17, 12), (21, 17, 12), (22, 12, 17), (23, 12, 17), (24, 12, 17)):
        title, published_ms = f"Harbour bridge collapse kills {number}", time_ms(minute - before)
        stream.send(minute, title=title, lang="en", published_at_ms=published_ms)
    stream.tick(26)

    assert stream.last_event().tolls == ((time_ms(0), "dead", 8), (time_ms(20), "dead", 17))


def test_an_updated_headline_is_the_event_s_within_a_minute() -> None:
    """Its figures are of the time of the update, not of the first version."""
    stream = DetectorStream(rule=BurstRule(items=5))
    items = [
        stream.send(n, title="Harbour bridge collapse kills at least 8", lang="en", source=f"s{n}.example")
        for n in range(8)
    ]
    stream.tick(10)
    for n, item in enumerate(items[1:3]):
        number, at_ms = article_number_at(time_ms(20 + n)), time_ms(20 + n)
        title = "Harbour bridge collapse kills at least 17"
        stream.observe(replace(item, number=number, arrived_ms=at_ms, published_at_ms=at_ms, title=title))
    stream.tick(23)

    event = stream.last_event()
    assert event.tolls == ((time_ms(0), "dead", 8), (time_ms(20), "dead", 17))
    assert (event.size, event.title) == (8, "Harbour bridge collapse kills at least 17")


@pytest.mark.parametrize("to", ["", "split"])
def test_an_undone_removal_or_split_restores_the_toll(to: str) -> None:
    """At once, and of both events; a later toll and a correction stay."""
    stream, title = DetectorStream(rule=BurstRule(items=5)), "Harbour bridge collapse kills at least {}"
    items = [
        stream.send(n, title=title.format(dead), lang="en", source=f"{n}.example")
        for n, dead in enumerate((15, 15, 15, 15, 15, 15, 19, 19, 17, 17, 17))
    ]
    stream.tick(12)
    whole = stream.last_event()
    gone = items[7:8] if not to else items[6:8]

    def tolls(place: str, revision: int) -> list[tuple[Toll, ...]]:
        placed = {item.id: (item.first_version, place) for item in gone}
        stream.detector.set_overrides(EditorOverrides(revision, placed=placed))
        return [event.tolls for event in stream.detector.events]

    steps = [(time_ms(0), "dead", 15), (time_ms(6), "dead", 19), (time_ms(8), "dead", 17)]
    assert whole.tolls == tuple(steps)
    assert tolls(to, 1)[0] == (steps[0], steps[2])
    if to:
        assert stream.detector.events[1].tolls == (steps[1],)
    assert tolls(whole.id, 2) == [tuple(steps)]
    stream.detector = BurstDetector.load(stream.detector.dump(), stream.detector.rule)
    assert {*stream.detector.events[0].items} == {*whole.items}


def test_a_language_of_one_item_alone_is_not_listed() -> None:
    """The language of a headline is a guess; of a small event each counts."""
    event, other = OpenEvent("e1", 1, 0, 0.0, 0), OpenEvent("e2", 2, 0, 0.0, 0)
    event.add(window_item(1, "storm", lang="it"))
    assert event.to_event().languages == ("it",)
    for number, lang in enumerate(("en", "en", "de"), 2):
        event.add(window_item(number, "storm", lang=lang))
    assert event.to_event().languages == ("en",)
    other.add(window_item(9, "storm", lang="de"))
    event.absorb(other)
    assert event.to_event().languages == ("en", "de")


def test_a_corrected_toll_is_recorded_and_no_headline_has_the_former_one() -> None:
    """At once, though no article comes after it; most outlets may return to the former one."""
    stream, title = DetectorStream(rule=BurstRule(items=5)), "Harbour bridge collapse kills at least {}"
    known: list[Toll] = []
    for first, last, number in ((0, 9, 8), (10, 13, 140), (14, 25, 41), (26, 45, 140), (46, 47, 142)):
        for minute in range(first, last + 1):
            stream.send(minute, title=title.format(number), lang="en", source=f"{minute}.example")
        stream.tick(last + 1)
        known.append((time_ms(10 if number == 140 else first), "dead", number))

        assert stream.last_event().tolls == tuple(known)
        assert stream.last_event().title == title.format(number)


def test_an_item_like_hardly_any_other_is_doubtful() -> None:
    """Or earlier than the first report; one that left the window stays as it was."""
    alike = [window_item(n, "storm coast ferry") for n in (1, 2, 3)]
    other = window_item(4, "storm museum ticket")
    event = opened(1, 2, 3, 4)

    assert lifecycle._mark_doubtful(event, cluster_of(*alike, other)) == {"a4"}
    event.first = (2, "a2", "s0")
    assert lifecycle._mark_doubtful(event, cluster_of(*alike)) == {"a1", "a4"}
    assert event.to_event().doubtful == ("a1", "a4")
    assert typical_headline(cluster_of(other, *alike), lambda _: 1.0, doubtful={"a4"}).id != "a4"
    assert typical_headline(cluster_of(other), lambda _: 1.0, doubtful={"a4"}).id == "a4"


def test_silence_longer_than_the_window_forgets_every_cluster() -> None:
    """Events close; window, clusters and their numbers are empty."""
    stream = DetectorStream()
    stream.send_burst(40)

    stream.tick(40 + 241)

    assert stream.events_of_kind("closed") and not stream.detector.window
    assert stream.detector.clusters.by_key == {} and stream.detector.clusters.key_by_number == {}


def test_a_closed_event_stays_closed() -> None:
    """The same cluster later is a new event with another id."""
    stream = DetectorStream()
    for i in range(200):
        stream.send(i / 20 - 20, f"topic{i} place{i}")
    stream.send_burst()
    stream.tick(600)
    stream.send_burst(24, start=601)

    assert len({event.id for event in stream.fired}) == 2


def test_converging_clusters_become_one_event() -> None:
    """Reports that name both sides of a cluster merge its two events; the first one survives."""
    stream = DetectorStream()
    for i in range(20):
        stream.send(i, "harbour bridge collapse")
        stream.send(i + 0.5, "ferry passengers rescued")
    assert len(stream.fired) == 2
    for i in range(60):
        stream.send(21 + i / 10, "harbour bridge collapse ferry passengers rescued")
    stream.tick(30)

    (absorbed,) = stream.events_of_kind("merged")
    survivor = next(event for event in stream.fired if event.id != absorbed.id)
    assert absorbed.merged_into == survivor.id and absorbed.status == "closed"
    last = [c.event for c in stream.changes if c.event.id == survivor.id][-1]
    assert last.size == 100
    assert absorbed.detected_at_ms >= survivor.detected_at_ms


def test_an_event_waits_for_others_of_its_story_before_it_is_announced() -> None:
    """Two fragments fire within a minute and are merged with the next one: one alert."""
    stream = DetectorStream()
    for i in range(18):
        stream.send(i / 100, "bridge collapse lorry" + " ferry" * (i % 3 == 2))
    for i in range(18):
        stream.send(0.2 + i / 100, "ferry drivers rescued divers" + " bridge" * (i % 3 == 2))
    assert len(stream.detector.events) == 2 and len(stream.fired) == 1

    stream.tick(600)

    assert [(c.at_ms - START_MS) // MINUTE_MS for c in stream.changes if c.kind == "fired"] == [0]
    assert [(event.size, event.absorbed) for event in stream.events_of_kind("closed")] == [(36, ())]
    assert stream.events_of_kind("merged") == []


def test_an_event_about_something_else_is_announced_at_once() -> None:
    """They share a word, and are two stories."""
    stream = DetectorStream()
    stream.send_burst(18, step=0.01, words="bridge collapse lorry")
    for i in range(18):
        stream.send(0.2 + i / 100, "ferry drivers rescued divers" + " bridge" * (i % 3 == 2))

    assert len(stream.fired) == 2


@pytest.mark.parametrize(("start", "survivor"), [(250, 1), (242, 0)])
def test_what_is_there_now_decides_which_event_survives(start: int, survivor: int) -> None:
    """Six items of an old event do not swallow 20 new ones; fourteen do, since the event is still large."""
    stream = DetectorStream()
    stream.send_burst(16, words="harbour bridge collapse")
    stream.send_burst(20, start=start, step=0.01, words="ferry passengers rescued pier")
    old, new = (
        stream.detector.clusters.by_key[e.cluster_key] for e in stream.detector.open_events.by_id.values()
    )
    events = [old.event_id, new.event_id]

    into, absorbed = stream.detector.merger._survivor(old, new)
    stream.detector.merger.merge(into, absorbed, stream.detector.clock_ms)
    stream.changes += stream.detector.drain_changes()

    assert [event.id for event in stream.detector.events] == [events[survivor]]
    (closed,) = stream.events_of_kind("merged")
    assert closed.merged_into == events[survivor]


def test_a_deleted_article_is_removed_from_its_event() -> None:
    """Its id goes; what is left is too small and ends, under the headline of another article."""
    stream = DetectorStream()
    stream.send_burst()
    title = stream.fired[0].title
    deleted = next(m for m in stream.detector.window if m.title == title)

    stream.observe(
        replace(stream.item(17, "x"), kind="deleted", id=deleted.id, first_version=deleted.first_version)
    )

    event = stream.last_event()
    assert deleted.id not in event.items and (event.size, event.status) == (15, "closed")
    assert event.title != title and event.title in {member.title for member in stream.detector.window}
