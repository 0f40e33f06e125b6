"""Repository of events: lists, pages, merges, and the change stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import NotFound, StoreUnavailable
from aggregator.events.changes import EventUnitOfWork
from aggregator.events.detection.model import EditorOverrides
from aggregator.events.event import EventSummary
from aggregator.events.repository import (
    CHANGE_RETENTION_MS,
    CHANGES_KEY,
    EVENTS_PER_READ,
    INDEX_KEY,
    LEARNING_KEY,
    MAX_MERGE_HOPS,
    OVERRIDES_FORMAT,
    ChangeRecord,
    EventRepository,
    event_key,
    merge_chain,
    number_key,
)
from aggregator.events.selection import EventFilter, page_key
from aggregator.store.base import Put, Store, StreamAdd, Transaction, Write
from aggregator.store.memory import MemoryStore
from tests.support.factories import EVENT_MS, commit_event, event


@pytest.fixture
def repository(store: Store) -> EventRepository:
    """The events of an empty store."""
    return EventRepository(store)


async def test_an_empty_store_has_no_events(repository: EventRepository) -> None:
    """No events, no event of an article number, and a clear error for an id."""
    assert await repository.list_events() == []
    assert await repository.event_ids_of([1]) == {} == await repository.event_ids_of([])
    with pytest.raises(NotFound, match="no event 'e1'"):
        await repository.get("e1")


async def test_a_storyline_lists_its_events_in_order_of_detection(repository: EventRepository) -> None:
    """Also one that has no link; merged events are left out, and neighbors skip them."""
    for number, (id_, story_id, merged_into) in enumerate(
        [("a", "a", None), ("x", "x", None), ("b", "a", "a"), ("c", "a", None), ("d", "a", None)]
    ):
        changed = event(
            id_, id_, story_id=story_id, merged_into=merged_into, detected_at_ms=EVENT_MS + number
        )
        await commit_event(repository, "fired", changed, EVENT_MS)

    events = await repository.story_events("a")

    assert [e.id for e in events] == ["a", "c", "d"]
    assert [e.id for e in await repository.story_events("x")] == ["x"]
    assert await repository.story_neighbors(events[0]) == (None, events[1])
    assert await repository.story_neighbors(events[1]) == (events[0], events[2])
    assert await repository.story_neighbors(await repository.get("b")) == (None, None)
    with pytest.raises(NotFound, match="no storyline 'none'"):
        await repository.story_events("none")


async def test_pages_follow_each_other_without_gap_or_repetition(repository: EventRepository) -> None:
    """Events seen at the same time are ordered by detection and id, so a page may end between them."""
    for number in range(7):
        storm = event(
            f"e{number}",
            f"Storm {number}",
            last_seen_ms=EVENT_MS + number // 3,
            detected_at_ms=EVENT_MS - number % 2,
        )
        await commit_event(repository, "fired", storm, EVENT_MS)
    everything = await repository.list_events()

    pages = []
    page = await repository.list_events(limit=2)
    while page:
        pages += page
        page = await repository.list_events(limit=2, after=page_key(page[-1], page[-1].id))

    assert pages == everything
    assert len({e.id for e in pages}) == 7
    assert (keys := [page_key(e, e.id) for e in pages]) == sorted(keys, reverse=True)


async def test_a_filter_looks_beyond_the_first_read(repository: EventRepository) -> None:
    """Only the oldest of more events than one read returns matches."""
    unit = await EventUnitOfWork.begin(repository)
    for number in range(EVENTS_PER_READ + 1):
        title = "Ferry aground" if number == 0 else f"Storm {number}"
        unit.put(event(f"e{number}", title, last_seen_ms=EVENT_MS + number, terms=()), None, EVENT_MS)
    assert not await unit.commit()

    (found,) = await repository.list_events(limit=1, event_filter=EventFilter(term="ferry"))

    assert found.id == "e0"


async def test_a_list_is_limited_by_the_time_of_the_last_item(repository: EventRepository) -> None:
    """An event that was last seen exactly then is included."""
    await commit_event(repository, "fired", event("e1", "Storm"), EVENT_MS)

    assert [e.id for e in await repository.list_events(since_ms=EVENT_MS)] == ["e1"]
    assert await repository.list_events(since_ms=EVENT_MS + 1) == []


async def test_unknown_ids_are_left_out(repository: EventRepository) -> None:
    """An id that appears only in the index of events is unknown too: its event was deleted."""
    await commit_event(repository, "fired", event("e1", "Storm"), EVENT_MS)
    index = {"gone": EventSummary("closed", 0, 0)}
    await repository.store.commit(
        Transaction((), (Put(INDEX_KEY, b"\x81\xa4gone\x94\xa6closed\x00\x00\xc0"),))
    )

    assert await repository.summaries() == index
    assert list(await repository.get_many(["gone", "e1", "never"])) == ["e1"]
    assert await repository.list_events() == []


async def test_the_articles_of_the_surviving_event_are_returned(repository: EventRepository) -> None:
    """An article leads to the event that its own one was merged into."""
    await commit_event(repository, "fired", event("e1", "Storm", ["a1", "a2"]), EVENT_MS)
    await commit_event(repository, "merged", event("e2", "Wind", ["a3"], merged_into="e1"), EVENT_MS)
    await repository.store.commit(Transaction((), (Put(number_key(7), b"e2"),)))

    assert await repository.event_ids_of([7, 8]) == {7: "e1"}
    assert await repository.event_article_ids(7) == ("a1", "a2")
    assert await repository.event_article_ids(8) == ()


async def test_changes_are_read_on_from_a_position(repository: EventRepository) -> None:
    """The newest position has nothing behind it; an empty stream has the position b""."""
    assert await repository.latest_position() == b""
    for id_ in ("e1", "e2", "e3"):
        await commit_event(repository, "fired", event(id_, "Storm"), EVENT_MS)

    first, second = await repository.changes(count=2)
    (third,) = await repository.changes(second[0])

    assert [record.event_id for _, record in (first, second, third)] == ["e1", "e2", "e3"]
    assert await repository.latest_position() == third[0]
    assert await repository.changes(third[0]) == []


async def test_the_change_stream_is_bounded() -> None:
    """Records two days older than the newest one are trimmed."""
    now_ms = EVENT_MS
    store = MemoryStore(clock=lambda: now_ms)
    repository = EventRepository(store)
    payload = b'{"kind":"fired","at_ms":1,"event_id":"e"}'
    for step_ms in (0, CHANGE_RETENTION_MS - 1, 1, 1):
        now_ms += step_ms
        await store.commit(Transaction((), (StreamAdd(CHANGES_KEY, payload),)))

    await repository.trim_changes(now_ms)

    assert len(await repository.changes()) == 3


def test_a_change_record_holds_no_headline() -> None:
    """The headline of a deleted article must not remain in the stream."""
    assert ChangeRecord.__struct_fields__ == ("kind", "at_ms", "event_id", "revision")


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")), st.sampled_from("abcdef"))
def test_a_merge_chain_ends(merges: dict[str, str], start: str) -> None:
    """Even if events were merged in a circle; each entry was merged into the next one."""
    summaries = {id_: EventSummary("closed", 0, 0, into) for id_, into in merges.items()}

    chain = merge_chain(summaries, start)

    assert chain[0] == start
    assert [merges[id_] for id_ in chain[:-1]] == chain[1:]
    assert len(chain) == MAX_MERGE_HOPS or chain[-1] not in merges


def test_keys_of_different_events_and_articles_differ() -> None:
    """Also of ids that are no valid Unicode and of the largest article number."""
    assert len({event_key("e1"), event_key("\ud800"), event_key("")}) == 3
    assert number_key(2**64 - 1) == b"{events}n:ffffffffffffffff"


async def test_damaged_values_are_reported_as_such(repository: EventRepository) -> None:
    """The message names what is damaged; absent values are empty."""
    damaged = {event_key("e1"): b"{", INDEX_KEY: b"\xc1"}
    writes: list[Write] = [Put(key, value) for key, value in damaged.items()]
    writes.append(StreamAdd(CHANGES_KEY, b'{"kind": "started"}'))
    assert (await repository.summaries(), OVERRIDES_FORMAT.decode(None)) == ({}, EditorOverrides())
    await repository.store.commit(Transaction((), tuple(writes)))

    with pytest.raises(StoreUnavailable, match="The event 'e1'"):
        await repository.get("e1")
    with pytest.raises(StoreUnavailable, match="The index of events"):
        await repository.summaries()
    with pytest.raises(StoreUnavailable, match="The list of editor overrides"):
        OVERRIDES_FORMAT.decode(b"\xc1")
    with pytest.raises(StoreUnavailable, match="A change of an event"):
        await repository.changes()


async def test_a_damaged_learning_status_hides_no_events(repository: EventRepository) -> None:
    """It is unknown until the next checkpoint."""
    await repository.store.put([Put(LEARNING_KEY, b"\x92\xc1")])

    assert await repository.learning(EVENT_MS) is None
