"""Sealing, and operations over several segments, on every store and with eight concurrent writers."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Answer, Article, article_number_at
from aggregator.errors import CommitConflict, NotFound, StoreUnavailable
from aggregator.index import keys
from aggregator.index.blocks import PLAN
from aggregator.index.segments import (
    KEYS_PER_READ,
    MIN_SAMPLES_PER_SEGMENT,
    decode_samples,
    sample_entry,
    sampling_exponent_for,
    scan_block,
)
from aggregator.index.snapshot import SegmentStack
from aggregator.ingest.decide import ArticleNumberGenerator
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from tests.index.helpers import TAG
from tests.support.factories import Clock, Core, core, edited, story
from tests.support.store_steps import scan
from tests.support.stores import open_patient_store


async def seal(newsroom: Core) -> SegmentStack:
    """Seal the writable segment; returns the stack afterwards."""
    (space,) = newsroom.index.spaces
    segments = newsroom.index.segments
    await segments.seal(space, (await segments.stack(space)).last, newsroom.clock())
    return await segments.stack(space)


async def test_a_full_segment_is_sealed(store: Store) -> None:
    """Three segments of three articles; the next segment takes the rest."""
    newsroom = core(store, segment_max_articles=3)
    for i in range(7):
        await newsroom.post(f"a{i}", story(i))

    (space,) = newsroom.index.spaces
    assert await newsroom.index.segments.refresh(space) == SegmentStack(space, 0, 2)
    assert [await _binding_count(store, keys.tag(space, n)) for n in range(3)] == [3, 3, 1]


async def _binding_count(store: Store, tag: bytes) -> int:
    return len([key for key in await scan(store, tag + b"i") if key])


async def test_concurrent_seals_begin_one_segment(store: Store) -> None:
    """Two processes find a segment full at the same moment."""
    newsroom, other = core(store), core(store)
    (space,) = newsroom.index.spaces
    await asyncio.gather(*(each.index.segments.seal(space, 0, 1) for each in (newsroom, other)))

    assert await newsroom.index.segments.refresh(space) == SegmentStack(space, 0, 1)


async def test_a_crash_between_sealing_and_moving_the_head_is_harmless(store: Store) -> None:
    """The next reader of the segment finds it sealed, uses the next one and moves the head."""
    newsroom = core(store)
    (space,) = newsroom.index.spaces
    await newsroom.post("a", story(1))
    await store.put([Put(keys.tag(space, 0) + keys.SEALED, b"1")])

    assert (await newsroom.post("b", edited(story(1), 2))).outcome.verdict == "duplicate"
    assert (await newsroom.index.segments.head(space)).last == 1


async def test_a_frozen_article_is_matched_updated_and_deleted(store: Store) -> None:
    """Two processes, one with an outdated head; every kind of change to articles of a frozen segment."""
    clock = Clock()
    newsroom, other = core(store, clock=clock), core(store, clock=clock)
    await newsroom.post("a", story(1))
    await newsroom.post("copy", story(1).upper())
    await other.post("b", edited(story(1), 2))
    await seal(newsroom)

    assert (await other.post("a", story(1))).stored is False
    again = (await other.post("c", edited(story(1), 3))).outcome.match
    assert again is not None
    assert again.canonical_id == "a"
    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["a", "copy", "b", "c"]

    await other.ingest.delete("a")
    with pytest.raises(NotFound):
        await newsroom.index.articles.get("a")
    assert (await newsroom.index.articles.get("copy")).outcome.match is None
    assert [r.id for r in await newsroom.index.articles.group_members("b")] == ["copy", "b", "c"]

    update = story(1, 10) + " " + story(9)
    await newsroom.post("copy", update)
    assert (await other.post("d", update.upper())).outcome.match is not None
    await seal(other)
    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["copy", "b", "c", "d"]
    assert (await newsroom.post("a", story(1))).outcome.verdict == "duplicate"


WRITERS, STORIES, COPIES = 8, 80, 4


@pytest.mark.integration
async def test_eight_writers_over_many_seals_lose_and_duplicate_nothing(server_url: str) -> None:
    """Eight writers post near-copies of each story at once, while segments of 40 articles fill up.

    Each writer has its own connection and its own, possibly outdated, head.
    """
    stores = [open_patient_store(server_url) for _ in range(WRITERS)]
    clock = Clock()
    rooms = [core(store_, segment_max_articles=40, clock=clock, store_texts=False) for store_ in stores]
    texts = [story(i, sentences=12) for i in range(STORIES)]
    articles = [
        Article(id=f"{i}-{c}", text=edited(text, c, changes=2), lang="en")
        for i, text in enumerate(texts)
        for c in range(COPIES)
    ]
    try:
        await asyncio.gather(*(_write(rooms[w], w, articles) for w in range(WRITERS)))
        index = rooms[0].index
        (space,) = index.spaces
        stack = await index.segments.refresh(space)
        stored = {article.id: await index.articles.get(article.id) for article in articles}
        new = Counter(id_.split("-")[0] for id_, article in stored.items() if article.outcome.match is None)
        items, _ = await index.stream.read({}, len(articles) * 2)
        counts = [await _binding_count(stores[0], tag) for tag in stack.tags]
    finally:
        for opened in stores:
            await opened.close()

    assert new == {str(i): 1 for i in range(STORIES)}
    assert Counter(item.id for item in items) == {article.id: 1 for article in articles}
    assert sum(counts) == len(articles)
    assert stack.last >= len(articles) // 40 - 4
    assert all(before <= 40 + WRITERS * 64 for before, _ in pairwise(counts))


async def _write(room: Core, writer: int, articles: list[Article]) -> None:
    """Every article is sent by two writers, in batches whose sizes differ between writers.

    Conflicts are sent again, as a crawler does, and so is a batch for which the store seemed unavailable,
    which happens on a busy machine.
    """
    own = [a for i, a in enumerate(articles) if i % WRITERS in (writer, (writer + 3) % WRITERS)]
    step = 1 + writer * 3
    for i in range(0, len(own), step):
        waiting = own[i : i + step]
        while waiting:
            try:
                answers = await room.ingest.submit_many(waiting)
            except StoreUnavailable:
                continue
            assert all(isinstance(answer, Answer | CommitConflict) for answer in answers), answers
            waiting = [
                a for a, answer in zip(waiting, answers, strict=True) if isinstance(answer, CommitConflict)
            ]


async def test_a_head_of_another_format_is_rejected() -> None:
    """The error names the format."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    await newsroom.index.store.put([Put(keys.space_head(space), b"\x63")])

    with pytest.raises(StoreUnavailable, match="format 63"):
        await newsroom.post("a", story(1))


def test_one_number_in_two_to_the_k_is_sampled() -> None:
    """The estimate over generated numbers is right, and a full segment has thousands of samples."""
    generator, exponent = ArticleNumberGenerator(), 4
    samples = b"".join(sample_entry(generator.next(1_000), exponent) for _ in range(64_000))
    numbers, weights = decode_samples(samples)

    assert set(weights) == {16}
    assert 0.9 < weights.sum() / 64_000 < 1.1
    assert int(numbers.min()) >= article_number_at(1_000)
    assert decode_samples(None)[1].sum() == 0
    assert sampling_exponent_for(10_000_000) == 9
    assert sampling_exponent_for(100) == 0


@given(st.integers(0, 2**59 - 1), st.integers(5, 24))
def test_a_sampled_number_is_restored(upper: int, exponent: int) -> None:
    """A sample keeps its number, and its weight is the number of articles that it represents."""
    number = upper << exponent & (1 << 64) - 1

    numbers, weights = decode_samples(sample_entry(number, exponent))

    assert (numbers.tolist(), weights.tolist()) == ([number], [1 << exponent])
    assert sample_entry(number | 1, exponent) == sample_entry(number | 1 << exponent - 1, exponent) == b""


def test_samples_of_two_exponents_add_up() -> None:
    """A segment whose capacity was changed has samples of both; the stored form is pinned."""
    samples = sample_entry(0x1234_5680, 7) + sample_entry(0x1234_5700, 8)

    assert samples == bytes.fromhex("87563412000000000857341200000000")
    assert decode_samples(samples)[1].sum() == 128 + 256


@pytest.mark.parametrize("max_articles", [16_384, 32_767, 32_768, 100_000, 10_000_000])
def test_a_full_segment_has_enough_samples(max_articles: int) -> None:
    """At least the minimum is expected, and less than twice as many."""
    expected = max_articles / 2 ** sampling_exponent_for(max_articles)

    assert MIN_SAMPLES_PER_SEGMENT <= expected < 2 * MIN_SAMPLES_PER_SEGMENT


VALUES = 1 << PLAN.widths[0]
FILLED = {0: b"first", KEYS_PER_READ - 1: b"end", KEYS_PER_READ: b"start", VALUES - 1: b"last"}


@pytest.mark.parametrize("step", [1, 3, VALUES])
async def test_the_bucket_of_every_nth_value_is_read(store: Store, step: int) -> None:
    """Absent buckets are left out; buckets of other blocks are not mixed in."""
    await store.put([Put(keys.block_bucket(TAG, 0, value), bucket) for value, bucket in FILLED.items()])
    await store.put([Put(keys.block_bucket(TAG, 1, 3), b"another block")])

    scanned = [bucket async for bucket in scan_block(store, TAG, step)]

    assert scanned == [bucket for value, bucket in FILLED.items() if value % step == 0]
