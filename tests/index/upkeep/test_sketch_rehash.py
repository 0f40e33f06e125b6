"""Incremental rehash: at every step a look-up finds what it would find without one, and no entry is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.shingles import sketch_keys
from aggregator.domain import Analysis, Article, ArticleRecord, Outcome, Sketch
from aggregator.index import Index, keys
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES, encode_sketch_postings
from aggregator.index.lookup import Probe
from aggregator.index.snapshot import FULL_KEY_ENTRIES, KEPT_KEY_ENTRIES, SketchWidth, Snapshot
from aggregator.index.upkeep.compaction import Compactor
from aggregator.index.upkeep.integrity_check import check_integrity
from aggregator.index.upkeep.sketch_rehash import SPLIT_ENTRIES, SketchRehash
from aggregator.store.base import AdvanceVersion, Put, Store, Transaction, ValueEquals
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from tests.support.factories import core, edited, story
from tests.support.loaders import FIRST_MS, SPACE, record
from tests.support.store_steps import append, scan

TAG = keys.tag(SPACE, 0)
# Few keys in few buckets, which separate at 19, 20, 21 bits or never.
KEYS = [5, 5 | 1 << 18, 5 | 1 << 19, 5 | 1 << 20, 5 | 1 << 31, 6, 6 | 3 << 18, 1 << 17]


class SmallRehash(SketchRehash):
    """Moves only the buckets of ``own_keys``, in chunks of two."""

    def __init__(self, index: Index, split_entries: float = -1, own_keys: Sequence[int] = KEYS) -> None:
        super().__init__(index.store, index.segments, split_entries=split_entries, buckets_per_chunk=2)
        self._own_keys = own_keys

    def _bucket_values(self, bits: int) -> Sequence[int]:
        return sorted({key & (1 << bits) - 1 for key in self._own_keys})


class SmallCompactor(Compactor):
    """Compacts only the sketch buckets of ``KEYS``."""

    def _bucket_keys(self, sketch_bits: int) -> Iterator[bytes]:
        return iter(sorted(set(keys.sketch_buckets(b"", KEYS, sketch_bits))))


@dataclass
class Writer:
    """One process: its index, and the articles that it stored, by the number of each."""

    store: Store
    index: Index = field(init=False)
    stored: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = Index(self.store, [SPACE])

    def probe(self, own_keys: Sequence[int]) -> Probe:
        """A look-up of these sketch keys."""
        sketch = Sketch(len(own_keys), np.array(sorted(own_keys), np.uint32), np.zeros(len(own_keys), bool))
        analysis = Analysis("en", SPACE, len(self.stored), b"h" * 16, short=False, sketch=sketch)
        return self.index.lookup.probe(analysis, f"a{len(self.stored)}")

    async def read(self, own_keys: Sequence[int]) -> tuple[Probe, Snapshot]:
        """What an insert reads."""
        probe = self.probe(own_keys)
        return probe, await self.index.lookup.read_snapshot([probe])

    async def insert(self, own_keys: Sequence[int]) -> None:
        """Store an article with these sketch keys."""
        assert await self.commit(*await self.read(own_keys))

    async def commit(self, probe: Probe, snapshot: Snapshot) -> bool:
        """Store the article of a look-up; whether nothing had changed."""
        transaction, article = self.plan(probe, snapshot)
        if await self.store.commit(transaction):
            return False
        self.stored[article.number] = sketch_keys(article.sketch)
        return True

    def plan(self, probe: Probe, snapshot: Snapshot) -> tuple[Transaction, ArticleRecord]:
        """The insert of an article, and its record."""
        article = replace(record(0, len(self.stored)), sketch=probe.analysis.sketch)
        checks = self.index.lookup.commit_checks(snapshot, probe, set(), [])
        segment = self.index.transactions(snapshot.stacks[SPACE])
        guard = snapshot.unchanged_check(SPACE, keys.VERSION)
        return segment.insert(article, Outcome("new"), checks, guard, snapshot.values), article

    async def found(self, own_keys: Sequence[int]) -> dict[int, int]:
        """What a look-up finds: how many keys each article shares."""
        probe, snapshot = await self.read(own_keys)
        (result,) = self.index.lookup.evaluate_probes(snapshot, [probe])
        return dict(zip(*(column.tolist() for column in result.by_sketch), strict=True))

    async def assert_all_found(self) -> None:
        """Every look-up finds exactly the articles that share its keys."""
        for key in KEYS:
            assert await self.found([key]) == {n: 1 for n, own in self.stored.items() if key in own}


async def take(steps: AsyncIterator[None], count: int) -> bool:
    """Take some steps; whether more are left."""
    for _ in range(count):
        if await anext(steps, 0) == 0:
            return False
    return True


own_keys = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(own_keys, st.integers(1, 3)), max_size=24))
async def test_a_rehash_changes_nothing_that_is_found(actions: list[list[int] | int]) -> None:
    """Inserts by two processes between the steps of consecutive rehashes; checked after each action."""
    store = MemoryStore()
    first, second = Writer(store), Writer(store)
    second.stored = first.stored
    steps = SmallRehash(Index(store, [SPACE])).steps(SPACE)
    for i, action in enumerate(actions):
        if isinstance(action, list):
            await (first, second)[i % 2].insert(action)
        elif not await take(steps, action):
            steps = SmallRehash(Index(store, [SPACE])).steps(SPACE)
        await first.assert_all_found()
    await second.assert_all_found()


@settings(max_examples=40, deadline=None)
@given(st.lists(own_keys, min_size=1, max_size=12))
async def test_an_index_grown_step_by_step_is_as_one_that_was_rehashed(articles: list[list[int]]) -> None:
    """The same buckets with the same entries in the same order."""
    stores = MemoryStore(), MemoryStore()
    for store, rehash_first in zip(stores, (True, False), strict=True):
        writer = Writer(store)
        if rehash_first:
            await take(SmallRehash(writer.index).steps(SPACE), 100)
        for article in articles:
            await writer.insert(article)
        if not rehash_first:
            await take(SmallRehash(writer.index).steps(SPACE), 100)
    first, second = [
        {key: value for key, value in store._values.items() if keys.kind_of(key) == b"s"} for store in stores
    ]
    assert first == second
    assert all(key.startswith(TAG + b"s19:") for key in first)


async def test_the_stored_layout_is_pinned(store: Store) -> None:
    """A rehash of the data of an earlier version, whose entries stay as they are."""
    entries = {key: encode_sketch_postings([key], 7)[0] for key in KEYS[:3]}
    await store.commit(Transaction((), tuple(append(TAG + b"s00005", entries[key]) for key in KEYS[:3])))

    await take(SmallRehash(Index(store, [SPACE])).steps(SPACE), 100)

    assert await store.read([TAG + b"s00005", TAG + b"width"]) == [None, b"19"]
    assert await store.read([TAG + b"s19:000005", TAG + b"s19:040005"]) == [
        entries[KEYS[0]] + entries[KEYS[2]],
        entries[KEYS[1]],
    ]
    assert entries[5 | 1 << 18] == b"\x01\x00" + (7).to_bytes(8, "little")


async def test_a_full_key_keeps_its_newest_entries_during_a_rehash(store: Store) -> None:
    """What is moved is older than what the new bucket has, so trimming removes it first."""
    writer = Writer(store)
    steps = SmallRehash(writer.index).steps(SPACE)
    for i in range(3 * FULL_KEY_ENTRIES):
        if i in (20, 30):
            await take(steps, 1 if i == 20 else 100)
        await writer.insert([5])
        found, newest = sorted(await writer.found([5])), sorted(writer.stored)
        assert found[-KEPT_KEY_ENTRIES:] == newest[-KEPT_KEY_ENTRIES:]
        assert len(found) <= 2 * FULL_KEY_ENTRIES
    assert len(found) <= FULL_KEY_ENTRIES


async def test_an_insert_that_trims_is_rejected_after_a_move(store: Store) -> None:
    """The version says so even if the insert checks nothing else: its bucket lacks what was moved there."""
    writer = Writer(store)
    await writer.insert([KEYS[4]])
    steps = SmallRehash(writer.index).steps(SPACE)
    await take(steps, 1)
    for _ in range(FULL_KEY_ENTRIES):
        await writer.insert([5])
    probe, snapshot = await writer.read([5])
    await take(steps, 100)

    assert not await writer.commit(probe, snapshot)
    await writer.insert([5])
    assert list(await writer.found([KEYS[4]])) == sorted(writer.stored)[:1]


@pytest.mark.parametrize("finished", [False, True])
async def test_a_writer_with_an_outdated_width_is_rejected(store: Store, finished: bool) -> None:
    """Although the buckets that it read are as they were: empty."""
    writer = Writer(store)
    probe, snapshot = await writer.read([5])
    await take(SmallRehash(Index(store, [SPACE])).steps(SPACE), 100 if finished else 1)

    assert not await writer.commit(probe, snapshot)
    await writer.insert([5])
    await writer.assert_all_found()


async def test_a_move_is_rejected_if_an_insert_came_first(store: Store) -> None:
    """It is repeated with what the bucket has then."""
    writer = Writer(store)
    await writer.insert([5])
    rehash = SmallRehash(writer.index)
    await take(rehash.steps(SPACE), 1)
    commit = store.commit

    async def late(transaction: Transaction) -> tuple[int, ...]:
        rehash._store = store
        await writer.insert([5])
        return await commit(transaction)

    class Late:
        read = store.read
        commit = staticmethod(late)

    rehash._store = Late()  # type: ignore[assignment]
    await take(rehash.steps(SPACE), 100)

    await writer.assert_all_found()
    assert await store.read([TAG + b"width"]) == [b"19"]


async def test_two_processes_move_at_once(store: Store) -> None:
    """Each finds what the other left; the one that is late changes nothing."""
    writer = Writer(store)
    for key in KEYS:
        await writer.insert([key])
    first, second = (SmallRehash(Index(store, [SPACE])).steps(SPACE) for _ in range(2))
    await take(first, 2)
    await take(second, 3)
    await take(first, 100)
    await take(second, 100)

    await writer.assert_all_found()
    assert await store.read([TAG + b"width"]) == [b"19"]


@pytest.mark.integration
@pytest.mark.parametrize(("entries", "grows"), [(SPLIT_ENTRIES, False), (SPLIT_ENTRIES + 1, True)])
async def test_the_width_grows_with_the_entries_per_bucket(entries: int, grows: bool) -> None:
    """A sample of all buckets decides: too many entries on average."""
    store = MemoryStore()
    bucket = bytes(entries * SKETCH_POSTING_BYTES)
    await store.put([Put(key, bucket) for key in keys.sketch_buckets(TAG, range(1 << 18))])
    index = Index(store, [SPACE])

    await take(SketchRehash(store, index.segments).steps(SPACE), 1)

    assert await store.read([TAG + keys.WIDTH]) == [b"18>19" if grows else None]


async def test_every_bucket_is_moved() -> None:
    """All 2^18 of them, and the width does not grow beyond 24 bits."""
    store = MemoryStore()
    index = Index(store, [SPACE])
    postings = {key: encode_sketch_postings([key], 9)[0] for key in range(0, 1 << 32, 0x3FFF1)}
    appends = zip(keys.sketch_buckets(TAG, postings), postings.values(), strict=True)
    await store.commit(Transaction((), tuple(append(key, value) for key, value in appends)))
    rehash = SketchRehash(store, index.segments, split_entries=-1, buckets_per_chunk=1 << 14)

    await take(rehash.steps(SPACE), 1000)

    moved = await store.read(keys.sketch_buckets(TAG, postings, 19))
    assert all(posting in (bucket or b"") for posting, bucket in zip(postings.values(), moved, strict=True))
    assert len([key for key in await scan(store, TAG + b"s") if not key.startswith(TAG + b"s19:")]) == 0
    await store.put([Put(TAG + keys.WIDTH, b"24")])
    assert await take(rehash.steps(SPACE), 1)
    assert await store.read([TAG + keys.WIDTH]) == [b"24"]


async def test_no_rehash_begins_in_a_sealed_segment(store: Store) -> None:
    """Only a writable one grows, and a process that has not read of the seal cannot begin either."""
    index = Index(store, [SPACE])
    rehash = SmallRehash(index)
    await store.put([Put(TAG + keys.SEALED, b"1")])

    await rehash._change_width(TAG, SketchWidth(), SketchWidth(19, 18), ValueEquals(TAG + keys.SEALED, None))
    assert await store.read([TAG + keys.WIDTH]) == [None]
    await take(rehash.steps(SPACE), 100)

    assert await store.read([TAG + keys.WIDTH, keys.tag(SPACE, 1) + keys.WIDTH]) == [None, b"19"]


async def test_a_segment_that_is_sealed_during_a_rehash_is_finished_and_then_compacted(store: Store) -> None:
    """Compaction waits: a move makes buckets grow."""
    writer = Writer(store)
    for key in KEYS:
        await writer.insert([key])
    await take(SmallRehash(writer.index).steps(SPACE), 2)
    await writer.index.segments.seal(SPACE, 0, FIRST_MS + HOUR_MS)
    compactor = SmallCompactor(writer.index)
    await take(compactor.steps(SPACE, FIRST_MS), 1000)
    assert compactor.buckets_rewritten == 0
    await writer.insert([5])

    await take(SmallRehash(writer.index, split_entries=1000).steps(SPACE), 100)
    await take(compactor.steps(SPACE, FIRST_MS), 1000)

    assert compactor.buckets_rewritten > 0
    assert await store.read([TAG + keys.WIDTH, keys.tag(SPACE, 1) + keys.WIDTH]) == [b"19", None]
    await writer.assert_all_found()


async def test_the_audit_reads_all_widths_and_reports_buckets_that_no_lookup_reads() -> None:
    """Sound during and after a rehash; a bucket of another width is reported, as a misplaced entry is."""
    store = MemoryStore()
    newsroom = core(store)
    for i in range(4):
        await newsroom.post(f"a{i}", story(i, 60))
    (space,) = newsroom.index.spaces
    tag, now_ms = keys.tag(space, 0), newsroom.clock() + HOUR_MS
    stored = [(await newsroom.index.articles.get(f"a{i}")).record for i in range(4)]
    own_keys = [key for article in stored for key in keys.wording_keys(article)]
    steps = SmallRehash(newsroom.index, own_keys=own_keys).steps(space)
    for count in (1, 5, 100):
        await take(steps, count)
        assert (await check_integrity(newsroom.index, space, now_ms)).ok
        probe = Article(id="p", text=edited(story(1, 60), 5), lang="en")
        match = (await newsroom.ingest.submit(probe, dry_run=True)).outcome.match
        assert match is not None
        assert match.id == "a1"

    (key, *_) = await scan(store, tag + b"s19:")
    (value,) = await store.read([key])
    assert value is not None
    for wrong in (tag + b"s20:" + key[-6:], tag + b"s19:%06x" % (int(key[-6:], 16) ^ 1 << 18)):
        await store.put([Put(wrong, value)])
        assert (await check_integrity(newsroom.index, space, now_ms)).wrong_postings > 0
        await store.delete([wrong])


async def test_every_change_advances_the_version(store: Store) -> None:
    """So that commits which only check the version notice it."""
    writer = Writer(store)
    await writer.insert([5])
    written: list[Transaction] = []

    class Recording:
        read = store.read

        async def commit(self, transaction: Transaction) -> tuple[int, ...]:
            written.append(transaction)
            return await store.commit(transaction)

    rehash = SmallRehash(writer.index)
    rehash._store = Recording()  # type: ignore[assignment]
    await take(rehash.steps(SPACE), 100)

    assert len(written) == 3  # begin, one move, end
    assert all(any(isinstance(write, AdvanceVersion) for write in each.writes) for each in written)
