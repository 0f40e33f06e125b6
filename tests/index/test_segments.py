"""Sealing, and operations over several segments, on every store and with eight concurrent writers."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import CommitConflict, NotFound, StoreUnavailable
from aggregator.index import keys
from aggregator.index.snapshot import SegmentStack
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Clock, Core, core, edited, story
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
    return len([key for key in await store.scan(tag + b"i") if key])


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
    await store.put([Put(keys.sealed(keys.tag(space, 0)), b"1")])

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

    await newsroom.post("copy", story(9))
    assert (await other.post("d", story(9).upper())).outcome.match is not None
    await seal(other)
    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["copy", "b", "c", "d"]
    assert (await newsroom.post("a", story(1))).outcome.verdict == "duplicate"


WRITERS, STORIES, COPIES = 8, 80, 4


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
