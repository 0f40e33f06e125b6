"""Search of stored articles by words, URL and id."""

import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from aggregator.domain import Article
from aggregator.index import articles
from aggregator.queries import headline_index, headline_table
from aggregator.queries.headline_index import HeadlineIndex
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.search import ArticleSearch
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.index.helpers import seal
from tests.support.factories import Core, core, edited, load_all, story


@pytest.fixture
async def newsroom() -> AsyncIterator[Core]:
    """Two reports on a dam, one on a bridge, and a copy of the first."""
    newsroom = core(MemoryStore())
    await newsroom.post("d1", text(1), title="Kareth dam bursts after heavy rain", source="Estmark Radio")
    await newsroom.post("d2", text(2), title="Thousands flee as dams fail", source="Coastline News")
    await newsroom.post("b1", text(3), title="Harbour bridge closed", source="Estmark Radio")
    await newsroom.post("copy", edited(text(1), 2), title="Dam bursts near Kareth", source="Daily Copy")
    yield newsroom
    await newsroom.search.headlines.close()


def text(seed: int) -> str:
    """A text of made-up words that is recognized as English."""
    words = story(seed, 8).split()
    return " ".join(f"The {word} and that {word[::-1]} were with this." for word in words)


async def ids(newsroom: Core, query: str, **options: object) -> list[str]:
    """Ids of the results, best first."""
    result = await newsroom.search.find(query, **options)  # type: ignore[arg-type]
    return [found.article.record.id for found in result.articles]


async def test_inflected_words_are_found(newsroom: Core) -> None:
    """The singular finds the plural and the reverse, in any case; newest first among equal matches."""
    assert await ids(newsroom, "dam") == ["copy", "d2", "d1"]
    assert await ids(newsroom, "DAMS") == ["copy", "d2", "d1"]
    assert await ids(newsroom, "volcano") == []


async def test_articles_with_more_of_the_words_come_first(newsroom: Core) -> None:
    """Those with half of the words follow; the words of the source count after those of the headline."""
    assert await ids(newsroom, "kareth dam rain") == ["d1", "copy"]
    assert await ids(newsroom, "dam Estmark") == ["d1", "copy", "d2", "b1"]
    assert await ids(newsroom, "bridge radio") == ["b1", "d1"]


async def test_words_in_quotes_stand_next_to_each_other(newsroom: Core) -> None:
    """In this order and form, in the headline or the outlet; any other word may be missing."""
    assert await ids(newsroom, '"dam bursts"') == ["copy", "d1"]
    assert await ids(newsroom, "“DAM bursts” kareth radio") == ["d1", "copy"]
    assert await ids(newsroom, '"dam burst"') == []
    assert await ids(newsroom, '"bursts dam"') == await ids(newsroom, '"radio kareth" dam') == []
    assert await ids(newsroom, '"estmark radio"') == ["b1", "d1"]
    assert await ids(newsroom, 'dam "bursts') == await ids(newsroom, 'dam "" bursts') == ["copy", "d1", "d2"]


async def test_one_word_in_quotes_is_no_other_form_of_it(newsroom: Core) -> None:
    """Words with one stem are distinguished, also in the number of results."""
    await newsroom.post("e1", text(7), title="Volcano emerges from the sea")
    await newsroom.post("e2", text(8), title="Emergency in Selwyn")

    assert set(await ids(newsroom, "emergency")) == {"e1", "e2"}
    assert await ids(newsroom, '"emergency"') == ["e2"]
    assert (await newsroom.search.find('"emergency"')).total == 1


@pytest.mark.parametrize(
    ("title", "lang", "query"),
    [
        ("São Paulo floods", "en", "sao paulo"),
        ("El niño de Málaga", "es", "MALAGA nino"),
        ("Łódź: tramwaj", "pl", "lodz"),
        ("Erdoğan à Izmir", "fr", '"Erdogan a Izmir"'),
        ("Zurich votes", "en", "Zürich"),
        ("Election in Kareth", "en", "Élections"),
        ("Cafés close in Kareth", "en", "cafe"),
        ("Σεισμός στην Κρήτη", "el", "σεισμος κρητη"),
    ],
)
async def test_accents_do_not_count(newsroom: Core, title: str, lang: str, query: str) -> None:
    """In the headline or in the query, in phrases as well."""
    await newsroom.ingest.submit(Article("accented", title, "", lang=lang))

    assert await ids(newsroom, query) == ["accented"]


async def test_by_time_the_newest_of_those_with_most_words_come_first(newsroom: Core) -> None:
    """A word of the outlet counts like one of the headline; what lacks more words is left out."""
    await newsroom.post("r1", text(7), title="Ferry late", source="Dam Radio")

    assert await ids(newsroom, "dam radio") == ["d1", "r1", "copy", "d2", "b1"]
    assert await ids(newsroom, "dam radio", order="time") == ["r1", "d1"]
    assert await ids(newsroom, "dam", order="time") == ["r1", "copy", "d2", "d1"]
    assert await ids(newsroom, "", order="time") == await ids(newsroom, "")


async def test_an_article_is_found_by_its_id_and_its_url(newsroom: Core) -> None:
    """Whatever words its headline has; the URL in any spelling, also when it is not the id."""
    await newsroom.post("own-id", text(5), title="Tram", url="https://coast.example/ferry/?utm_source=x")
    await newsroom.ingest.submit(
        Article("coast.example/tide", "Tide", text(6), url="https://coast.example/tide", source="Tides")
    )

    assert await ids(newsroom, "b1") == ["b1"]
    assert await ids(newsroom, "HTTP://coast.example/ferry#top") == ["own-id"]
    assert (await ids(newsroom, "https://coast.example/tide/"))[0] == "coast.example/tide"
    sailed = SearchFilter(sources=("estmark radio",))
    assert await ids(newsroom, "https://coast.example/ferry", search_filter=sailed) == []


async def test_filters_restrict_the_results(newsroom: Core) -> None:
    """By source in any case, language, verdict and time; without words all articles that pass are listed."""
    assert await ids(newsroom, "dam", search_filter=SearchFilter(sources=("estmark radio", "x"))) == ["d1"]
    assert await ids(newsroom, "", search_filter=SearchFilter(sources=("estmark radio", "x"))) == ["b1", "d1"]
    assert await ids(newsroom, "dam", search_filter=SearchFilter(lang="de")) == []
    assert await ids(newsroom, "dam", search_filter=SearchFilter(verdict="duplicate")) == ["copy"]
    now_ms = newsroom.clock.now_ms
    assert await ids(newsroom, "dam", search_filter=SearchFilter(since_ms=now_ms + 10_000)) == []
    assert await ids(newsroom, "dam", search_filter=SearchFilter(until_ms=now_ms - 10_000)) == []


@pytest.mark.integration
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("order", ["relevance", "time"])
@pytest.mark.parametrize("query", ["dam kareth", '"dam number"', ""])
async def test_pages_together_are_all_results(newsroom: Core, query: str, order: Any, limit: int) -> None:
    """Each result once and in the same order, whatever the size of the page."""
    for number in range(60):
        await newsroom.post(f"x{number}", text(100 + number), title=f"Dam number {number}")
    everything = await newsroom.search.find(query, limit=100, order=order)
    assert everything.total == len(everything.articles) >= (1 if query == "dam kareth" else 60)
    assert everything.next_key is None

    seen, after = [], None
    while True:
        page = await newsroom.search.find(query, limit=limit, after=after, order=order)
        assert page.total == everything.total
        seen += [found.article.record.id for found in page.articles]
        after = page.next_key
        if after is None:
            break

    assert seen == [found.article.record.id for found in everything.articles]


async def test_deleted_and_replaced_articles_are_not_found(newsroom: Core) -> None:
    """Also when they were in the results before; of a reused id with its dropped copy, until that is sent."""
    assert "d2" in await ids(newsroom, "dam")
    await newsroom.ingest.delete("d2")
    assert await ids(newsroom, "dam") == ["copy", "d1"]
    answer = await newsroom.post("d1", text(9), title="Volcano")

    assert answer.withdrawn == ("copy",)
    assert await ids(newsroom, "dam") == []
    assert await ids(newsroom, "volcano") == ["d1"]


async def test_headlines_before_the_first_search_are_read_in_any_number(store: Store) -> None:
    """From all segments, newest first, until the stream ends; then the headlines of all are searched."""
    newsroom = core(store, segment_max_articles=5)
    for number in range(13):
        await newsroom.post(f"a{number}", text(number), title=f"Report {number} on otters")
    await seal(newsroom)
    search = newsroom.search
    await load_all(search.headlines)
    result = await search.find("otters", limit=50)
    await search.headlines.close()

    assert [found.article.record.id for found in result.articles] == [f"a{i}" for i in range(12, -1, -1)]
    assert (result.searched, result.is_loading) == (13, False)
    assert result.since_ms == result.articles[-1].article.record.arrived_ms


async def trim_streams(newsroom: Core) -> None:
    """Remove all entries of the article streams, as the retention of the streams does after days."""
    for space in newsroom.index.spaces:
        for tag in (await newsroom.index.segments.stack(space)).tags:
            await newsroom.index.store.delete([tag + b"stream"])


async def test_articles_that_left_the_stream_are_read_from_the_postings(store: Store) -> None:
    """With their verdicts, over several segments; not those that were deleted, replaced or expired."""
    newsroom = core(store)
    await newsroom.post("expired", text(0), title="Otters expired")
    floor = newsroom.clock.now_ms + 1 << 22
    for number in range(1, 8):
        await newsroom.post(f"a{number}", text(number), title=f"Otters {number}")
        if number == 4:
            await seal(newsroom)
    await newsroom.post("copy", edited(text(1), 2), title="Otters again")
    await newsroom.ingest.delete("a2")
    await newsroom.post("a3", text(30), title="Herons")
    for space in newsroom.index.spaces:
        await newsroom.index.segments.advance_head(space, floor=floor)
    await trim_streams(newsroom)
    await newsroom.post("late", text(40), title="Otters late")

    await load_all(newsroom.search.headlines)
    await newsroom.post("later", text(50), title="Otters later")

    assert await ids(newsroom, "otters") == ["later", "late", "copy", "a7", "a6", "a5", "a4", "a1"]
    assert await ids(newsroom, "otters", search_filter=SearchFilter(verdict="duplicate")) == ["copy"]
    result = await newsroom.search.find("herons")
    assert [found.article.record.id for found in result.articles] == ["a3"]
    assert (result.searched, result.is_loading) == (9, False)
    await newsroom.search.headlines.close()


async def test_many_numbers_are_sorted_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Posts continue meanwhile: 10^7 numbers take seconds."""
    threads = set()

    def recorded(sort: Callable[..., Any], *args: Any) -> Any:
        threads.add(threading.current_thread())
        return sort(*args)

    for module, name in ((articles, "_not_expired"), (headline_index, "newest_missing")):
        monkeypatch.setattr(module, name, partial(recorded, getattr(module, name)))
    newsroom = core(MemoryStore())
    await newsroom.post("a1", text(1), title="Otters")
    await load_all(newsroom.search.headlines)

    assert threads and threading.current_thread() not in threads
    await newsroom.search.headlines.close()


async def test_beyond_the_limit_articles_are_found_by_their_key_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table is full of newer headlines; the term index still has what stands out in a text."""
    monkeypatch.setattr(headline_table, "CHUNK_ROWS", 2)
    newsroom = core(MemoryStore())
    await newsroom.post("old", "Otters. " + "The otters of the otter reserve " * 20, title="Nature notes")
    for number in range(6):
        await newsroom.post(f"a{number}", text(number), title=f"Nature report {number}")
    await trim_streams(newsroom)
    headlines = HeadlineIndex(newsroom.index, max_rows=2)
    search = ArticleSearch(newsroom.index, headlines)

    await load_all(headlines)
    found = await search.find("otter")
    by_headline = await search.find("nature")
    await headlines.close()

    assert [each.article.record.id for each in found.articles] == ["old"]
    assert 2 <= found.searched < 7
    assert found.since_ms is not None
    assert found.since_ms > found.articles[0].article.record.arrived_ms
    assert "a5" in [each.article.record.id for each in by_headline.articles]


async def test_words_of_scripts_without_spaces_are_found() -> None:
    """Chinese by the words of the index, other scripts by pairs of characters."""
    newsroom = core(MemoryStore())
    await newsroom.ingest.submit(Article("zh", "卡雷斯大坝决堤", text(1), lang="zh"))
    await newsroom.ingest.submit(Article("ja", "ダムが決壊した", text(2), lang="ja"))

    assert "zh" in await ids(newsroom, "大坝")
    assert await ids(newsroom, "ダム") == ["ja"]
    await newsroom.search.headlines.close()


async def test_a_query_of_stop_words_has_no_results(newsroom: Core) -> None:
    """No index has them; the result says that nothing was searched."""
    result = await newsroom.search.find("the of and")

    assert (result.words, result.articles, result.total) == (0, (), 0)
