"""Sealing, and what holds over several segments: on every store, and with eight writers on a real one."""

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
from aggregator.store.redis import open_redis_store
from tests.support.factories import Clock, Core, core, edited, story


async def seal(newsroom: Core) -> SegmentStack:
    """Close the writable segment; gives the layers afterwards."""
    (space,) = newsroom.index.spaces
    segments = newsroom.index.segments
    await segments.seal(space, (await segments.stack(space)).last, newsroom.clock())
    return await segments.stack(space)


async def test_a_full_segment_is_sealed_and_the_next_one_begun(store: Store) -> None:
    """Every article counts, exact copies and updates too."""
    newsroom = core(store, segment_max_articles=3)
    for i in range(7):
        await newsroom.post(f"a{i}", story(i))

    (space,) = newsroom.index.spaces
    assert await newsroom.index.segments.refresh(space) == SegmentStack(space, 0, 2)
    assert [await _held(store, keys.tag(space, n)) for n in range(3)] == [3, 3, 1]


async def _held(store: Store, tag: bytes) -> int:
    return len([key for key in await store.scan(tag + b"i") if key])


async def test_sealing_twice_is_sealing_once(store: Store) -> None:
    """Two that find a segment full at the same moment begin one new segment."""
    newsroom, other = core(store), core(store)
    (space,) = newsroom.index.spaces
    await asyncio.gather(*(each.index.segments.seal(space, 0, 1) for each in (newsroom, other)))

    assert await newsroom.index.segments.refresh(space) == SegmentStack(space, 0, 1)


async def test_who_dies_between_closing_and_moving_the_head_leaves_no_harm(store: Store) -> None:
    """The next one who reads the segment finds it closed, goes on in the next and moves the head."""
    newsroom = core(store)
    (space,) = newsroom.index.spaces
    await newsroom.post("a", story(1))
    await store.put([Put(keys.sealed(keys.tag(space, 0)), b"1")])

    assert (await newsroom.post("b", edited(story(1), 2))).outcome.verdict == "duplicate"
    assert (await newsroom.index.segments.head(space)).last == 1


async def test_a_frozen_article_is_matched_updated_and_deleted_like_any_other(store: Store) -> None:
    """Two processes, one of which has not heard of the seal; every kind of change to what lies below."""
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


async def test_the_stream_goes_on_over_seals(store: Store) -> None:
    """Every article once and in order, with any size of step; a reader that was away longer too."""
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


WRITERS, STORIES, COPIES = 8, 80, 4


async def test_eight_writers_over_many_seals_lose_and_double_nothing(server_url: str) -> None:
    """Near-copies of each story come in through different writers at once, while segments of 40 fill up.

    Each writer has its own connection and its own idea of which segment is the writable one.
    """
    stores = [open_redis_store(server_url) for _ in range(WRITERS)]
    clock = Clock()
    rooms = [core(each, segment_max_articles=40, clock=clock, store_texts=False) for each in stores]
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
        layers = await index.segments.refresh(space)
        stored = {article.id: await index.articles.get(article.id) for article in articles}
        new = Counter(id_.split("-")[0] for id_, one in stored.items() if one.outcome.match is None)
        items, _ = await index.stream.read({}, len(articles) * 2)
        held = [await _held(stores[0], tag) for tag in layers.tags]
    finally:
        for each in stores:
            await each.close()

    assert new == {str(i): 1 for i in range(STORIES)}
    assert Counter(item.id for item in items) == {article.id: 1 for article in articles}
    assert sum(held) == len(articles)
    assert layers.last >= len(articles) // 40 - 4
    assert all(before <= 40 + WRITERS * 64 for before, _ in pairwise(held))


async def _write(room: Core, writer: int, articles: list[Article]) -> None:
    """Every article is sent by two writers, in batches of sizes that differ between writers.

    What was answered "not now" is sent again, as a crawler does: on a busy machine the store may seem away.
    """
    mine = [a for i, a in enumerate(articles) if i % WRITERS in (writer, (writer + 3) % WRITERS)]
    step = 1 + writer * 3
    for i in range(0, len(mine), step):
        waiting = mine[i : i + step]
        while waiting:
            try:
                answers = await room.ingest.submit_many(waiting)
            except StoreUnavailable:
                continue
            assert all(isinstance(answer, Answer | CommitConflict) for answer in answers), answers
            waiting = [
                a for a, told in zip(waiting, answers, strict=True) if isinstance(told, CommitConflict)
            ]


async def test_a_head_of_another_format_is_refused() -> None:
    """Rather than guessing which segments there are."""
    newsroom = core(MemoryStore())
    (space,) = newsroom.index.spaces
    await newsroom.index.store.put([Put(keys.space_head(space), b"\x63")])

    with pytest.raises(StoreUnavailable, match="format 63"):
        await newsroom.post("a", story(1))
