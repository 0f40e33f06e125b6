"""The burst rule on a clock: boundaries, what counts, time, life of an event, saving."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Generator
from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.domain import StreamItem, article_number_at
from aggregator.events.detection import (
    BurstDetector,
    BurstRule,
    Event,
    EventChange,
    clustering,
    key_terms,
    merge_evidence,
    state_codec,
)
from aggregator.events.detection import fragments as together
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.clustering import (
    JOIN_COSINE,
    MIN_ITEMS_TO_BE_MERGED,
    NORM_STALE_MINUTES,
    NORMS_PER_SLICE,
    Story,
)
from aggregator.events.detection.fragments import MERGE_SHARE
from aggregator.events.detection.headline import strip_desk_prefix
from aggregator.events.detection.items import MAX_TERM_WEIGHT
from aggregator.events.detection.key_terms import KeyTermCache

T = TypeVar("T")

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
DAY_MS = 24 * HOUR_MS
START_MS = 20_000 * DAY_MS + 8 * HOUR_MS
RULE = BurstRule()


class Wire:
    """A stream of our own: each item takes place at a time given in minutes."""

    def __init__(self, rule: BurstRule = RULE) -> None:
        self.detector = BurstDetector(rule)
        self.told: list[EventChange] = []
        self.count = 0

    def item(self, minute: float, words: str, **wanted: object) -> StreamItem:
        """An item about ``words``, with two words of its own."""
        self.count += 1
        at_ms = START_MS + round(minute * MINUTE_MS)
        own = f"detail{self.count} angle{self.count}"
        base = StreamItem(
            number=article_number_at(at_ms, self.count),
            first_version=article_number_at(at_ms, self.count),
            id=f"a{self.count}",
            verdict="new",
            arrived_ms=at_ms,
            title=f"{words} {own}".capitalize(),
            source="one.example",
            terms=tuple((w, 1.0) for w in f"{words} {own}".split()),
        )
        return replace(base, **wanted)  # type: ignore[arg-type]

    def send(self, minute: float, words: str = "harbour bridge collapse", **wanted: object) -> StreamItem:
        item = self.item(minute, words, **wanted)
        self.observe(item)
        return item

    def observe(self, item: StreamItem) -> None:
        self.detector.observe(item, item.arrived_ms)
        self.told += self.detector.drain_changes()

    def tick(self, minute: float) -> None:
        self.detector.tick(START_MS + round(minute * MINUTE_MS))
        self.told += self.detector.drain_changes()

    def kinds(self, kind: str) -> list[Event]:
        return [change.event for change in self.told if change.kind == kind]

    @property
    def fired(self) -> list[Event]:
        return self.kinds("fired")


def burst(wire: Wire, count: int = 16, start: float = 0.0, step: float = 1.0, **wanted: object) -> None:
    for i in range(count):
        wire.send(start + i * step, **wanted)


@pytest.mark.parametrize(("items", "fires"), [(15, False), (16, True)])
def test_more_than_fifteen_items_fire(items: int, fires: bool) -> None:
    """15 | 16: "more than 15" is 16."""
    wire = Wire()

    burst(wire, items)

    assert bool(wire.fired) is fires


@pytest.mark.parametrize(("last", "fires"), [(240, True), (240 + 1 / 60_000, False)])
def test_an_item_exactly_four_hours_old_counts(last: float, fires: bool) -> None:
    """The 16th item comes exactly 4 h after the first, or a millisecond later."""
    wire = Wire()
    burst(wire, 15, step=16)

    wire.send(last)

    assert bool(wire.fired) is fires


def test_an_event_fires_once_and_says_why() -> None:
    """No second alert; everything an editor needs to judge it is there."""
    wire = Wire()

    burst(wire, 40)

    (event,) = wire.fired
    last = wire.told[-1].event
    assert event.status == "breaking"
    assert (event.size, event.peak, last.size, last.peak) == (16, 16, 40, 40)
    assert event.items == tuple(f"a{i}" for i in range(1, 17))
    assert last.items[:16] == event.items and len(last.cosines) == 40
    assert event.detected_at_ms == START_MS + 15 * MINUTE_MS
    assert (event.first_seen_ms, last.last_seen_ms) == (START_MS, START_MS + 39 * MINUTE_MS)
    assert event.timeline == ((START_MS, 10), (START_MS + 10 * MINUTE_MS, 6))
    assert event.rate == 10
    assert set(event.terms[:3]) == {"Harbour", "bridge", "collapse"}
    assert event.reason.startswith("16 items from 1 source in 15 min about ")
    assert event.title.startswith("Harbour bridge collapse")
    assert last.id == event.id


def test_items_of_unnamed_sources_are_not_said_to_have_none() -> None:
    """A crawler that sends no source still has one."""
    wire = Wire()

    for minute in range(16):
        wire.send(minute, source="")

    assert wire.fired[0].reason.startswith("16 items from sources without a name in 15 min about ")


def test_terms_are_shown_as_words_and_not_as_stems() -> None:
    """As most headlines write them, not at their beginning if possible; a stem that no headline has is left out."""
    wire = Wire()
    titles = ["Flooding: Thornby calls for help", "Thornby Floods again", "Help for flooded Thornby"]
    for i in range(18):
        terms = (("thornbi", 1.0), ("flood", 1.0), ("evacu", 1.0))
        wire.send(i, title=titles[i % 3], terms=terms, lang="en")

    (event,) = wire.fired
    assert set(event.terms) == {"Thornby", "flooded"}
    assert "Thornby" in event.reason and "thornbi" not in event.reason


def test_terms_of_a_script_without_spaces_are_words_and_not_whole_clauses() -> None:
    """A clause holds many terms; each is shown by itself."""
    wire = Wire()
    for i in range(16):
        wire.send(
            i, title=f"白沙湾：三百只小海龟放归大海 {i}", terms=(("小海龟", 1.0), ("放归", 1.0)), lang="zh"
        )

    assert set(wire.fired[0].terms) == {"小海龟", "放归"}


def test_terms_are_shown_as_they_are_where_no_headline_has_any() -> None:
    """Stems are better than nothing at all."""
    wire = Wire()
    for i in range(16):
        wire.send(i, title=f"Help is near, part {i}", terms=(("thornbi", 1.0), ("evacu", 1.0)), lang="en")

    assert set(wire.fired[0].terms) == {"thornbi", "evacu"}
    assert "thornbi" in wire.fired[0].reason


def test_stories_are_kept_apart() -> None:
    """Two stories at once are two events; strangers join neither."""
    wire = Wire()

    for i in range(16):
        wire.send(i, "harbour bridge collapse")
        wire.send(i + 0.3, "election result capital")
        wire.send(i + 0.6, f"lonely{i} story{i} here{i}")

    assert len(wire.fired) == 2
    assert all(event.size == 16 for event in wire.fired)


def test_growth_is_by_the_centroid_and_never_by_a_chain() -> None:
    """Each item shares half its words with the one before, none with the first: no event."""
    wire = Wire()

    for i in range(60):
        wire.send(i, f"link{i} link{i + 1}")

    assert wire.fired == []


def test_copies_from_one_source_are_sightings_and_from_others_items() -> None:
    """16 copies of one text by one publisher are no event; by 16 publishers they are."""
    same, many = Wire(), Wire()
    for wire in (same, many):
        first = wire.send(0, source="s0.example")
        for i in range(1, 16):
            source = "s0.example" if wire is same else f"s{i}.example"
            copy = {"verdict": "duplicate", "canonical_first": first.first_version, "exact": True}
            wire.send(i, source=source, **copy)

    assert same.fired == []
    assert [len(event.sources) for event in many.fired] == [16]


def test_sightings_are_counted_apart() -> None:
    """They move the time last seen, not the size."""
    wire = Wire()
    burst(wire)
    first = article_number_at(START_MS, 1)

    wire.send(30, verdict="duplicate", canonical_first=first)

    event = wire.told[-1].event
    assert (event.size, event.sightings) == (16, 1)
    assert event.last_seen_ms == START_MS + 30 * MINUTE_MS


def test_an_update_of_an_article_does_not_count_twice() -> None:
    """A new version has a new number and the old first number."""
    wire = Wire()
    burst(wire, 15)

    wire.send(16, first_version=article_number_at(START_MS, 1), id="a1")

    assert wire.fired == []


def test_enough_sources_are_needed() -> None:
    """``min_sources`` holds an event back until enough outlets have it."""
    wire = Wire(BurstRule(min_sources=3))
    burst(wire, 20)
    wire.send(21, source="two.example")

    assert wire.fired == []
    wire.send(22, source="three.example")
    assert [event.size for event in wire.fired] == [22]


@pytest.mark.parametrize(("age_h", "fires"), [(4.0, True), (4.001, False)])
def test_old_news_joins_but_never_fires(age_h: float, fires: bool) -> None:
    """Published more than a window before arrival: exactly 4 h still counts."""
    wire = Wire()

    for i in range(20):
        at_ms = START_MS + i * MINUTE_MS
        wire.send(i, published_at_ms=at_ms - round(age_h * HOUR_MS))

    assert bool(wire.fired) is fires


def test_early_and_undated_items_count_when_they_arrive() -> None:
    """A date in the future, or none, changes nothing."""
    wire = Wire()

    for i in range(16):
        wire.send(i, published_at_ms=START_MS + 9 * DAY_MS if i % 2 else None)

    assert len(wire.fired) == 1


def test_items_slightly_out_of_order_take_their_place() -> None:
    """Arrival order across spaces is not exact; the window is."""
    wire = Wire()
    burst(wire, 15, start=5, step=16)

    wire.send(0)

    assert len(wire.fired) == 1
    wire.tick(241)
    assert wire.detector.window[0].at_ms == START_MS + 5 * MINUTE_MS


def test_an_item_from_a_window_ago_joins_late() -> None:
    """It does not rewind time and does not fire."""
    wire = Wire()
    burst(wire, 15)
    wire.tick(230)

    late = wire.item(-60, "harbour bridge collapse")
    wire.detector.observe(late, late.arrived_ms)

    assert wire.detector.drain_changes() == []


def test_a_clock_that_ran_ahead_is_recovered_from() -> None:
    """A tick far behind the newest item means a wrong clock: forget, go on, and fire as ever."""
    wire = Wire()
    wire.send(60 * 24 * 365)
    wire.tick(0)

    burst(wire, 16, start=1)

    assert len(wire.fired) == 1
    assert wire.detector.clock_ms == START_MS + 16 * MINUTE_MS


def test_a_small_step_back_of_the_clock_changes_nothing() -> None:
    """Within a window, time simply waits."""
    wire = Wire()
    burst(wire, 15)

    wire.tick(-30)
    wire.send(16)

    assert len(wire.fired) == 1


def test_an_event_fades_revives_and_closes_under_one_id() -> None:
    """breaking -> fading -> breaking -> fading -> closed, one alert."""
    wire = Wire()
    burst(wire, 30)
    wire.tick(256)
    assert wire.told[-1].event.status == "fading"
    burst(wire, 30, start=257, step=0.1)
    wire.tick(261)
    assert wire.told[-1].event.status == "breaking"
    wire.tick(257 + 3 + 241)

    assert len(wire.fired) == 1
    assert [event.id for event in wire.kinds("closed")] == [wire.fired[0].id]
    assert wire.told[-1].event.status == "closed"
    assert wire.detector.events == []


def test_a_stream_that_stops_for_hours_leaves_nothing_behind() -> None:
    """After a silence longer than the window every story is forgotten."""
    wire = Wire()
    burst(wire, 40)

    wire.tick(40 + 241)

    assert wire.kinds("closed") and not wire.detector.window
    assert wire.detector.stories.by_key == {} and wire.detector.stories.key_by_number == {}


def test_a_closed_event_stays_closed() -> None:
    """The same story later is a new event with an id of its own."""
    wire = Wire()
    for i in range(200):
        wire.send(i / 20 - 20, f"topic{i} place{i}")
    burst(wire)
    wire.tick(600)
    burst(wire, 24, start=601)

    assert len({event.id for event in wire.fired}) == 2


def test_converging_stories_become_one_event() -> None:
    """Two sides of one story, joined by reports that name both: the first event goes on."""
    wire = Wire()
    for i in range(20):
        wire.send(i, "harbour bridge collapse")
        wire.send(i + 0.5, "ferry passengers rescued")
    assert len(wire.fired) == 2
    for i in range(60):
        wire.send(21 + i / 10, "harbour bridge collapse ferry passengers rescued")
    wire.tick(30)

    (lost,) = wire.kinds("merged")
    kept = next(event for event in wire.fired if event.id != lost.id)
    assert lost.merged_into == kept.id and lost.status == "closed"
    last = [c.event for c in wire.told if c.event.id == kept.id][-1]
    assert last.size == 100
    assert lost.detected_at_ms >= kept.detected_at_ms


def fragments(wire: Wire, overlap: str) -> None:
    """Ten reports on a shooting and eight on a town; ``overlap``: the words of the first six of the ten."""
    for i in range(10):
        wire.send(i, overlap if i < 6 else "shooting gunman theatre")
        if i < 8:
            wire.send(i + 0.5, f"summerton mourners{i} candles{i} vigil{i}")


def test_fragments_whose_terms_burst_in_the_same_documents_are_counted_together() -> None:
    """Neither has 16 items; what names the town and the shooting holds them together."""
    wire = Wire()
    fragments(wire, "shooting gunman theatre summerton")
    wire.tick(12)

    assert len(wire.fired) == 1
    assert [change.event.size for change in wire.told][-1] == 18


def test_an_event_does_not_show_the_strangers_of_a_story_that_joins_it() -> None:
    """They count with the story they came with; neither the items nor the peak of the event tell of them."""
    wire = Wire()
    for minute in range(18):
        wire.send(minute)
    wire.send(19, "museum painting stolen")
    wire.send(20, "museum painting stolen")
    wire.send(20, "museum painting stolen director silent harbour")
    bridge, museum = (s for s in wire.detector.stories.by_key.values() if len(s.members) > 1)

    wire.detector.merge_stories(bridge, museum)
    wire.tick(21)

    (event,) = wire.detector.events
    assert bridge.counted_items == 21
    assert event.items == (*(f"a{n}" for n in range(1, 19)), "a21")
    assert (event.size, event.peak) == (19, 19)
    assert event.cosines[-1] < 0.9  # of the story that it is in, not of the one it came with


def test_fragments_that_merely_burst_at_the_same_time_stay_apart() -> None:
    """No document holds both chief terms: two matters of ten and eight, no event."""
    wire = Wire()
    fragments(wire, "shooting gunman theatre")
    wire.tick(12)

    assert wire.fired == []


@pytest.mark.parametrize("stalled", [False, True])
def test_on_the_first_day_of_a_busy_stream_common_words_do_not_hide_an_event(stalled: bool) -> None:
    """No word has a past: what is seen most is no news then. Also while the clock stands still."""
    wire, rng = Wire(), random.Random(1)
    common = [f"word{i}" for i in range(1500)]
    for i in range(2000):
        wire.send(0 if stalled else i / 100, " ".join(rng.sample(common, 8)))
    for i in range(18):
        words = f"brackwater viaduct inquest witness {' '.join(rng.sample(common, 5))}"
        wire.send(0 if stalled else 20 + i / 10, words)
    wire.tick(1 if stalled else 30)

    (event,) = wire.fired
    assert event.title.startswith("Brackwater viaduct inquest")
    assert [change.event.size for change in wire.told][-1] == 18


LANDING = [
    "engine runway passengers",
    "emergency runway pilot",
    "engine pilot smoke",
    "emergency passengers smoke",
]
CRASH = [
    "mountain victims search",
    "valley victims wreck",
    "mountain wreck families",
    "valley search families",
]


@pytest.mark.parametrize(("times_a_week", "events"), [(0, 1), (7, 0)])
def test_a_word_that_two_matters_share_by_chance_does_not_make_them_one(
    times_a_week: int, events: int
) -> None:
    """Nine reports on each of two planes: only a word that nobody uses otherwise would hold them together."""
    wire = Wire()
    for i in range(times_a_week):
        wire.send((i - 7) * 24 * 60, f"plane timetable{i} route{i}")
    for i in range(9):
        wire.send(i * 6, f"plane {LANDING[i % 4]}")
        wire.send(i * 6 + 3, f"plane {CRASH[i % 4]}")
    wire.tick(60)

    assert len(wire.fired) == events


@pytest.mark.parametrize(
    ("theirs", "is_one"),
    [
        ("plane engine", False),  # one word, and it is a common one
        ("plane crash", True),
        ("thornby fire", True),  # a place that nobody names otherwise
        ("summerton fire", False),  # exactly 0.05 a window: some use it
        ("engine runway", False),
    ],
)
def test_two_common_words_or_a_rare_one_bear_out_that_stories_are_one(theirs: str, is_one: bool) -> None:
    """The boundary of rare is 0.05 documents a window."""
    usual = {"plane": 1.2, "crash": 0.9, "thornby": 0.049, "summerton": 0.05}

    ours = ["plane", "crash", "thornby", "summerton"]

    assert (
        merge_evidence.terms_support_merge(ours, theirs.split(), lambda term: usual.get(term, 0.0)) is is_one
    )


def test_an_article_taken_down_leaves_its_event() -> None:
    """Its id and headline go, the count falls, the event stays."""
    wire = Wire()
    burst(wire)
    title = wire.fired[0].title
    victim = next(m for m in wire.detector.window if m.title == title)

    wire.observe(
        replace(wire.item(17, "x"), kind="deleted", id=victim.id, first_version=victim.first_version)
    )

    event = wire.told[-1].event
    assert victim.id not in event.items and event.size == 15
    assert event.title != title


def routine_days(wire: Wire, count: int, days: int = 7) -> None:
    """The same announcement ``count`` times every morning."""
    for day in range(days):
        for i in range(count):
            wire.send((day - days) * 24 * 60 + i, f"fund value per share company{i}")
        wire.send((day - days) * 24 * 60 + 300, "weather harbour quiet")


def test_a_routine_of_every_morning_does_not_alert() -> None:
    """As many as every day of the last week: no news."""
    wire = Wire()
    routine_days(wire, 30)
    wire.told.clear()

    for i in range(30):
        wire.send(i, f"fund value per share company{i}")

    assert wire.fired == []


def test_a_routine_can_still_surprise_by_volume() -> None:
    """Many times the usual number alerts, and says what was expected."""
    wire = Wire()
    routine_days(wire, 10)
    wire.told.clear()

    for i in range(80):
        wire.send(i, f"fund value per share company{i}")

    assert len(wire.fired) == 1
    assert wire.fired[0].expected > 4


def test_sensitivity_is_how_readily_a_routine_alerts() -> None:
    """A story needs 4 times its usual number, twice as sensitive 2 times."""
    found = {}
    for sensitivity in (1.0, 2.0):
        wire = Wire(BurstRule(sensitivity=sensitivity))
        for day in range(-7, 1):
            for i in range(24 if day else 80):
                wire.send(day * 24 * 60 + i, terms=(("fund", 1.0), ("value", 1.0)))
        found[sensitivity] = [(event.size, event.expected) for event in wire.fired[1:]]

    # Expected: 24 in five hours of every day, so 19.2 in four. The first morning of all fired as well.
    assert found == {1.0: [(77, 19.2)], 2.0: [(39, 19.2)]}


def test_a_weekly_routine_counts_by_its_weekday() -> None:
    """What comes every week at this hour is expected more than what came on another day."""
    same, other = Baseline(4 * HOUR_MS), Baseline(4 * HOUR_MS)
    for background in (same, other):
        background.add(1, ["start"])
    for _ in range(10):
        same.add(1000 - 7 * 24, ["term"])
        other.add(1000 - 6 * 24, ["term"])

    assert same.expected("term", 1000) > other.expected("term", 1000) > 0


def test_words_that_come_and_go_leave_no_room_behind() -> None:
    """Three weeks in which each hour has words of its own: the table of totals is no larger than that of a copy."""
    background = Baseline(4 * HOUR_MS)
    for hour in range(21 * 24):
        background.add(hour, [f"{hour}-{number}" for number in range(80)])
        background.refresh_totals(hour)

    assert len(background._document_frequencies) == 80 * len(background.counts_by_hour)
    assert sys.getsizeof(background._document_frequencies) == sys.getsizeof(
        dict(background._document_frequencies)
    )


def test_history_is_forgotten_after_a_week() -> None:
    """Memory is bounded by the windows, whatever passes through."""
    wire = Wire()
    for day in range(30):
        burst(wire, 5, start=day * 24 * 60)

    assert len(wire.detector.baseline.counts_by_hour) <= 8 * 5
    assert set(wire.detector.baseline._document_frequencies) >= {"harbour"}
    assert len(wire.detector.window) == 5


def test_ten_times_the_load_of_unrelated_news_does_not_alert() -> None:
    """Volume alone is no story."""
    wire = Wire()
    for i in range(400):
        wire.send(i / 10, f"topic{i} place{i} person{i}")

    assert wire.fired == []


def routine_week(wire: Wire, families: int, last_hour: int) -> None:
    """Seven days of one item an hour from each of some templates, then ``last_hour`` of each within an hour."""
    frames = [f"notice{f} filing{f} holding{f}" for f in range(families)]
    for hour in range(7 * 24):
        for f, frame in enumerate(frames):
            wire.send(hour * 60 + f, frame)
    for i in range(last_hour):
        for frame in frames:
            wire.send(7 * 24 * 60 + i * 60 / last_hour, frame)


@pytest.mark.parametrize("peak", [10, 40])
def test_a_peak_of_all_routine_at_once_does_not_alert(peak: int) -> None:
    """Ten and forty times the load of every template: none of them is more than the stream as a whole."""
    wire = Wire()
    routine_week(wire, families=6, last_hour=peak)

    assert wire.fired == []


def test_a_story_within_a_peak_of_routine_still_alerts() -> None:
    """What is new is not hidden by forty times the load."""
    wire = Wire()
    routine_week(wire, families=6, last_hour=40)
    burst(wire, 16, start=7 * 24 * 60 + 61)

    assert [event.title.split()[0] for event in wire.fired] == ["Harbour"]


def test_after_hours_of_silence_a_backlog_fires_only_what_is_recent() -> None:
    """A stream stopped for six hours and is delivered at once: what is over a window old joins, and no more."""
    wire = Wire()
    wire.send(0, "quiet morning")
    for i in range(20):
        published_ms = START_MS + (60 + i) * MINUTE_MS
        wire.send(400, "harbour bridge collapse", published_at_ms=published_ms)
    assert wire.fired == []

    for i in range(16):
        wire.send(400 + i / 10, "ferry passengers rescued", published_at_ms=START_MS + (380 + i) * MINUTE_MS)
    assert len(wire.fired) == 1


@pytest.mark.parametrize("jump_h", [5, 24, 24 * 30])
def test_a_jump_forward_of_the_clock_closes_what_was_open_and_goes_on(jump_h: int) -> None:
    """Hours without a tick: the old event closes once, and a new story fires as ever."""
    wire = Wire()
    burst(wire)
    burst(wire, 16, start=jump_h * 60, words="election result capital")

    assert [event.status for event in wire.kinds("closed")] == ["closed"]
    assert len(wire.fired) == 2 and len({event.id for event in wire.fired}) == 2


def test_the_literal_rule_counts_neighbours_within_seven_bits() -> None:
    """16 items within 7 bits of the last one, which share no word at all."""
    wire = Wire(BurstRule(mode="neighbours"))
    for i in range(15):
        wire.send(i, f"word{i}", fingerprint=1 << i % 3)
    assert wire.fired == []
    wire.send(20, "far", fingerprint=(1 << 64) - 1)
    assert wire.fired == []

    wire.send(21, "last", fingerprint=0)
    wire.send(22, "more", fingerprint=0b1111111)
    wire.send(23, "far", fingerprint=0b11111111)
    wire.tick(24)

    (event,) = wire.fired
    assert (event.size, wire.told[-1].event.size) == (16, 17)
    wire.tick(600)
    assert [e.id for e in wire.kinds("closed")] == [event.id]


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("UPDATE 2-Bridge closed", "Bridge closed"),
        ("RPT-WRAPUP 1-Bridge closed", "Bridge closed"),
        ("US STOCKS SNAPSHOT-Shares fall", "Shares fall"),
        ("HARBOUR NEWS 12 - Bridge closed", "Bridge closed"),
        ("Bridge-builder honoured", "Bridge-builder honoured"),
        ("NATO-led force leaves", "NATO-led force leaves"),
        ("UPDATE 2-", "UPDATE 2-"),
        ("WHEAT HARVEST - MINISTRY", "WHEAT HARVEST - MINISTRY"),
        ("", ""),
    ],
)
def test_desk_prefixes_are_told_by_their_shape(title: str, kept: str) -> None:
    """Capitals, perhaps a number, a dash."""
    assert strip_desk_prefix(title) == kept


steps = st.lists(
    st.tuples(
        st.integers(0, 90),
        st.sampled_from(["harbour bridge", "election result", "ferry rescue harbour", "fund value share"]),
        st.sampled_from(["new", "duplicate", "related", "deleted", "tick"]),
        st.integers(0, 3),
    ),
    max_size=120,
)


def play(detector: BurstDetector, wire: Wire, given_steps: list[tuple[int, str, str, int]]) -> None:
    minute = 0.0
    numbers: list[int] = []
    for gap, words, kind, source in given_steps:
        minute += gap / 4
        if kind == "tick":
            detector.tick(START_MS + round(minute * MINUTE_MS))
            continue
        item = wire.item(minute, words, source=f"s{source}")
        if kind == "deleted" and numbers:
            item = replace(item, kind="deleted", first_version=numbers[source % len(numbers)])
        elif kind in ("duplicate", "related") and numbers:
            item = replace(item, verdict=kind, matched_number=numbers[-1])
        numbers.append(item.first_version)
        detector.observe(item, item.arrived_ms)


@settings(max_examples=40, deadline=None)
@given(given_steps=steps, cut=st.integers(0, 120), mode=st.sampled_from(["stories", "neighbours"]))
def test_a_saved_state_goes_on_bit_for_bit(
    given_steps: list[tuple[int, str, str, int]], cut: int, mode: str
) -> None:
    """Saved and loaded anywhere, it tells the same changes and comes to the same bytes."""
    rule = BurstRule(items=4, mode=mode)  # type: ignore[arg-type]
    whole, wire = BurstDetector(rule), Wire(rule)
    play(whole, wire, given_steps[:cut])
    whole.drain_changes()
    again = BurstDetector.load(whole.dump(), rule)
    count = wire.count
    play(whole, wire, given_steps[cut:])
    wire.count = count
    play(again, wire, given_steps[cut:])

    assert again.dump() == whole.dump()
    assert again.drain_changes() == whole.drain_changes()


@settings(max_examples=30, deadline=None)
@given(given_steps=steps)
def test_sums_are_those_of_the_members(given_steps: list[tuple[int, str, str, int]]) -> None:
    """Centroids, counts and the index of terms are always those of the items in the window."""
    detector = BurstDetector(BurstRule(items=4))
    play(detector, Wire(), given_steps)

    held = detector.stories
    inverted: dict[str, dict[int, int]] = {}
    for story in detector.stories.by_key.values():
        sums: dict[str, int] = {}
        for member in story.members.values():
            for term, weight in member.terms.items():
                sums[term] = sums.get(term, 0) + weight
        assert story.term_sums == sums
        assert story.counted_items == sum(m.is_counted for m in story.members.values())
        for term, weight in sums.items():
            inverted.setdefault(term, {})[held._slots[story.key]] = weight
    assert held._postings.sums_by_term() == inverted
    assert held._slots.keys() == held.by_key.keys()
    for slot in held._postings._free_slots:  # keeps no room
        assert sys.getsizeof(held._postings._offsets[slot]) == sys.getsizeof({})
    assert sorted(m.first_version for m in detector.window) == sorted(
        m.first_version for s in detector.stories.by_key.values() for m in s.members.values()
    )
    for key, slot in held._slots.items():
        story = held.by_key[key]
        assert (held._keys[slot], held._sizes[slot]) == (key, len(story.members))
        if not math.isnan(length := held._norms[slot]):
            assert (length, len(story.members)) == (story.norm, story.norm_size)
            assert held._minute - story.norm_minute < NORM_STALE_MINUTES


def ended(work: Generator[None, None, T]) -> T:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def plain_nearest(detector: BurstDetector, terms: dict[str, int]) -> tuple[Story | None, float]:
    """``Stories.nearest`` one story and one term after another."""
    weighed = [(detector.term_weights.weigh(term), term, weight) for term, weight in terms.items()]
    length = math.sqrt(sum((w * x) ** 2 for w, _, x in weighed))
    parts = sorted((-(w * w * x) * x, term, w * w * x) for w, term, x in weighed)
    left, heavy = length * length, set()
    for part, term, _ in parts:
        if left >= JOIN_COSINE * JOIN_COSINE * length * length:
            heavy.add(term)
        left += part
    best, nearest = None, 0.0
    for _, story in sorted(detector.stories.by_key.items()):
        if heavy.isdisjoint(story.term_sums):
            continue
        dot = 0.0
        for _, term, square in parts:
            dot += square * story.term_sums.get(term, 0)
        cosine = dot / (
            length * detector.stories._refreshed_norm(story, detector.term_weights.weigh, NORM_STALE_MINUTES)
        )
        if cosine > nearest:
            best, nearest = story, cosine
    return (best, min(1.0, nearest)) if nearest >= JOIN_COSINE else (None, 0.0)


@pytest.mark.parametrize("few", [0, clustering.ARRAY_MIN_POSTINGS])
def test_the_nearest_story_is_that_of_looking_at_each(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit of the cosine, while stories come, grow, merge, age and go, and others get their places."""
    monkeypatch.setattr(clustering, "ARRAY_MIN_POSTINGS", few)
    found = 0
    for seed in range(4):
        rng, wire = random.Random(seed), Wire()
        detector = BurstDetector(BurstRule(items=10))
        words = [f"word{i}" for i in range(60)]
        for i in range(400):
            about = rng.sample(words[: rng.choice([6, 60])], rng.randint(1, 5))
            terms = tuple((word, rng.choice([1.0, 0.6, 0.2])) for word in about)
            detector.observe(item := wire.item(i * 0.7, " ".join(about), terms=terms), item.arrived_ms)
            asked = {word: rng.randint(1, MAX_TERM_WEIGHT) for word in rng.sample(words, 4)}
            given = ended(detector.stories.nearest(asked, detector.term_weights.weigh))
            assert given == plain_nearest(detector, asked)
            found += given[0] is not None
        assert len(detector.stories._postings._offsets) < detector.stories.next_key  # slots were used again

    assert found


def test_loops_and_arrays_come_to_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever multiplies, the same stories are found and merged, and the same events fire."""
    ends = []
    for few in (0, 10**9):
        monkeypatch.setattr(clustering, "ARRAY_MIN_POSTINGS", few)
        rng, wire = random.Random(7), Wire()
        words = ["harbour", "bridge", "ferry", "estmark", "fire", "strike", "vote"]
        matters = [rng.sample(words, 3) for _ in range(4)]
        for i in range(240):
            wire.send(i / 4, " ".join(rng.sample(rng.choice(matters), rng.choice([1, 1, 1, 2]))))
        ends.append((wire.detector.dump(), wire.told))
    assert ends[0] == ends[1]
    held = wire.detector.stories
    assert len(held.by_key) < held.next_key  # some were merged
    assert wire.fired


def plain_partner(detector: BurstDetector, story: Story) -> Story | None:
    """``together.partner`` as its text says it, without what saves time."""
    terms, weight = detector.term_weights, MAX_TERM_WEIGHT * MERGE_SHARE
    chief = key_terms.top_term(story, terms.weigh)
    best, most = None, 0.0
    for other in detector.stories.by_key.values():
        theirs = key_terms.top_term(other, terms.weigh)
        if (
            other is story
            or len(other.members) < MIN_ITEMS_TO_BE_MERGED
            or (other.event_id and story.event_id)
        ):
            continue
        if not (terms.is_bursting(chief) and terms.is_bursting(theirs)):
            continue
        named = other.term_sums.get(chief, 0)
        common = [t for t in story.term_sums if t != chief and t in other.term_sums and terms.is_bursting(t)]
        if max([named, *(story.term_sums[t] + named for t in common)]) < weight * terms.min_burst_documents:
            continue
        both = story.term_sums.get(theirs, 0) + named
        share = both / MAX_TERM_WEIGHT / min(terms.window_count(chief), terms.window_count(theirs))
        if share >= MERGE_SHARE and share > most and KeyTermCache(terms).support_merge(story, other):
            best, most = other, share
    return best


def test_no_shortcut_loses_a_partner() -> None:
    """Whatever came, the story that one bursts together with is that of looking at all of them in full."""
    partners = 0
    for seed in range(8):
        rng, wire = random.Random(seed), Wire()
        detector = BurstDetector(BurstRule(items=10))
        words = ["harbour", "bridge", "ferry", "estmark", "fire", "strike", "vote"]
        matters = [rng.sample(words, 3) for _ in range(4)]
        for i in range(120):
            about = rng.sample(rng.choice(matters), rng.choice([1, 1, 1, 2]))
            detector.observe(item := wire.item(i / 4, " ".join(about)), item.arrived_ms)
            for story in detector.stories.by_key.values():
                found = together.find_merge_partner(
                    detector.stories, story, detector.term_weights, KeyTermCache(detector.term_weights)
                )
                assert found is plain_partner(detector, story)
                partners += found is not None

    assert partners


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02abc", b"\x01\x93\x01\x02\x03"])
def test_foreign_or_cut_states_are_refused(data: bytes) -> None:
    """One clear error, not a half-filled detector."""
    with pytest.raises(ValueError, match="saved state"):
        BurstDetector.load(data, RULE)


@pytest.mark.parametrize("size", [0, 15, 16, 65_535, 65_536])
def test_a_state_in_pieces_is_one_value_of_messagepack(size: int) -> None:
    """Lists are announced as the encoder announces them, so that another version reads them."""
    assert state_codec._array_header(size) + b"\xc0" * size == msgspec.msgpack.encode([None] * size)


def test_time_goes_on_in_pieces_and_ends_the_same() -> None:
    """A new minute in which many stories have grown takes many pieces; the state after them is that of one call."""
    whole, pieces, wire = BurstDetector(RULE), BurstDetector(RULE), Wire()
    words = ("harbour bridge collapse", "orchard strike vote", "lantern museum fire")
    for i in range(60):
        item = wire.item(0.01 * i, words[i % 3])
        whole.observe(item, item.arrived_ms)
        pieces.observe(item, item.arrived_ms)
    last = wire.item(2, "harbour bridge collapse")

    whole.observe(last, last.arrived_ms)
    taken = len(list(pieces.advance_clock(last.arrived_ms)))
    assert taken >= 3
    pieces.observe(last, last.arrived_ms)
    assert pieces.dump() == whole.dump()

    whole.tick(last.arrived_ms + 1)
    assert list(pieces.tick_steps(last.arrived_ms + 1))
    assert pieces.dump() == whole.dump()
    assert len(list(pieces.dump_chunks())) > len(words)
    assert pieces.drain_changes() == whole.drain_changes()


def test_an_item_finds_lengths_out_of_date_in_pieces_and_ends_the_same() -> None:
    """Of hundreds of stories that share a word; where their lengths stand it takes one piece."""
    whole, pieces, wire = BurstDetector(RULE), BurstDetector(RULE), Wire()
    for i in range(3 * NORMS_PER_SLICE):
        own = ((f"matter{i} {j}", 1.0) for j in range(3))
        item = wire.item(0, "harbour", terms=(("harbour", 0.02), *own))
        whole.observe(item, item.arrived_ms)
        pieces.observe(item, item.arrived_ms)
    first, second = (wire.item(0, "harbour", terms=(("harbour", 1.0),)) for _ in range(2))
    assert len(whole.stories.by_key) == 3 * NORMS_PER_SLICE
    for detector in (whole, pieces):
        detector.stories.invalidate_norms()

    whole.observe(first, first.arrived_ms)
    assert len(list(pieces.observe_steps(first, first.arrived_ms))) == 3
    assert pieces.dump() == whole.dump()

    whole.observe(second, second.arrived_ms)
    assert not list(pieces.observe_steps(second, second.arrived_ms))
    assert pieces.dump() == whole.dump()
