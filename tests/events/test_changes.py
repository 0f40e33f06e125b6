"""Unit of work: revisions, change records, and commits that no other writer has overtaken."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from aggregator.errors import Conflict, NotFound
from aggregator.events.changes import EditorActions, EventUnitOfWork, encode_msgpack
from aggregator.events.consumer import STATE_KEY, DetectorRunner
from aggregator.events.detection import lifecycle
from aggregator.events.detection.model import ChangeKind, EditorOverrides, EventChange, Mute
from aggregator.events.detection.numbers import items_of
from aggregator.events.event import EditorAction, Event, Note
from aggregator.events.newsroom import undoable_actions
from aggregator.events.repository import (
    INDEX_KEY,
    OVERRIDES_FORMAT,
    OVERRIDES_KEY,
    POSITION_KEY,
    EventRepository,
    event_key,
    number_key,
)
from aggregator.events.selection import is_settled, since_handled
from aggregator.store.base import Delete, Put, Store, Transaction
from tests.events.test_consumer import FakeIndex, at, detector_over, published
from tests.support.factories import EVENT_MS, commit_event, event

ALERTS: tuple[ChangeKind, ...] = ("fired", "development", "doubled")
STORM = event("e1", "Storm", ["a1", "a2"])


@pytest.fixture
def repository(store: Store) -> EventRepository:
    """The events of an empty store; closed ones are kept for 1000 ms."""
    return EventRepository(store, retention_ms=1_000)


async def kinds(repository: EventRepository) -> list[str]:
    """Kinds of all change records."""
    return [record.kind for _, record in await repository.changes()]


async def test_without_changes_nothing_is_written(repository: EventRepository) -> None:
    """Reading an event is not a change."""
    await commit_event(repository, "fired", STORM, EVENT_MS)
    unit = await EventUnitOfWork.begin(repository)

    assert (await unit.get("e1"), await unit.get("e2")) == (replace(STORM, revision=1), None)
    assert not unit.has_changes
    assert unit.writes() == []


async def test_a_translation_is_published_as_an_update(repository: EventRepository) -> None:
    """The alert of the event in the first language is not repeated."""
    await commit_event(repository, "fired", replace(STORM, translation_of="e0"), EVENT_MS)
    await commit_event(repository, "doubled", replace(STORM, size=99), EVENT_MS + 1)

    assert [record.kind for _, record in await repository.changes()] == ["updated", "updated"]
    assert (await repository.get("e1")).translation_of == "e0"


async def test_one_commit_increases_the_revision_by_one(repository: EventRepository) -> None:
    """Also when several versions are put; the last one is stored, and ``get`` returns it before."""
    await commit_event(repository, "fired", STORM, EVENT_MS)
    unit = await EventUnitOfWork.begin(repository)
    for title in ("Storm grows", "Storm ends"):
        stored = await unit.get("e1")
        assert stored is not None
        unit.put(replace(stored, title=title), "updated", EVENT_MS + 1)

    assert (await unit.get("e1")) == replace(STORM, title="Storm ends", revision=2)
    assert await unit.commit() == frozenset()

    assert await repository.get("e1") == replace(STORM, title="Storm ends", revision=2)
    assert [(r.kind, r.revision) for _, r in await repository.changes()] == [
        ("fired", 1),
        ("updated", 2),
        ("updated", 2),
    ]


@pytest.mark.parametrize("key", [POSITION_KEY, OVERRIDES_KEY])
async def test_a_commit_fails_if_another_writer_was_faster(repository: EventRepository, key: bytes) -> None:
    """It names the key that has changed and writes nothing."""
    unit = await EventUnitOfWork.begin(repository)
    unit.put(STORM, "fired", EVENT_MS)
    await repository.store.commit(Transaction((), (Put(key, encode_msgpack(EditorOverrides(revision=1))),)))

    assert await unit.commit(Put(b"{events}other", b"x")) == {key}

    assert await repository.store.read([event_key("e1"), INDEX_KEY, b"{events}other"]) == [None, None, None]
    assert await repository.changes() == []


async def test_more_writes_belong_to_the_same_commit(repository: EventRepository) -> None:
    """The detector stores its position with the events; the next unit of work reads it as its guard."""
    unit = await EventUnitOfWork.begin(repository)
    unit.put(STORM, None, EVENT_MS)

    assert not await unit.commit(Put(POSITION_KEY, b"p1"))
    assert await unit.commit(Put(POSITION_KEY, b"p2")) == {POSITION_KEY}

    assert await repository.store.read([POSITION_KEY]) == [b"p1"]
    assert await kinds(repository) == []


async def test_articles_lead_to_the_event_that_they_joined(repository: EventRepository) -> None:
    """Until they are removed from it."""
    unit = await EventUnitOfWork.begin(repository)
    await unit.add_detector_changes([EventChange("fired", EVENT_MS, replace(STORM, numbers=(11, 12)))])
    await unit.commit()
    assert await repository.event_ids_of([11, 12]) == {11: "e1", 12: "e1"}

    unit = await EventUnitOfWork.begin(repository)
    await unit.remove_article(11, "a1", EVENT_MS + 1)
    await unit.remove_article(99, "a2", EVENT_MS + 1)
    await unit.commit()

    stored = await repository.get("e1")
    assert (stored.items, stored.removed, stored.size) == (("a2",), (), 1)
    assert await repository.event_ids_of([11, 12]) == {12: "e1"}
    assert await kinds(repository) == ["fired", "updated"]


async def test_a_removed_article_leaves_the_absorbed_events_too(repository: EventRepository) -> None:
    """An absorbed event keeps its own list of articles."""
    await commit_event(repository, "closed", event("e0", "Wind", ["a1"], merged_into="e1"), EVENT_MS)
    await commit_event(repository, "merged", replace(STORM, absorbed=("e0",)), EVENT_MS)
    await repository.store.commit(Transaction((), (Put(number_key(11), b"e0"),)))

    unit = await EventUnitOfWork.begin(repository)
    await unit.remove_article(11, "a1", EVENT_MS + 1)
    await unit.commit()

    assert ((await repository.get("e0")).items, (await repository.get("e1")).items) == ((), ("a2",))


async def test_a_repeated_alert_is_not_published_again(repository: EventRepository) -> None:
    """A detector without its state reads old articles again; only what is new has a change record."""
    for kind in ("fired", "fired", "doubled"):
        await commit_event(repository, kind, STORM, EVENT_MS)
    await commit_event(repository, "closed", replace(STORM, status="closed"), EVENT_MS)
    await commit_event(repository, "doubled", STORM, EVENT_MS)

    assert await kinds(repository) == ["fired", "doubled", "closed"]


async def test_a_closed_event_goes_on_with_a_development(repository: EventRepository) -> None:
    """Published once, also if a detector without its state finds it again; muted, it is an update."""
    told = replace(STORM, developments=((EVENT_MS, ("flood",)),))
    await commit_event(repository, "fired", STORM, EVENT_MS)
    for ended in (replace(STORM, status="closed"), replace(told, status="closed")):
        await commit_event(repository, "closed", ended, EVENT_MS)
        await commit_event(repository, "development", told, EVENT_MS)

    assert await kinds(repository) == ["fired", "closed", "development", "closed"]
    stored = await repository.get("e1")
    assert (stored.status, stored.developments) == ("breaking", ((EVENT_MS, ("flood",)),))


async def test_a_muted_story_is_updated_without_an_alert(repository: EventRepository) -> None:
    """A new event with the profile of a muted one is muted from the start."""
    profile = (("storm", 1.0),)
    unit = await EventUnitOfWork.begin(repository)
    unit.overrides = EditorOverrides(mutes=(Mute("e0", "routine", profile),))

    changes = [EventChange(kind, EVENT_MS, replace(STORM, profile=profile)) for kind in ALERTS]
    await unit.add_detector_changes(changes)
    await unit.commit()

    assert [change.kind for change in unit.published] == ["updated"] * 3 == await kinds(repository)
    assert (await repository.get("e1")).muted == "routine"


async def test_the_detectors_version_keeps_what_editors_did(repository: EventRepository) -> None:
    """Acknowledgement, removed article and revision are those of the stored version."""
    saved = replace(STORM, items=("a1",), cosines=(1.0,), removed=("a2",), acknowledged_by="Ada")
    await commit_event(repository, "fired", saved, EVENT_MS)
    await commit_event(
        repository, "updated", replace(STORM, title="Storm grows", headline_id="a1"), EVENT_MS + 1
    )

    stored = await repository.get("e1")

    assert (stored.title, stored.acknowledged_by, stored.items) == ("Storm grows", "Ada", ("a1",))
    assert stored.revision == 2


async def test_a_new_headline_of_a_published_event_is_in_its_history(repository: EventRepository) -> None:
    """Once for each that came since; no editor made it, so it cannot be undone and prevents no undo."""
    own = EditorAction(
        "set_work_status", "Ada", 5, "e1", work_status="published", id=5, before={"assignee": ""}
    )
    late = replace(own, at_ms=EVENT_MS + 99)
    moved = EditorAction("move_items", "Ada", 6, "e0", into="e1", items=("b",), id=6)
    fields: dict[str, Any] = {"work_status": "published", "actions": (own, moved)}
    open_, storm = event("e2", "Fog", ["a", "b"]), event("e1", "Storm", ["a", "b"], headline_id="a", **fields)
    gale = replace(storm, id="e3", actions=(late,))
    await commit_event(repository, "fired", gale, EVENT_MS)
    await commit_event(repository, "fired", storm, EVENT_MS)
    await commit_event(repository, "fired", open_, EVENT_MS)
    for n, item in enumerate("abba"):
        changed = replace(storm, headline_id=item, title=f"Storm {item}", actions=())
        await commit_event(repository, "updated", changed, EVENT_MS + n)
        await commit_event(repository, "updated", replace(open_, headline_id=item), EVENT_MS + n)
        await commit_event(repository, "updated", replace(gale, headline_id=item, actions=()), EVENT_MS + n)

    stored = await repository.get("e1")
    found = [(a.action, a.at_ms - EVENT_MS, a.item, a.actor) for a in stored.actions[2:]]
    assert found == [("choose_headline", 1, "b", ""), ("choose_headline", 3, "a", "")]
    assert undoable_actions(stored).keys() == {5, 6}
    assert (await repository.get("e2")).actions == ()
    assert (await repository.get("e3")).actions == (late,)  # both were there when it was published
    updated = replace(gale, headline_id="b", actions=(), updates={"b": EVENT_MS + 100})
    await commit_event(repository, "updated", updated, EVENT_MS + 101)
    assert [each.item for each in (await repository.get("e3")).actions] == [None, "b"]
    drop = replace(own, work_status="dropped", event="e4")
    dropped_storm = replace(storm, id="e4", work_status="dropped", actions=(drop,))
    for headline in "ab":
        changed = replace(dropped_storm, headline_id=headline)
        await commit_event(repository, "updated", changed, EVENT_MS)
    last = (await repository.get("e4")).actions[-1]
    assert (last.action, last.item, last.text) == ("choose_headline", "b", "dropped")


async def test_closed_events_are_dropped_after_the_retention_period(repository: EventRepository) -> None:
    """One last seen exactly that long ago is kept, and an open one is kept at any age."""
    for id_, status, age_ms in (
        ("old", "closed", 1_001),
        ("edge", "closed", 1_000),
        ("open", "fading", 9_000),
    ):
        seen = event(id_, "Storm", status=status, last_seen_ms=EVENT_MS - age_ms)
        await commit_event(repository, "updated", seen, EVENT_MS)

    unit = await EventUnitOfWork.begin(repository)
    unit.drop_expired(EVENT_MS)
    await unit.commit()

    assert [e.id for e in await repository.list_events()] == ["edge", "open"]
    assert await repository.store.read([event_key("old")]) == [None]


async def test_a_version_put_for_a_dropped_event_is_not_written(repository: EventRepository) -> None:
    """It would otherwise come back into the index of events."""
    closed = replace(STORM, status="closed", last_seen_ms=EVENT_MS - 2_000)
    await commit_event(repository, "closed", closed, EVENT_MS)
    unit = await EventUnitOfWork.begin(repository)
    unit.put(closed, "updated", EVENT_MS)
    unit.drop_expired(EVENT_MS)
    await unit.commit()

    assert await repository.summaries() == {}
    assert await kinds(repository) == ["closed"]


async def test_the_survivor_of_an_automatic_merge_takes_over_the_notes(repository: EventRepository) -> None:
    """Once, although later versions of the event name the absorbed one again."""
    note = Note(7, "Ada", EVENT_MS, "Called the harbour office.")
    await commit_event(repository, "fired", STORM, EVENT_MS)
    await commit_event(repository, "fired", event("e2", "Wind", ["a3"]), EVENT_MS)
    unit = await EventUnitOfWork.begin(repository)
    wind = await repository.get("e2")
    unit.put(replace(wind, notes=(note,), assignee="Ada", work_status="on_it"), "action", EVENT_MS + 1)
    await unit.commit()
    for title in ("Storm grows", "Storm ends"):
        await commit_event(repository, "updated", replace(STORM, title=title, absorbed=("e2",)), EVENT_MS + 2)

    survivor = await repository.get("e1")
    assert (survivor.title, [n.text for n in survivor.notes]) == ("Storm ends", [note.text])
    assert (survivor.assignee, survivor.work_status) == ("Ada", "on_it")


async def test_a_late_version_of_the_detector_does_not_merge_again(repository: EventRepository) -> None:
    """It was made before editors undid the merge; the next one shows what the event has."""
    await commit_event(repository, "fired", STORM, EVENT_MS)
    await commit_event(repository, "fired", event("e2", "Wind", ["a3"]), EVENT_MS)
    for absorbed in (("e2",), ()):
        await commit_event(repository, "updated", replace(STORM, absorbed=absorbed), EVENT_MS + 2)

    survivor = await repository.get("e1")
    assert survivor.absorbed == () and "a3" not in survivor.items


FERRY = "ferry passengers rescued"


class FakeArticles:
    """The part of the index that actions read."""

    def __init__(self, stream: FakeIndex) -> None:
        self.stream = stream

    async def get_many(self, ids: Sequence[str]) -> dict[str, Any]:
        return {
            item.id: SimpleNamespace(
                record=SimpleNamespace(
                    id=item.id, first_version=item.first_version, title=item.title, source=item.source,
                    lang=item.lang, publication_ms=item.arrived_ms, terms=item.terms,
                )
            )
            for item in self.stream.items
            if item.id in ids
        }  # fmt: skip


@dataclass
class Newsroom:
    """One detector, and editors that act at a given minute of its time."""

    store: Store
    stream: FakeIndex
    detector: DetectorRunner
    actions: EditorActions
    done: int | None = None

    @property
    def events(self) -> EventRepository:
        return self.detector.repository

    async def tick(self, minute: float) -> list[EventChange]:
        return await self.detector.poll(self.stream, at(minute))

    async def act(self, event: str, action: str, minute: float = 30.0, **fields: Any) -> Event:
        actor = fields.pop("actor", "Ada")
        acted, self.done = await self.actions.apply(
            EditorAction(action=action, actor=actor, at_ms=at(minute), event=event, **fields)  # type: ignore[arg-type]
        )
        return acted

    async def overrides(self) -> EditorOverrides:
        return OVERRIDES_FORMAT.decode((await self.store.read([OVERRIDES_KEY]))[0])

    async def linked(self) -> dict[str, str]:
        """Event by article, as a look-up finds it."""
        ids = {item.first_version: item.id for item in self.stream.items}
        return {ids[n]: event for n, event in (await self.events.event_ids_of(list(ids))).items()}

    async def two_events(self) -> tuple[Event, Event]:
        """Two open events of 20 items: about a bridge, and later about a ferry."""
        self.stream.burst(20)
        for i in range(20):
            self.stream.add(20 + i / 10, FERRY)
        await self.tick(25)
        ferry, bridge = await self.events.list_events()
        return bridge, ferry


@pytest.fixture
def room(store: Store) -> Newsroom:
    stream, detector = FakeIndex(), detector_over(store)
    actions = EditorActions(detector.repository, FakeArticles(stream).get_many)
    return Newsroom(store, stream, detector, actions)


async def test_an_acknowledgement_survives_the_detectors_next_versions(room: Newsroom) -> None:
    """Editor and time are recorded; the first editor stays, and repeating the action changes nothing."""
    bridge, _ = await room.two_events()

    first = await room.act(bridge.id, "acknowledge")
    second = await room.act(bridge.id, "acknowledge", actor="Bea")
    room.stream.burst(5, start=31)
    await room.tick(40)

    event = await room.events.get(bridge.id)
    assert first == second
    assert event.acknowledged_by == "Ada" and event.size == 25
    assert event.actions == (EditorAction("acknowledge", "Ada", at(30), bridge.id),)
    assert event.revision == first.revision + 1 == bridge.revision + 2


@pytest.mark.parametrize("items", [15, 16])
async def test_a_published_event_is_back_with_as_many_items_as_for_an_alert(
    room: Newsroom, items: int
) -> None:
    """More than 15, the rule of the detector; published once more, it is handled until the next ones."""
    bridge, _ = await room.two_events()
    await room.act(bridge.id, "set_work_status", work_status="published")
    room.stream.burst(items, start=31)
    await room.tick(60)

    event = await room.events.get(bridge.id)
    again = await room.act(bridge.id, "set_work_status", minute=61, work_status="published", actor="Bea")
    assert (since_handled(event)[:2], is_settled(event)) == ((items, items == 16), items == 15)
    assert (room.done is not None, is_settled(again)) == (items == 16, True)


async def test_a_muted_story_does_not_alert_again(room: Newsroom) -> None:
    """Neither by growing, nor as a new event days later; after unmuting it does."""
    bridge, _ = await room.two_events()
    await room.act(bridge.id, "mute")
    room.stream.burst(30, start=31)
    await room.tick(70)
    room.stream.burst(40, start=2 * 1440 + 600, sources=40)
    changes = await room.tick(2 * 1440 + 700)

    again = (await room.events.list_events())[0]
    muted = {(c.kind, Event.of(c.event).muted) for c in changes if c.event.id == again.id}
    assert muted == {("updated", "story")}
    assert again.id != bridge.id and (again.muted, again.status) == ("story", "breaking")
    assert {kind for kind, id_ in await published(room.events) if id_ == again.id} == {"updated"}
    assert ("doubled", bridge.id) not in await published(room.events)

    await room.act(again.id, "unmute", minute=2 * 1440 + 701)
    room.stream.burst(40, start=4 * 1440 + 1100, sources=40)
    await room.tick(4 * 1440 + 1200)
    third = (await room.events.list_events())[0]
    assert third.muted is None and ("fired", third.id) in await published(room.events)


@pytest.mark.parametrize(("scope", "muted"), [("story", None), ("routine", "routine")])
async def test_a_story_is_muted_for_a_week_and_a_routine_indefinitely(
    room: Newsroom, scope: str, muted: str | None
) -> None:
    """A burst eight days after the mute, at another time of day."""
    bridge, _ = await room.two_events()
    await room.act(bridge.id, "mute", scope=scope)

    room.stream.burst(20, start=330 + 8 * 1440)
    await room.tick(360 + 8 * 1440)

    assert (await room.events.list_events())[0].muted == muted


async def test_a_mute_does_not_affect_other_stories(room: Newsroom) -> None:
    """A story with other words still alerts."""
    bridge, _ = await room.two_events()
    await room.act(bridge.id, "false_alarm")
    for i in range(20):
        room.stream.add(40 + i, "museum paintings stolen")
    await room.tick(61)

    event = (await room.events.list_events())[0]
    assert event.muted is None and ("fired", event.id) in await published(room.events)


async def test_a_false_alarm_is_marked_and_silent(room: Newsroom) -> None:
    """Marking an event mutes it; unmuting takes the mark away."""
    bridge, _ = await room.two_events()
    event = await room.act(bridge.id, "false_alarm")

    assert (event.false_alarm, event.muted) == (True, "story")
    assert (await room.act(bridge.id, "unmute")).false_alarm is False


@pytest.mark.parametrize(("both_open", "now"), [(True, 30), (False, 260)], ids=["both-open", "one-closed"])
async def test_two_events_are_merged(room: Newsroom, both_open: bool, now: int) -> None:
    """Both ids stay valid; items, also later ones, and both audit trails belong to the surviving event."""
    if both_open:
        bridge, ferry = await room.two_events()
    else:
        room.stream.burst(20)
        for i in range(20):
            room.stream.add(250 + i / 10, FERRY)
        await room.tick(260)
        ferry, bridge = await room.events.list_events()
        assert (ferry.status, bridge.status) == ("breaking", "closed")
    await room.act(bridge.id, "acknowledge", minute=now)

    merged = await room.act(bridge.id, "merge", minute=now + 1, into=ferry.id)
    for i in range(5):
        room.stream.add(now + 2 + i, FERRY)
    await room.tick(now + 10)

    absorbed, event = await room.events.get(bridge.id), await room.events.get(ferry.id)
    assert merged.id == ferry.id and merged.size == 40
    assert (absorbed.status, absorbed.merged_into) == ("closed", ferry.id)
    assert event.size == len(event.items) == 45
    assert event.absorbed == (bridge.id,)
    assert [a.action for a in event.actions] == ["acknowledge", "merge"]
    found = await room.events.event_ids_of([item.first_version for item in room.stream.items])
    assert set(found.values()) == {ferry.id}
    assert [kind for kind, id_ in await published(room.events) if id_ == bridge.id][-1] == "merged"
    assert await room.act(bridge.id, "merge", into=ferry.id) == event


async def test_impossible_merges_are_refused(room: Newsroom) -> None:
    """Into itself, into an unknown or a closed event, and of an event merged into another one."""
    room.stream.burst(20)
    for i in range(20):
        room.stream.add(250 + i / 10, FERRY)
        room.stream.add(250 + i / 10, "election result capital")
    await room.tick(260)
    open_ = await room.events.list_events(status="breaking")
    (closed,) = await room.events.list_events(status="closed")

    with pytest.raises(Conflict, match="into itself"):
        await room.act(open_[0].id, "merge", into=open_[0].id)
    with pytest.raises(NotFound, match="into: there is no event 'e9'"):
        await room.act(open_[0].id, "merge", into="e9")
    with pytest.raises(Conflict, match="other way round"):
        await room.act(open_[0].id, "merge", into=closed.id)
    await room.act(closed.id, "merge", into=open_[0].id)
    with pytest.raises(Conflict, match="already"):
        await room.act(closed.id, "merge", into=open_[1].id)
    with pytest.raises(Conflict, match="into itself"):
        await room.act(open_[0].id, "merge", into=closed.id)


async def test_an_action_on_a_merged_event_applies_to_the_surviving_one(room: Newsroom) -> None:
    """For example from a browser that still shows the old one."""
    bridge, ferry = await room.two_events()
    await room.act(bridge.id, "merge", into=ferry.id)

    event = await room.act(bridge.id, "acknowledge")

    assert (event.id, event.acknowledged_by) == (ferry.id, "Ada")


async def test_a_removed_item_does_not_come_back(room: Newsroom) -> None:
    """Neither with the next version of the event, nor with an update of the article."""
    bridge, _ = await room.two_events()
    headline = room.stream.items[[i.id for i in room.stream.items].index(bridge.headline_id)]

    event = await room.act(bridge.id, "remove_item", item=headline.id)
    assert headline.id not in event.items and headline.title.casefold() != event.title.casefold()
    assert event.headline_id in event.items and event.title in {i.title for i in room.stream.items}
    room.stream.items.append(replace(headline, number=headline.number + 1, arrived_ms=at(31)))
    room.stream.burst(3, start=32)
    await room.tick(40)

    event = await room.events.get(bridge.id)
    assert headline.id not in event.items and event.size == 22
    assert event.headline_id in event.items
    assert await room.events.event_ids_of([headline.first_version]) == {}
    assert (await room.act(bridge.id, "remove_item", item=headline.id)) == event
    with pytest.raises(NotFound, match="item: there is no article 'zz'"):
        await room.act(bridge.id, "remove_item", item="zz")


async def test_no_doubtful_one_gives_the_headline(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the detector's nor the one that follows a removed one; what an editor moves is not doubtful."""
    bridge, ferry = await room.two_events()
    sure = {*bridge.items[3:5]}
    monkeypatch.setattr(lifecycle, "strange_articles", lambda terms_of: terms_of.keys() - sure)
    room.stream.burst(3, start=26)
    await room.tick(42)
    told = await room.events.get(bridge.id)
    assert told.size == 23 and {*told.items} - {*told.doubtful} == sure and told.headline_id in sure

    left = await room.act(bridge.id, "remove_item", item=told.headline_id, minute=43)
    assert {left.headline_id} == sure - {told.headline_id}
    await room.act(bridge.id, "move_items", items=told.doubtful[:2], minute=44, into=ferry.id)
    assert not {*told.doubtful[:2]} & {*(await room.events.get(ferry.id)).doubtful}
    left = await room.events.get(bridge.id)
    back = await room.act(bridge.id, "undo", of=left.actions[-1].id, minute=45)
    assert {*told.doubtful[:2]} <= {*back.doubtful}


@pytest.mark.parametrize("action", ["remove_item", "move_items"])
@pytest.mark.parametrize("is_chosen", [False, True])
async def test_articles_return_as_they_were(room: Newsroom, action: str, is_chosen: bool) -> None:
    """Undoing restores times, claims, the first report and a chosen headline, also of late articles."""
    bridge, _ = await room.two_events()
    room.stream.add(26, "harbour bridge collapse", published_at_ms=at(-600))
    await room.tick(27)
    if is_chosen:
        await room.act(bridge.id, "choose_headline", item=bridge.items[5])
    before = await room.events.get(bridge.id)
    late = before.items[-1]
    assert before.first and before.claims == dict.fromkeys(before.items[:-1], 0) | {late: at(-600)}
    gone = tuple(dict.fromkeys((before.first[1], before.headline_id, late)))

    await room.act(bridge.id, action, items=gone, minute=31)
    room.stream.burst(1, start=32)
    await room.tick(32)
    without = await room.events.get(bridge.id)
    assert without.size == 22 - len(gone) and without.first != before.first
    back = await room.act(bridge.id, "undo", of=without.actions[-1].id, minute=33)
    room.stream.burst(1, start=34)
    await room.tick(34)
    after = await room.events.get(bridge.id)

    held = items_of(after)
    assert {id_: held[id_] for id_ in before.items} == items_of(before)
    assert (back.first, after.first, after.size, after.peak) == (before.first, before.first, 23, 23)
    chosen = after.chosen_headline
    assert (chosen.item if chosen else "") == (before.headline_id if is_chosen else "")


@pytest.mark.parametrize("is_chosen", [False, True])
async def test_an_event_without_articles_keeps_its_last_headline(room: Newsroom, is_chosen: bool) -> None:
    """After its split was undone, also in what the detector says of it later."""
    bridge, _ = await room.two_events()
    split = await room.act(bridge.id, "move_items", items=bridge.items[:8], minute=26)
    new = split.actions[-1].into or ""
    await room.tick(27)
    if is_chosen:
        await room.act(new, "choose_headline", minute=28, item=bridge.items[0])
    before = await room.events.get(new)
    assert before.terms and before.headline_id in bridge.items[:8]

    back = await room.act(bridge.id, "undo", minute=29, of=split.actions[-1].id)
    for minute in (30, 40):
        emptied = await room.events.get(new)
        assert (emptied.size, emptied.merged_into, emptied.title) == (0, bridge.id, before.title)
        room.stream.burst(1, start=minute)
        await room.tick(minute + 1)
    assert back.size == 20 and {*bridge.items} <= {*(await room.events.get(bridge.id)).items}


async def test_an_unknown_event_is_refused(room: Newsroom) -> None:
    """Nothing is written for it."""
    with pytest.raises(NotFound, match="no event 'e9'"):
        await room.act("e9", "mute")
    assert await published(room.events) == []


async def test_every_change_record_has_the_revision(room: Newsroom) -> None:
    """A reader of the change stream can skip versions that it has read already."""
    bridge, _ = await room.two_events()
    position = await room.events.latest_position()
    await room.act(bridge.id, "acknowledge")
    room.stream.burst(25, start=31)
    await room.tick(60)

    changes = [change for _, change in await room.events.changes(position)]
    assert [(c.kind, c.event_id) for c in changes] == [("action", bridge.id), ("doubled", bridge.id)]
    assert [c.revision for c in changes] == [2, 3]
    assert (await room.events.get(bridge.id)).revision == 3


async def test_concurrent_editors_and_detectors_lose_nothing(room: Newsroom) -> None:
    """Two browsers, two leaders: each action is applied once, each item counted once."""
    bridge, ferry = await room.two_events()
    other = EditorActions(EventRepository(room.store), FakeArticles(room.stream).get_many)
    rival = detector_over(room.store)

    async def edit(actions: EditorActions, name: str) -> None:
        for n, item in enumerate(bridge.items[:10]):
            if n % 2 == (name == "Bea"):
                await actions.apply(EditorAction("remove_item", name, at(30), bridge.id, item=item))
            await actions.apply(EditorAction("mute" if n % 2 else "unmute", name, at(30), ferry.id))

    async def detect(detector: DetectorRunner) -> None:
        for i in range(20):
            room.stream.add(31 + i / 100)
            await detector.poll(room.stream, at(31 + i))
            await asyncio.sleep(0)

    await asyncio.gather(edit(room.actions, "Ada"), edit(other, "Bea"), detect(room.detector), detect(rival))
    await room.tick(60)

    event = await room.events.get(bridge.id)
    assert event.size == len(event.items) == 50
    assert [a.item for a in sorted(event.actions, key=lambda a: a.item or "")] == sorted(bridge.items[:10])
    assert not set(event.items) & set(bridge.items[:10])
    assert [kind for kind, _ in await published(room.events)].count("fired") == 2


async def test_overrides_survive_a_lost_state(room: Newsroom) -> None:
    """The detector reads the stream from its start and arrives at what the editors made of it."""
    bridge, ferry = await room.two_events()
    await room.act(bridge.id, "merge", into=ferry.id)
    await room.act(ferry.id, "remove_item", item=ferry.items[3])
    await room.store.commit(Transaction((), (Delete(POSITION_KEY), Delete(STATE_KEY))))

    await detector_over(room.store).poll(room.stream, at(40))

    event = await room.events.get(ferry.id)
    assert set(event.items) == {i.id for i in room.stream.items} - {ferry.items[3]}
    assert (await room.events.get(bridge.id)).merged_into == ferry.id
    assert len([e for e in await room.events.list_events() if e.status != "closed"]) == 1


async def test_a_deleted_article_is_removed_from_its_event_before_the_next_tick(room: Newsroom) -> None:
    """Its headline disappears also while no detector runs, and the next version does not bring it back."""
    bridge, _ = await room.two_events()
    headline = next(i for i in room.stream.items if i.id == bridge.headline_id)

    await room.actions.remove_article(headline.first_version, headline.id, at(26))
    event = await room.events.get(bridge.id)
    room.stream.burst(2, start=27)
    await room.tick(30)

    assert headline.id not in event.items and event.title != bridge.title
    event = await room.events.get(bridge.id)
    assert headline.id not in event.items and event.size == 21 and event.title != bridge.title
    position = await room.events.latest_position()
    await room.actions.remove_article(12345, "unknown", at(31))
    assert await room.events.latest_position() == position


async def test_notes_and_assignment_survive_the_detectors_next_versions(room: Newsroom) -> None:
    """And a repeated request for a note adds nothing, so a client may retry it."""
    bridge, _ = await room.two_events()
    await room.act(bridge.id, "note", text="Called the port authority.")
    await room.act(bridge.id, "set_work_status", minute=31, work_status="on_it", actor="Bea")
    room.stream.burst(5, start=31)
    await room.tick(40)
    again = await room.act(bridge.id, "note", minute=41, text="Called the port authority.")

    assert [(n.actor, n.at_ms, n.text) for n in again.notes] == [
        ("Ada", at(30), "Called the port authority.")
    ]
    assert (again.assignee, again.work_status, again.size) == ("Bea", "on_it", 25)
    assert [(a.action, a.actor) for a in again.actions] == [("note", "Ada"), ("set_work_status", "Bea")]
    assert [kind for kind, id_ in await published(room.events) if id_ == bridge.id].count("action") == 2


async def test_a_chosen_headline_is_an_override(room: Newsroom) -> None:
    """The detector keeps it while the event grows; it must be that of an item, and can be undone."""
    bridge, ferry = await room.two_events()
    item = next(i for i in bridge.items if i != bridge.headline_id)
    chosen = await room.act(bridge.id, "choose_headline", item=item)
    room.stream.burst(5, start=31)
    await room.tick(40)
    grown = await room.events.get(bridge.id)
    with pytest.raises(NotFound, match="no article 'a39' in event"):
        await room.act(bridge.id, "choose_headline", item="a39")
    undone = await room.act(bridge.id, "choose_headline", minute=41)

    assert "a39" in ferry.items
    assert chosen.title == grown.title == f"harbour bridge collapse report{item[1:]}" != bridge.title
    assert (grown.headline_id, grown.size) == (item, 25)
    assert undone.headline_id != item and undone.chosen_headline is None


async def test_notes_beyond_the_limit_are_refused(room: Newsroom) -> None:
    """Nothing is written then."""
    bridge, _ = await room.two_events()
    for n in range(8):
        before = await room.act(bridge.id, "note", text=f"{n}{'x' * 3999}")
    with pytest.raises(Conflict, match="of at most 32000 bytes"):
        await room.act(bridge.id, "note", text="One more.")

    assert await room.events.get(bridge.id) == before


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("acknowledge", {}), ("mute", {"scope": "routine"}), ("false_alarm", {}),
        ("assign", {"assignee": "Bea"}), ("set_work_status", {"work_status": "on_it"}),
        ("set_work_status", {"work_status": "published"}), ("set_work_status", {"work_status": "seen"}),
    ],
)  # fmt: skip
async def test_what_was_set_is_undone(room: Newsroom, action: str, fields: dict[str, Any]) -> None:
    """And again by undoing that; not once it was changed again."""
    bridge, _ = await room.two_events()
    done = await room.act(bridge.id, action, **fields)

    undone = await room.act(bridge.id, "undo", of=done.actions[-1].id, actor="Bea")
    again = await room.act(bridge.id, "undo", of=undone.actions[-1].id)

    assert replace(undone, actions=(), revision=0) == replace(bridge, actions=(), revision=0)
    assert replace(again, actions=(), revision=0) == replace(done, actions=(), revision=0)
    assert [(a.action, a.of) for a in undone.actions] == [(action, None), ("undo", done.actions[-1].id)]
    assert bool((await room.overrides()).mutes) == bool(done.muted)
    with pytest.raises(Conflict, match="can no longer be undone"):
        await room.act(bridge.id, "undo", of=done.actions[-1].id)
    with pytest.raises(Conflict, match="can no longer be undone"):
        await room.act(bridge.id, "undo", of=7)


async def test_a_status_that_another_one_replaced_is_not_undone(room: Newsroom) -> None:
    """Nothing would change of what is shown; the present one is undone."""
    bridge, _ = await room.two_events()
    for status in ("seen", "on_it", "published"):
        event = await room.act(bridge.id, "set_work_status", work_status=status)

    assert list(undoable_actions(event)) == [event.actions[-1].id]


async def test_what_editors_merge_or_move_did_not_grow(room: Newsroom) -> None:
    """So it raises no alert; what joins later may."""
    bridge, ferry = await room.two_events()
    room.stream.burst(14, start=26)
    await room.tick(41)
    alerts = [each for each in await published(room.events) if each[0] in ALERTS]
    await room.act(bridge.id, "move_items", minute=42, items=bridge.items[:9], into=ferry.id)
    await room.tick(43)
    await room.act(bridge.id, "merge", minute=44, into=ferry.id)
    await room.tick(45)

    assert (await room.events.get(ferry.id)).size == 54
    assert [each for each in await published(room.events) if each[0] in ALERTS] == alerts


async def test_a_merge_adds_what_was_not_counted(room: Newsroom) -> None:
    """Repetitions by the same outlet, at once and in later versions of the detector."""
    bridge, ferry = await room.two_events()
    for original in (room.stream.items[0], room.stream.items[20], room.stream.items[21]):
        repeated: dict[str, Any] = {"canonical_first": original.first_version, "source": original.source}
        room.stream.add(26, verdict="duplicate", **repeated)
    await room.tick(27)
    before = [(await room.events.get(each.id)).sightings for each in (bridge, ferry)]
    merged = await room.act(bridge.id, "merge", into=ferry.id)
    room.stream.add(31, FERRY)
    await room.tick(32)

    assert (before, merged.sightings, (await room.events.get(ferry.id)).sightings) == ([1, 2], 3, 3)


async def test_new_and_seen_replace_every_other_status(room: Newsroom) -> None:
    """An event that nobody has yet is taken by the editor who begins, or by a named one."""
    bridge, _ = await room.two_events()
    taken = await room.act(bridge.id, "set_work_status", work_status="on_it", assignee="Bea")
    seen = await room.act(bridge.id, "set_work_status", work_status="seen")
    new = await room.act(bridge.id, "set_work_status", work_status="new")

    states = [(e.work_status, e.assignee, e.acknowledged_by) for e in (taken, seen, new)]
    assert states == [("on_it", "Bea", None), ("open", "", "Ada"), ("open", "", None)]


@pytest.mark.parametrize("with_detector", [True, False])
async def test_a_merge_is_undone(room: Newsroom, with_detector: bool) -> None:
    """Both events are open again with their articles and get later ones; stay apart."""
    bridge, ferry = await room.two_events()
    merged = await room.act(bridge.id, "merge", into=ferry.id)
    if with_detector:
        room.stream.add(31, FERRY)
        await room.tick(32)

    await room.act(ferry.id, "undo", of=merged.actions[-1].id, minute=33)
    await room.tick(34)
    room.stream.add(35, FERRY)
    room.stream.burst(3, start=35)
    await room.tick(45)

    one, two = await room.events.get(bridge.id), await room.events.get(ferry.id)
    assert (one.status, one.merged_into, one.size, two.size) == (
        "breaking", None, 23, 21 + with_detector
    )  # fmt: skip
    assert set(bridge.items) < set(one.items) and two.absorbed == () and not set(one.items) & set(two.items)
    assert all(e.size == len(e.items) == sum(count for _, count in e.timeline) for e in (one, two))
    assert await room.linked() == {i: e.id for e in (one, two) for i in e.items}
    assert all(e.headline_id in e.items and e.title for e in (one, two))
    assert [kind for kind, _ in await published(room.events)].count("fired") == 2
    for before, after in ((bridge, one), (ferry, two)):
        assert (after.detected_at_ms, after.reason) == (before.detected_at_ms, before.reason)
    again = await room.act(bridge.id, "merge", minute=46, into=ferry.id)
    await room.tick(47)
    assert (await room.events.get(ferry.id)).size == again.size == one.size + two.size


@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_undoing_a_merge_restores_both_events(room: Newsroom, is_new_leader: bool) -> None:
    """One is hours old, with items that left the window; what joined meanwhile goes where it belongs.

    Neither merging nor undoing is growth, so nothing alerts.
    """
    room.stream.burst(30, sources=8)
    for i in range(40):
        room.stream.add(150 + i / 2)
    await room.tick(200)
    for i in range(24):
        room.stream.add(255 + i / 10, FERRY)
    await room.tick(261)
    ferry, bridge = await room.events.list_events()
    await room.act(bridge.id, "set_work_status", minute=262, work_status="seen")
    await room.act(bridge.id, "note", minute=262, text="Call the port.")
    await room.act(bridge.id, "set_work_status", minute=262, work_status="published")
    bridge, ferry = await room.events.get(bridge.id), await room.events.get(ferry.id)
    alerts = [kind for kind, _ in await published(room.events) if kind in ALERTS]

    merged = await room.act(bridge.id, "merge", minute=263, into=ferry.id)
    for minute in range(264, 270):
        room.stream.add(minute)
        await room.tick(minute + 0.5)
    assert (await room.events.get(ferry.id)).size == bridge.size + ferry.size + 6
    room.detector = detector_over(room.store) if is_new_leader else room.detector
    await room.act(ferry.id, "undo", of=merged.actions[-1].id, minute=270)
    for minute in range(271, 275):
        await room.tick(minute)

    for before, joined in ((bridge, {item.id for item in room.stream.items[-6:]}), (ferry, set())):
        after = await room.events.get(before.id)
        expected = joined.union(before.items)
        assert set(after.items) == expected and after.size == len(expected)
        for name in (
            "status", "detected_at_ms", "reason", "expected", "window_ms", "sightings", "merged_into",
            "absorbed", "acknowledged_by", "assignee", "work_status", "notes", "first",
            "developments", "languages",
        ):  # fmt: skip
            assert getattr(after, name) == getattr(before, name), name
        assert set(after.sources) == set(before.sources)
        assert after.title == before.title or joined
    assert [kind for kind, _ in await published(room.events) if kind in ALERTS] == alerts
    again = await room.act(bridge.id, "merge", minute=276, into=ferry.id)
    await room.tick(277)
    assert (await room.events.get(ferry.id)).size == again.size


@pytest.mark.parametrize("first_undone", [0, 1])
@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_of_two_merges_into_one_event_each_is_undone(
    room: Newsroom, first_undone: int, is_new_leader: bool
) -> None:
    """In any order: each event has its articles again, the other stays merged until its merge is undone."""
    strike = "airport strike cancelled flights"
    bridge, ferry = await room.two_events()
    for i in range(20):
        room.stream.add(26 + i / 10, strike)
    await room.tick(29)
    (third,) = [e for e in await room.events.list_events() if e.id not in (ferry.id, bridge.id)]
    before = bridge, third, ferry
    merges = [
        (await room.act(e.id, "merge", minute=30, into=ferry.id)).actions[-1].id for e in (bridge, third)
    ]
    await room.tick(33)
    for i in range(6):
        room.stream.add(34 + i / 10, strike)
    await room.tick(36)
    assert (await room.events.get(ferry.id)).size == 66

    for minute, k in ((40, first_undone), (42, 1 - first_undone)):
        room.detector = detector_over(room.store) if is_new_leader else room.detector
        await room.act(ferry.id, "undo", of=merges[k], minute=minute)
        await room.tick(minute + 1)
        again, survivor = await room.events.get(before[k].id), await room.events.get(ferry.id)
        assert (again.title, again.status) == (before[k].title, "breaking")
        assert {i for i in survivor.items if i in before[1 - k].items} == (
            set(before[1 - k].items) if minute == 40 else set()
        )

    after = [await room.events.get(event.id) for event in before]
    assert [set(e.items) >= set(b.items) for e, b in zip(after, before, strict=True)] == [True] * 3
    assert [e.absorbed for e in after] == [()] * 3 and sum(e.size for e in after) == 66
    assert await room.linked() == {i: e.id for e in after for i in e.items}
    assert after[1].size == 26


async def test_articles_are_split_off_and_return(room: Newsroom) -> None:
    """The new event is open, gets articles like its own, raises no alert."""
    for i in range(20):
        room.stream.add(i / 10, "harbour bridge collapse")
        room.stream.add(i / 10, "harbour bridge trial verdict")
    await room.tick(5)
    (mixed,) = await room.events.list_events()
    trial = tuple(i.id for i in room.stream.items if "trial" in i.title)

    left = await room.act(mixed.id, "move_items", items=trial, minute=6)
    new_id = left.actions[-1].into or ""
    split = await room.events.get(new_id)
    assert (left.size, split.size, split.status) == (20, 20, "breaking") and "trial" in split.title
    assert split.first and split.first[1] == trial[0]
    await room.tick(7)
    for i in range(5):
        room.stream.add(8 + i, "harbour bridge trial verdict")
    await room.tick(20)

    split = await room.events.get(new_id)
    assert split.size == len(split.items) == 25 and "trial" in split.terms
    assert (await room.events.get(mixed.id)).size == 20
    assert [kind for kind, id_ in await published(room.events) if id_ == new_id] == ["action", "updated"]
    await room.act(mixed.id, "undo", of=left.actions[-1].id, minute=21)
    await room.tick(22)
    assert (await room.events.get(mixed.id)).size == 40


async def test_the_first_report_returns_with_its_article(room: Newsroom) -> None:
    """By a merge of what was split off, as by Undo: what is too early for it, so doubtful, is the same."""
    bridge, _ = await room.two_events()
    assert bridge.first and bridge.first[1] == bridge.items[0]
    left = await room.act(bridge.id, "move_items", items=bridge.items[:3])
    split = await room.events.get(left.actions[-1].into or "")
    assert split.first == bridge.first
    await room.tick(30.5)
    await room.act(split.id, "merge", minute=31, into=bridge.id)
    await room.tick(32)

    whole = await room.events.get(bridge.id)
    assert (set(whole.items), whole.first) == (set(bridge.items), bridge.first)


async def test_a_split_can_be_undone_after_a_merge_that_was_undone(room: Newsroom) -> None:
    """Not while the two are one, whose history has both actions once."""
    bridge, _ = await room.two_events()
    left = await room.act(bridge.id, "move_items", items=bridge.items[:3])
    split, new_id = left.actions[-1], left.actions[-1].into or ""
    merged = await room.act(new_id, "merge", minute=31, into=bridge.id)
    merge = merged.actions[-1]
    assert [action.action for action in merged.actions] == ["move_items", "merge"]
    assert undoable_actions(merged).keys() == {merge.id}

    apart = await room.act(bridge.id, "undo", of=merge.id, minute=32)
    assert undoable_actions(apart).keys() == {split.id}
    assert split.id in undoable_actions(await room.events.get(new_id))
    await room.act(bridge.id, "undo", of=split.id, minute=33)
    await room.tick(34)

    whole = await room.events.get(bridge.id)
    assert set(whole.items) == set(bridge.items) and undoable_actions(whole) == {}


async def test_an_article_of_no_event_is_added_to_one(room: Newsroom) -> None:
    """It stays with every later version of the event; it can be undone, and what an event has is refused."""
    bridge, ferry = await room.two_events()
    loose = [room.stream.add(26, "mayor asks for tents") for _ in range(2)]
    await room.tick(27)
    ids = tuple(item.id for item in loose)
    for items in ((bridge.items[0],), (ids[0], ferry.items[0]), ("unknown",)):
        with pytest.raises(Conflict, match="in no event"):
            await room.act(bridge.id, "move_items", items=items, into=bridge.id)

    added = await room.act(bridge.id, "move_items", items=ids, into=bridge.id)
    room.stream.burst(3, start=31)
    await room.tick(32)

    event = await room.events.get(bridge.id)
    assert (added.size, event.size) == (22, 25) and {*ids} < {*event.items}
    assert (await room.linked())[ids[0]] == bridge.id
    await room.act(bridge.id, "undo", of=added.actions[-1].id, minute=33)
    await room.tick(34)
    event = await room.events.get(bridge.id)
    assert event.size == 23 and not {*ids} & {*event.items} and ids[0] not in await room.linked()


async def test_articles_that_were_moved_on_do_not_return(room: Newsroom) -> None:
    """The event that they left first has no record of it; the others return."""
    bridge, ferry = await room.two_events()
    first, second = bridge.items[:2]
    left = await room.act(bridge.id, "move_items", items=(first, second), into=ferry.id)
    await room.act(ferry.id, "move_items", items=(first,), minute=31)
    back = await room.act(bridge.id, "undo", of=left.actions[-1].id, minute=32)
    assert back.size == 19 and first not in back.items

    left = await room.act(bridge.id, "move_items", items=(second,), into=ferry.id, minute=33)
    await room.act(ferry.id, "move_items", items=(second,), minute=34)
    with pytest.raises(Conflict, match="can no longer be undone"):
        await room.act(bridge.id, "undo", of=left.actions[-1].id, minute=35)


async def test_a_new_event_whose_articles_return_leads_to_the_old_one(room: Newsroom) -> None:
    """Nothing of it stays open."""
    bridge, _ = await room.two_events()
    left = await room.act(bridge.id, "move_items", items=bridge.items[:3])
    for minute in (31, 32):
        await room.tick(minute)
    with pytest.raises(Conflict, match="no other articles"):
        await room.act(bridge.id, "move_items", items=bridge.items)

    back = await room.act(left.actions[-1].into or "", "undo", of=left.actions[-1].id, minute=33)
    await room.tick(34)

    assert (back.merged_into, back.status) == (bridge.id, "closed")
    assert set((await room.events.get(bridge.id)).items) == set(bridge.items)
    assert len(await room.events.list_events(status="breaking")) == 2


async def test_a_deleted_article_of_no_event_changes_nothing(room: Newsroom) -> None:
    """Deletions of a whole source write nothing about events."""
    await room.two_events()
    before = await room.overrides()
    await room.actions.remove_article(77, "of-no-event", at(30))

    assert await room.overrides() == before


@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_what_editors_opened_is_closed_if_its_articles_are_too_old(
    room: Newsroom, is_new_leader: bool
) -> None:
    """The detector has them no longer in its window, so no later article can close the event."""
    bridge, _ = await room.two_events()
    room.stream.burst(5, start=230)
    await room.tick(243)
    left = await room.act(bridge.id, "move_items", items=bridge.items[:2], minute=243)
    room.detector = detector_over(room.store) if is_new_leader else room.detector
    room.stream.add(262)
    await room.tick(263)

    assert (await room.events.get(left.actions[-1].into or "")).status == "closed"


@pytest.mark.parametrize("seed", range(12))
async def test_random_actions_neither_lose_nor_double_an_article(room: Newsroom, seed: int) -> None:
    """Merges, splits, moves, removals and their undoing between the detector's versions."""
    dice = random.Random(seed)
    await room.two_events()
    known = {item for event in await room.events.list_events() for item in event.items}
    for minute in range(30, 150, 2):
        events = [e for e in await room.events.list_events() if e.status != "closed" and len(e.items) > 1]
        if not events:
            break
        one = dice.choice(events)
        items = tuple(dice.sample(one.items, min(3, len(one.items) - 1)))
        others = [event.id for event in events if event.id != one.id]
        undoable = list(undoable_actions(one))
        choices: list[tuple[str, dict[str, Any]]] = [("remove_item", {"items": items})] if items else []
        choices += [("move_items", {"items": items})] if items else []
        choices += [("undo", {"of": id_}) for id_ in undoable]
        choices += [("merge", {"into": id_}) for id_ in others]
        choices += [("move_items", {"items": items, "into": id_}) for id_ in others if items]
        action, fields = dice.choice(choices)
        with suppress(Conflict):  # the undoing of a move between two events that are one now
            await room.act(one.id, action, minute, **fields)
        if dice.random() < 0.5:
            room.stream.add(minute, dice.choice([FERRY, "harbour bridge collapse"]))
            await room.tick(minute + 1)
        events = await room.events.list_events()
        live = [event for event in events if not event.merged_into]
        held = [item for event in live for item in event.items]
        known |= set(held)
        removed = {item for event in live for item in event.removed} - set(held)
        assert len(held) == len(set(held)), (minute, action)
        assert set(held) | removed == known, (minute, action)
        assert all(event.size == len(event.items) for event in live), (minute, action)
        assert set((await room.linked()).items()) == {(i, e.id) for e in live for i in e.items}
