"""Related articles of stored ids and of texts."""

from collections.abc import Sequence

import pytest

from aggregator.domain import Article
from aggregator.errors import NoText, NotFound
from aggregator.queries.related import RelatedArticles, RelatedFilter
from aggregator.store.memory import MemoryStore
from tests.support.factories import Core, core, edited, in_process, story


@pytest.fixture
async def desk() -> tuple[Core, RelatedArticles]:
    """One article, its copy, and three on the same matter from two sources."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", story(1), source="one")
    await newsroom.post("copy", edited(story(1), 2), source="two")
    words = story(1).split()
    for i, source in enumerate(("one", "two", "two")):
        shuffled = " ".join(words[i + 1 :: 2] + words[i::2])
        await newsroom.post(f"r{i}", shuffled, source=source, published_at_ms=newsroom.clock.now_ms + i)
    related = RelatedArticles(newsroom.index, in_process(newsroom.analyser), clock=newsroom.clock)
    return newsroom, related


async def test_of_id_leaves_out_copies(desk: tuple[Core, RelatedArticles]) -> None:
    """Same words in another order are near and no copies; the article's own copies never show."""
    found = await desk[1].of_id("a")

    assert {i.id for i in found} <= {"r0", "r1", "r2"}
    assert found
    assert all(i.distance <= 7 and i.similarity > 0.8 for i in found)


async def test_filters(desk: tuple[Core, RelatedArticles]) -> None:
    """By source, without a source, in a language, and since a time."""
    everything = await desk[1].of_id("a")

    assert {i.source for i in await desk[1].of_id("a", related_filter=RelatedFilter(source="two"))} <= {"two"}
    assert {
        i.source for i in await desk[1].of_id("a", related_filter=RelatedFilter(exclude_source="two"))
    } <= {"one"}
    assert await desk[1].of_id("a", related_filter=RelatedFilter(since_ms=desk[0].clock.now_ms + 10**9)) == []
    assert await desk[1].of_id("a", related_filter=RelatedFilter(lang="zh")) == []
    own = (await desk[0].index.get(everything[0].id)).record.lang
    assert len(await desk[1].of_id("a", related_filter=RelatedFilter(lang=own))) == len(everything)
    assert len(await desk[1].of_id("a", limit=1)) == min(1, len(everything))


async def test_of_article_and_of_ids(desk: tuple[Core, RelatedArticles]) -> None:
    """A text that is not stored has neighbours too; of several ids none is among the answers."""
    found = await desk[1].of_article(Article(id="", text=story(1), lang="en"))
    assert found[0].similarity > 0.99

    together = await desk[1].of_ids(["a", "r0"])
    assert not {"a", "r0"} & {i.id for i in together}


async def test_members_of_the_same_event() -> None:
    """Reports of one event are related however they are worded; those that have left are not shown."""
    newsroom = core(MemoryStore())
    for i in range(3):
        await newsroom.post(f"a{i}", story(i), title=f"Report {i}")

    async def story_of(number: int) -> list[str]:
        return (
            ["a0", "a1", "taken down"]
            if number == (await newsroom.index.get("a0")).record.first_version
            else []
        )

    related = RelatedArticles(
        newsroom.index,
        in_process(newsroom.analyser),
        clock=newsroom.clock,
        min_similarity=1,
        members_of_event=story_of,
    )

    assert [i.id for i in await related.of_id("a0")] == ["a1"]
    assert await related.of_id("a2") == []


async def test_unknown_id_and_empty_text(desk: tuple[Core, RelatedArticles]) -> None:
    """Errors of the stages reach the caller."""
    with pytest.raises(NotFound, match="'nobody'"):
        await desk[1].of_id("nobody")
    with pytest.raises(NoText):
        await desk[1].of_article(Article(id=""))


FLOOD = (
    "Floods close the Brackwater tunnel; Estmark opens its shelters tonight.",
    "Estmark shelters fill while the tunnel under Brackwater stays shut. Floods rise.",
)


async def test_the_same_matter_in_other_words() -> None:
    """Far apart by bits and without a phrase in common, but with the same rare terms; copies never show."""
    newsroom = core(MemoryStore())
    related = RelatedArticles(newsroom.index, in_process(newsroom.analyser), clock=newsroom.clock)
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    await newsroom.post("a again", FLOOD[0])
    await newsroom.post("other", "An orchard festival sells cider on Sunday.")

    found = await related.of_id("a")
    assert [item.id for item in found] == ["b"]
    assert found[0].distance > 7 and found[0].similarity >= 0.15
    assert [item.id for item in await related.of_id("b")] == ["a"]
    assert await related.of_id("other") == []


async def test_who_inherits_a_group_is_found_by_its_terms() -> None:
    """Copies stand under no terms of their own; the one that becomes canonical does."""
    newsroom = core(MemoryStore())
    related = RelatedArticles(newsroom.index, in_process(newsroom.analyser), clock=newsroom.clock)
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("copy", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    await newsroom.ingest.delete("a")

    assert [item.id for item in await related.of_id("b")] == ["copy"]


async def test_an_answer_takes_two_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text always, an id from the second time on; after an update what it stands for is read anew."""
    newsroom = core(store := MemoryStore())
    related = RelatedArticles(newsroom.index, in_process(newsroom.analyser), clock=newsroom.clock)
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    await newsroom.post("cider", "An orchard festival sells cider on Sunday.")
    reads: list[int] = []
    read = store.read

    async def counted(keys: Sequence[bytes]) -> list[bytes | None]:
        reads.append(len(keys))
        return await read(keys)

    monkeypatch.setattr(store, "read", counted)

    async def asked(id_: str) -> tuple[list[str], int]:
        reads.clear()
        return [item.id for item in await related.of_id(id_)], len(reads)

    assert await asked("a") == (["b"], 4)
    assert await asked("a") == (["b"], 2)
    await newsroom.post("a", "A cider festival in the orchard on Sunday.")
    assert (await asked("a"))[0] == ["cider"]
    assert await asked("a") == (["cider"], 2)
    await newsroom.ingest.delete("a")
    with pytest.raises(NotFound):
        await related.of_id("a")
    reads.clear()
    assert await related.of_article(Article(id="", text=FLOOD[1], lang="en"))
    assert len(reads) == 2


async def test_what_was_asked_for_long_ago_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many articles are kept, the ones asked for last."""
    monkeypatch.setattr("aggregator.queries.related.CACHE_ENTRIES", 2)
    newsroom = core(MemoryStore())
    related = RelatedArticles(newsroom.index, in_process(newsroom.analyser), clock=newsroom.clock)
    for i in range(4):
        await newsroom.post(f"a{i}", story(i))
        await related.of_id(f"a{i}")

    assert list(related._subject_cache) == ["a2", "a3"]
