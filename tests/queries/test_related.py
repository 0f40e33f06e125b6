"""Related articles of stored ids and of texts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, Expired, NoText, NotFound
from aggregator.queries.ranking import RelatedOptions
from aggregator.queries.related import RelatedArticles
from aggregator.queries.relatedness import MIN_PROBABILITY
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS
from tests.support.factories import Core, core, edited, story


@pytest.fixture
async def newsroom() -> Core:
    """One article, its copy, and three related articles from two sources."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", story(1), source="one")
    await newsroom.post("copy", edited(story(1), 2), source="two")
    words = story(1).split()
    for i, source in enumerate(("one", "two", "two")):
        shuffled = " ".join(words[i + 1 :: 2] + words[i::2])
        await newsroom.post(f"r{i}", shuffled, source=source, published_at_ms=newsroom.clock.now_ms + i)
    return newsroom


async def test_related_articles_of_an_id_exclude_its_copies(newsroom: Core) -> None:
    """The same words in another order are related and no copies; the article's own copies are left out."""
    found = await newsroom.related.of_id("a")

    assert {i.id for i in found} <= {"r0", "r1", "r2"}
    assert found
    assert all(i.distance <= 7 and i.similarity > 0.8 for i in found)


async def test_results_are_filtered(newsroom: Core) -> None:
    """By source and excluded source in any case, by language and by time."""
    everything = await newsroom.related.of_id("a")

    assert {i.source for i in await newsroom.related.of_id("a", RelatedOptions(sources=("two",)))} == {"two"}
    assert {
        i.source for i in await newsroom.related.of_id("a", RelatedOptions(exclude_sources=("two",)))
    } <= {"one"}
    assert await newsroom.related.of_id("a", RelatedOptions(since_ms=newsroom.clock.now_ms + 10**9)) == []
    assert await newsroom.related.of_id("a", RelatedOptions(lang="zh")) == []
    own = (await newsroom.index.articles.get(everything[0].id)).record.lang
    assert len(await newsroom.related.of_id("a", RelatedOptions(lang=own))) == len(everything)
    assert len(await newsroom.related.of_id("a", RelatedOptions(limit=1))) == min(1, len(everything))


async def test_related_articles_of_a_text_and_of_several_ids(newsroom: Core) -> None:
    """A text that is not stored has related articles; of several ids none is among the answers."""
    found = await newsroom.related.of_article(Article(id="", text=story(1), lang="en"))
    assert found[0].similarity > 0.99

    combined, not_found = await newsroom.related.of_ids(dict.fromkeys(["a", "r0"], 0))
    assert not {"a", "r0"} & {i.id for i in combined}
    assert not_found == []


async def test_an_interest_is_answered_by_any_of_its_articles() -> None:
    """Without a likely answer by one that is as likely as not, if it is one of several without a minimum.

    A single interest is answered as its article is.
    """
    newsroom = core(MemoryStore())
    words = story(1).split()
    await newsroom.post("read", " ".join(words))
    await newsroom.post("weak", " ".join(words[1::2][::-1] + story(2).split()))
    await newsroom.post("other", "Estmark opens its orchards to visitors on Sunday.")
    alone = await newsroom.related.of_id("read", RelatedOptions(min_score=0.0))
    newsroom.related._min_score = 0.99

    found, _ = await newsroom.related.of_ids({"read": 0, "other": 0})

    assert [item.id for item in alone] == ["weak"] and 0.5 < (alone[0].score or 0.0) < 0.99
    assert [item.id for item in found] == ["weak"]
    both = {"read": 0, "other": 0}
    assert await newsroom.related.of_ids(both, RelatedOptions(min_score=0.99)) == ([], [])
    assert await newsroom.related.of_ids({"read": 0}) == ([], [])


async def test_a_history_is_answered_by_each_article_of_an_interest() -> None:
    """Two stages of one subject, whose days are too far apart for one another, until the limit."""
    newsroom = core(MemoryStore())
    stages = {
        "pier": (
            "Engineer Hedda Voss closes the Aldern bridge in Corvane: a pier has sunk.",
            "The Aldern bridge in Corvane is shut, says engineer Hedda Voss, since its pier sank.",
            "Sunken pier: engineer Hedda Voss shuts Corvane's bridge over the Aldern.",
        ),
        "crane": (
            "Engineer Hedda Voss lifts a span of the Aldern bridge in Corvane by crane.",
            "A crane has set the span on the Aldern bridge in Corvane, says engineer Hedda Voss.",
            "Span set by crane: engineer Hedda Voss spans the Aldern in Corvane with a bridge.",
        ),
    }
    for days, (stage, texts) in zip((110, 5), stages.items(), strict=True):
        for i, text in enumerate(texts):
            at_ms = newsroom.clock.now_ms - days * DAY_MS + i
            await newsroom.post(f"{stage}-{i}", text, published_at_ms=at_ms)
    read = {"pier-0": newsroom.clock.now_ms, "crane-0": newsroom.clock.now_ms}
    others = {"pier-1", "pier-2", "crane-1", "crane-2"}

    for id_ in read:
        assert {item.id for item in await newsroom.related.of_id(id_)} == {
            other for other in others if other[:4] == id_[:4]
        }
    found, _ = await newsroom.related.of_ids(read, RelatedOptions(limit=20))
    assert {item.id for item in found} == others
    assert {(item.id[:4], item.because_of[:4]) for item in found} == {("pier", "pier"), ("cran", "cran")}
    assert len((await newsroom.related.of_ids(read, RelatedOptions(limit=3)))[0]) == 3


async def test_a_list_has_a_headline_once_and_not_that_of_the_question() -> None:
    """Outlets that add other footers to one short text; a headline of few words says little."""
    newsroom = core(MemoryStore())
    headline = "Mayor Tolliver opens the Quernstone museum"
    texts = {
        "asked": f"{headline}. Free entry until Sunday.\n\nSubscribe to Kessel Morning | Send us your news",
        "same": f"{headline}. Free entry until Sunday.\n\nFollow Harbour Wire on all channels, day and night",
        "other": "The Quernstone museum has free entry until Sunday, says mayor Tolliver.",
        "another": "Queues at the Quernstone museum: mayor Tolliver lets all in free until Sunday.",
    }
    titles = {"asked": headline, "same": f"{headline} | Harbour Wire", "other": "News", "another": "News"}
    for id_, text in texts.items():
        await newsroom.post(id_, text, title=titles[id_])

    assert {item.id for item in await newsroom.related.of_id("asked")} == {"other", "another"}
    from_other = {item.id for item in await newsroom.related.of_id("other")}
    assert from_other in ({"asked", "another"}, {"same", "another"})
    shown = RelatedOptions(exclude_ids=("asked",))
    assert {item.id for item in await newsroom.related.of_id("other", shown)} == {"another"}
    assert {item.id for item in (await newsroom.related.of_ids({"asked": 0}))[0]} == {"other", "another"}
    explained = (await newsroom.explain.explain_pair("asked", "same")).relatedness
    assert explained and not explained.listed and "one headline" in explained.summary


async def test_a_text_without_a_date_is_of_no_day() -> None:
    """An article of years ago is as related to it as to the same text of that day."""
    newsroom = core(MemoryStore())
    then_ms = newsroom.clock.now_ms - 900 * DAY_MS
    await newsroom.post("b", FLOOD[1], published_at_ms=then_ms)
    undated = Article(id="", text=FLOOD[0], lang="en")

    (item,) = await newsroom.related.of_article(undated)
    assert item.hours_apart is None
    (dated,) = await newsroom.related.of_article(replace(undated, published_at_ms=then_ms))
    assert (dated.score, dated.hours_apart) == (item.score, 0.0)
    assert await newsroom.related.of_article(replace(undated, published_at_ms=newsroom.clock.now_ms)) == []
    explained = (await newsroom.explain.explain_pair(undated, "b")).relatedness
    assert explained and explained.listed and "apart" not in explained.summary


async def test_ids_that_are_not_stored_do_not_fail_the_others(newsroom: Core) -> None:
    """Unknown, deleted and repeated ids are named once, in order; if all are unknown nothing is found."""
    await newsroom.post("deleted", story(90))
    await newsroom.ingest.delete("deleted")
    expected, _ = await newsroom.related.of_ids(dict.fromkeys(["a", "copy"], 0))

    found, not_found = await newsroom.related.of_ids(
        dict.fromkeys(["unknown", "a", "deleted", "copy", "unknown"], 0)
    )

    assert (found, not_found) == (expected, ["unknown", "deleted"])
    assert found
    assert await newsroom.related.of_ids(dict.fromkeys(["unknown"], 0)) == ([], ["unknown"])


async def test_expired_ids_do_not_fail_the_others(newsroom: Core) -> None:
    """An article whose record has expired is reported like an unknown one."""
    await newsroom.post("old", story(91))
    record = (await newsroom.index.articles.get("old")).record
    await newsroom.index.records.delete({record.number: record.space})
    with pytest.raises(Expired):
        await newsroom.related.of_id("old")

    found, not_found = await newsroom.related.of_ids(dict.fromkeys(["old", "a"], 0))

    assert not_found == ["old"]
    assert found


async def test_members_of_the_same_event() -> None:
    """Reports of one event are related regardless of wording, with their probability; deleted ones are not.

    A minimum of the request counts for them as well.
    """
    newsroom = core(MemoryStore())
    for i in range(4):
        await newsroom.post(f"a{i}", story(i), title=f"Report {i}")

    first_version = (await newsroom.index.articles.get("a0")).record.first_version

    async def members_of_event(group: int) -> list[str]:
        return ["a0", "a1", "a3", "deleted"] if group == first_version else []

    related = RelatedArticles(
        newsroom.index,
        unused_analyzer,
        clock=newsroom.clock,
        min_score=1,
        members_of_event=members_of_event,
    )

    assert {i.id for i in await related.of_id("a0")} == {"a1", "a3"}
    assert await related.of_id("a2") == []
    assert {i.id for i in (await related.of_ids({"a0": 0}))[0]} == {"a1", "a3"}
    every = await related.of_id("a0", RelatedOptions(min_score=0))
    scores = {i.id: i.score or 0.0 for i in every if i.kind == "same_event"}
    assert {i.id: i.score for i in await related.of_id("a0")} == scores and max(scores.values()) < 0.9
    least = max(scores.values()) - 0.001
    requested = await related.of_id("a0", RelatedOptions(min_score=least))
    assert {i.id for i in requested} == {id_ for id_, score in scores.items() if score >= least} < {*scores}


async def unused_analyzer(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
    """For queries by id."""
    raise AssertionError("no text to analyze")


async def test_unknown_id_and_empty_text(newsroom: Core) -> None:
    """The caller gets NotFound and NoText."""
    with pytest.raises(NotFound, match="'unknown'"):
        await newsroom.related.of_id("unknown")
    with pytest.raises(NoText):
        await newsroom.related.of_article(Article(id=""))


FLOOD = (
    "Floods close the Brackwater tunnel; Estmark opens its shelters tonight.",
    "Estmark shelters fill while the tunnel under Brackwater stays shut. Floods rise.",
)


async def test_few_common_words_of_an_unlikely_answer_are_no_kind() -> None:
    """A lower minimum lists it, but nothing says that the word is one person, place or topic."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", "The president of Estmark counts new jobs.")
    await newsroom.post("b", "Harbour council votes against the president.")
    (found,) = await newsroom.related.of_id("a", RelatedOptions(min_score=0))

    assert 0.5 < (found.score or 0.0) < MIN_PROBABILITY
    assert (found.kind, [word for word, _ in found.shared]) == ("", ["presid"])


async def test_an_explanation_shows_the_similarity_of_the_ranking() -> None:
    """Of all terms of the profiles, with their weights; the rules see the main terms."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    (item,) = await newsroom.related.of_id("a")
    explained = await newsroom.explain.explain_pair("a", "b")
    assert explained.relatedness
    assert explained.relatedness.similarity == pytest.approx(item.similarity, abs=0.001)
    assert explained.relatedness.similarity != explained.similarity


async def test_articles_that_share_rare_terms_are_related() -> None:
    """At a large distance and without a common phrase; copies are left out."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    await newsroom.post("a again", FLOOD[0])
    await newsroom.post("other", "An orchard festival sells cider on Sunday.")

    found = await newsroom.related.of_id("a")
    assert [item.id for item in found] == ["b"]
    assert found[0].distance > 7 and (found[0].score or 0.0) >= MIN_PROBABILITY
    assert [item.id for item in await newsroom.related.of_id("b")] == ["a"]
    assert await newsroom.related.of_id("other") == []


async def test_a_promoted_copy_is_found_by_its_terms() -> None:
    """Copies are not in the term index; one that becomes canonical is added."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("copy", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    await newsroom.ingest.delete("a")

    assert [item.id for item in await newsroom.related.of_id("b")] == ["copy"]


async def test_an_answer_takes_two_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text always, an id from the second request on; after an update the article is read again."""
    newsroom = core(store := MemoryStore())
    await newsroom.post("a", FLOOD[0])
    await newsroom.post("b", FLOOD[1])
    await newsroom.post("cider", "An orchard festival sells cider on Sunday.")
    reads: list[int] = []
    read = store.read

    async def counting_read(keys: Sequence[bytes]) -> list[bytes | None]:
        reads.append(len(keys))
        return await read(keys)

    monkeypatch.setattr(store, "read", counting_read)

    async def query(id_: str) -> tuple[list[str], int]:
        reads.clear()
        return [item.id for item in await newsroom.related.of_id(id_)], len(reads)

    assert await query("a") == (["b"], 4)
    assert await query("a") == (["b"], 2)
    await newsroom.post("a", "A cider festival in the orchard on Sunday.")
    assert (await query("a"))[0] == ["cider"]
    assert await query("a") == (["cider"], 2)
    await newsroom.ingest.delete("a")
    with pytest.raises(NotFound):
        await newsroom.related.of_id("a")
    reads.clear()
    assert await newsroom.related.of_article(Article(id="", text=FLOOD[1], lang="en"))
    assert len(reads) == 2


async def test_the_article_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of CACHE_ENTRIES + 2 articles the latest CACHE_ENTRIES are cached."""
    monkeypatch.setattr("aggregator.queries.related.CACHE_ENTRIES", 2)
    newsroom = core(MemoryStore())
    for i in range(4):
        await newsroom.post(f"a{i}", story(i))
        await newsroom.related.of_id(f"a{i}")

    assert list(newsroom.related._subject_cache) == ["a2", "a3"]
