"""Article stream: commit order over segments and spaces, read from any position."""

from __future__ import annotations

from dataclasses import fields, replace

import msgspec
import pytest

from aggregator.analysis.shingles import build_sketch
from aggregator.analysis.term_profile import OPENING_WEIGHT
from aggregator.domain import NUMBER_RANDOM_BITS, ArticleRecord, Match, Outcome, Problem, StreamItem
from aggregator.errors import StoreUnavailable
from aggregator.index import Index, article_stream, keys
from aggregator.index.article_stream import (
    EntryKind,
    decode_stream_entry,
    encode_stream_entry,
    to_stream_item,
)
from aggregator.index.bindings import Binding
from aggregator.index.codec.record_codec import decode_record, encode_record
from aggregator.store.base import Put, Store, StreamAdd, Transaction
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.index.helpers import seal
from tests.support.factories import START_MS, Core, core, story
from tests.support.factories import Clock as ServiceClock

NUMBER = 1_770_000_000_000 << NUMBER_RANDOM_BITS
COPY = Binding(
    NUMBER, 5, bytes(16), "port", Outcome("duplicate", 0, Match("pier", 9, "quay", 3, 0, 1.0, "exact"))
)
# With a title long enough for compression.
RECORD = ArticleRecord(
    number=NUMBER, first_version=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
    text_hash=bytes(range(16)), short=False, title="The port opens " * 8, url="https://example.org/port",
    source="Example", published_at_ms=7, sketch=build_sketch(["the", "port", "opens"]),
    terms=(("harbour", 1.0), ("crane", 0.4)), figures=(17,),
)  # fmt: skip


def test_an_entry_is_completed_with_its_record() -> None:
    """Every field that a record and a stream item share has the value of the record, but the terms."""
    stored = encode_record(replace(RECORD, opening_mask=0b10))
    item, record = (
        to_stream_item(
            decode_stream_entry(encode_stream_entry("article", COPY, RECORD)),
            "en.0001",
            stored,
        ),
        decode_record(stored, "en.0001", NUMBER),
    )

    shared = {f.name for f in fields(StreamItem)} & {f.name for f in fields(ArticleRecord)} - {"terms"}
    assert {name: getattr(item, name) for name in shared} == {name: getattr(record, name) for name in shared}
    assert len(shared) == 11 and item.title == RECORD.title
    assert item.terms == (("port", 1.0), ("crane", OPENING_WEIGHT))


def test_a_declared_backfill_and_problems_are_stored_in_the_entry() -> None:
    """Detector and statistics of sources read them there."""
    record = replace(RECORD, backfill=True, problems=Problem.cut | Problem.late)
    data = encode_stream_entry("article", COPY, record)
    item = to_stream_item(decode_stream_entry(data), "en.0001", encode_record(record))

    assert item.backfill and item.problems == record.problems
    assert item.keep == COPY.outcome.keep


async def test_a_former_stream_is_read_with_the_records_of_the_present_space(store: Store) -> None:
    """Those that a migration copied; of one without a copy the record is gone."""
    number = NUMBER + 1
    other = msgspec.structs.replace(COPY, number=number)
    key = keys.tag("en.0001", 0) + keys.STREAM
    adds = tuple(StreamAdd(key, encode_stream_entry("article", binding)) for binding in (COPY, other))
    await store.commit(Transaction((), adds))
    await store.put([Put(keys.record("en.0002", NUMBER), encode_record(RECORD))])
    index = Index(store, ["en.0002", "xx.0001"])
    index.stream.add_former(["en.0001", "de.0001"])

    items, _ = await index.stream.read({}, 10)

    assert [(item.number, item.space) for item in items] == [(NUMBER, "en.0002"), (number, "")]
    assert index.stream.spaces == ("en.0002", "xx.0001", "en.0001")


@pytest.mark.parametrize("kind", ["article", "deleted"])
def test_an_entry_without_its_record_has_the_verdict(kind: EntryKind) -> None:
    """The record may have expired before the stream is read."""
    data = encode_stream_entry(kind, COPY)
    item = to_stream_item(decode_stream_entry(data), "en.0001", None)

    assert (item.kind, item.number, item.first_version, item.id, item.verdict) == (
        kind,
        NUMBER,
        5,
        "port",
        "duplicate",
    )
    assert (item.matched_number, item.canonical_first, item.exact) == (9, 3, True)
    assert item.arrived_ms == 1_770_000_000_000 and decode_stream_entry(data).number == NUMBER
    assert (item.title, item.terms, item.space) == ("", (), "")


def test_damaged_values_and_other_formats_are_rejected() -> None:
    """Entry or record, by its format byte or by truncation."""
    data, stored = encode_stream_entry("article", COPY), encode_record(RECORD)
    for entry, record in (
        (b"\x09" + data[1:], None),
        (data[:-3], None),
        (data, b"\x09" + stored[1:]),
        (data, stored[:-3]),
    ):
        with pytest.raises(StoreUnavailable):
            to_stream_item(decode_stream_entry(entry), "en.0001", record)


def test_stream_records_do_not_enter_the_cache() -> None:
    """They would displace the records that are read repeatedly."""
    before = decode_record.cache_info()
    to_stream_item(
        decode_stream_entry(encode_stream_entry("article", COPY)), "en.0001", encode_record(RECORD)
    )
    assert decode_record.cache_info() == before


async def test_the_stream_continues_over_seals(store: Store) -> None:
    """Every article once and in order, for any batch size."""
    newsroom = core(store, segment_max_articles=2)
    for i in range(7):
        await newsroom.post(f"a{i}", story(i))
    assert [item.id for item in await newsroom.index.stream.recent(3)] == ["a6", "a5", "a4"]
    await newsroom.ingest.delete("a0")

    for step in (1, 2, 3, 100):
        followed: list[tuple[str, str]] = []
        positions: dict[bytes, bytes] = {}
        while True:
            items, positions = await newsroom.index.stream.read(positions, step)
            if not items:
                break
            followed += [(item.id, item.kind) for item in items]
        assert sorted(followed) == sorted([*((f"a{i}", "article") for i in range(7)), ("a0", "deleted")])
        assert step > 1 or followed[-1] == ("a0", "deleted")


async def test_entries_are_counted_without_decoding_them(store: Store) -> None:
    """Over seals, from any position, up to the limit; damaged entries count too."""
    newsroom = core(store, segment_max_articles=2)
    for i in range(5):
        await newsroom.post(f"a{i}", story(i))
    stream, space = newsroom.index.stream, (await newsroom.index.stream.recent(1))[0].space
    _, positions = await stream.read({}, 2)
    await store.commit(Transaction((), (StreamAdd(keys.tag(space, 2) + keys.STREAM, b"damaged"),)))

    assert [await stream.count({}, limit) for limit in (1, 3, 100)] == [1, 3, 6]
    assert await stream.count(positions, 100) == 4


async def test_positions_of_other_spaces_are_kept(store: Store) -> None:
    """A reader may hold positions of streams that this process does not read; they are returned unchanged."""
    newsroom = core(store)
    await newsroom.post("a", story(1))
    foreign = {b"{qq.0000.3}" + keys.STREAM: b"5-0"}

    items, positions = await newsroom.index.stream.read(foreign, 10)

    assert [item.id for item in items] == ["a"]
    assert positions.items() >= foreign.items()
    assert len(positions) == 2
    assert await newsroom.index.stream.read(positions, 10) == ([], positions)


async def test_an_article_after_the_seal_is_read_from_a_position_before_it(store: Store) -> None:
    """A reader at the end of a segment continues with the next one."""
    newsroom = core(store)
    await newsroom.post("before", story(1))
    _, positions = await newsroom.index.stream.read({}, 10)
    await seal(newsroom)
    await newsroom.post("after", story(2))

    items, moved = await newsroom.index.stream.read(positions, 10)

    assert [item.id for item in items] == ["after"]
    assert [keys.segment_of(key) for key in moved] == [1]


async def test_reading_can_start_at_a_time() -> None:
    """In the segment that was open then; before everything, at the beginning."""
    now_ms = [1_000]
    newsroom = core(MemoryStore(lambda: now_ms[0]))
    stream = newsroom.index.stream
    for id_ in ("a", "b", "c"):
        await newsroom.post(id_, story(ord(id_)))
        now_ms[0] += 1_000
        if id_ == "a":
            await seal(newsroom)

    async def ids_from(at_ms: int) -> list[str]:
        return [item.id for item in (await stream.read(await stream.positions_at(at_ms), 10))[0]]

    assert await ids_from(500) == ["a", "b", "c"]
    assert await ids_from(1_500) == ["b", "c"]
    assert await ids_from(2_000) == ["b", "c"]
    assert await ids_from(2_500) == ["c"]
    assert await ids_from(3_000) == ["c"]
    assert await ids_from(9_000) == []


async def test_recent_entries_are_recent_articles_without_their_records(store: Store) -> None:
    """Same numbers and verdicts, newest first; titles are not read."""
    newsroom = core(store)
    for i in range(4):
        await newsroom.post(f"a{i}", story(i), title=f"Title {i}")

    full, entries = await newsroom.index.stream.recent(3), await newsroom.index.stream.recent_entries(3)

    assert [(e.number, e.verdict) for e in entries] == [(f.number, f.verdict) for f in full]
    assert [f.title for f in full] == ["Title 3", "Title 2", "Title 1"]
    assert {e.title for e in entries} == {""}


NOW_MS = START_MS // HOUR_MS * HOUR_MS + 30 * MINUTE_MS


def core_at(clock: ServiceClock) -> Core:
    """A core whose store has the same clock."""
    return core(MemoryStore(clock), clock=clock)


async def test_every_article_of_the_hour_counts_once() -> None:
    """By minute and verdict, also over several updates; earlier ones and deletions do not."""
    clock = ServiceClock(NOW_MS - 2 * HOUR_MS)
    service = core_at(clock)
    await service.post("old", story(1))
    clock.now_ms = NOW_MS - 30 * MINUTE_MS
    await service.post("a", story(2))
    await service.post("a2", story(2))
    first = await service.index.arrival_counts.update(NOW_MS)
    clock.now_ms = NOW_MS
    await service.post("b", story(3))
    await service.ingest.delete("b")
    second = await service.index.arrival_counts.update(NOW_MS + 1)
    later = await service.index.arrival_counts.update(NOW_MS + 35 * MINUTE_MS)

    assert first.by_minute == ((NOW_MS - 30 * MINUTE_MS, 2),)
    assert second.by_minute == ((NOW_MS - 30 * MINUTE_MS, 2), (NOW_MS, 1))
    assert (second.total, second.verdicts) == (3, {"new": 2, "related": 0, "duplicate": 1})
    assert second.is_complete
    assert later.by_minute == ((NOW_MS, 1),)


async def test_a_busy_hour_is_counted_in_several_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the counts are marked as incomplete."""
    monkeypatch.setattr(article_stream, "ENTRIES_PER_READ", 2)
    monkeypatch.setattr(article_stream, "MAX_ENTRIES_PER_UPDATE", 4)
    service = core_at(ServiceClock(NOW_MS))
    for n in range(5):
        await service.post(f"a{n}", story(n))
    updates = [await service.index.arrival_counts.update(NOW_MS + 60) for _ in range(3)]

    assert [(update.total, update.is_complete) for update in updates] == [(4, False), (5, True), (5, True)]
