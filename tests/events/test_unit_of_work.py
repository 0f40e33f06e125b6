"""Unit of work: revisions, change records, and commits that no other writer has overtaken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.events.detection.model import EditorOverrides, EventChange, Mute
from aggregator.events.event import Note
from aggregator.events.repository import (
    INDEX_KEY,
    OVERRIDES_KEY,
    POSITION_KEY,
    EventRepository,
    event_key,
    number_key,
)
from aggregator.events.unit_of_work import EventUnitOfWork, encode_msgpack
from aggregator.store.base import Put, Store, Transaction
from tests.support.factories import EVENT_MS, commit_event, event

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
    await unit.add_detector_changes([EventChange("fired", EVENT_MS, STORM, (11, 12))])
    await unit.commit()
    assert await repository.event_ids_of([11, 12]) == {11: "e1", 12: "e1"}

    unit = await EventUnitOfWork.begin(repository)
    await unit.remove_article(11, "a1", EVENT_MS + 1)
    await unit.remove_article(99, "a2", EVENT_MS + 1)
    await unit.commit()

    stored = await repository.get("e1")
    assert (stored.items, stored.removed, stored.size) == (("a2",), ("a1",), 1)
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


async def test_a_muted_story_is_updated_without_an_alert(repository: EventRepository) -> None:
    """A new event with the profile of a muted one is muted from the start."""
    profile = (("storm", 1.0),)
    unit = await EventUnitOfWork.begin(repository)
    unit.overrides = EditorOverrides(mutes=(Mute("e0", "routine", profile),))

    changes = [EventChange(kind, EVENT_MS, replace(STORM, profile=profile)) for kind in ("fired", "doubled")]
    await unit.add_detector_changes(changes)
    await unit.commit()

    assert [change.kind for change in unit.published] == ["updated", "updated"] == await kinds(repository)
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
