"""Equal texts under different language tags are one article, whatever the order, batch, store and segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article, arrival_ms_of
from aggregator.index import Index, keys
from aggregator.index.upkeep.integrity_check import check_integrity
from aggregator.index.upkeep.sketch_rehash import SketchRehash
from aggregator.ingest.equal_texts import equal_in_any_space
from aggregator.ingest.service import BATCH_ARTICLES
from aggregator.store.base import Store, Transaction
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from tests.support.factories import Clock, in_process
from tests.support.store_steps import scan
from tests.support.wiring import Core, build_core

ANALYZER = Analyzer({group: HashedModel(group=group) for group in ("en", "ru", "zh", "xx")})
FERRY = "Fährverkehr über den Skarnsund ruht bis Donnerstag"
# Headline, text, two tags.
TAGGED = {
    "German headline": (FERRY, "", "en-US", "de"),
    "German headline without a tag": ("Landrat öffnet die Brücke über die Möhne", "", "en-US", ""),
    "English headline with clitics": ("Harbourmaster's crew won't fly the town’s flag", "", "en", "fr"),
    "Spanish as Portuguese": ("Once barcos pesqueros esperan la marea en Vallemar", "", "es", "pt"),
    "Serbian as Croatian": ("Trajekt za Donji Brod ne plovi jedanaest dana", "", "sr", "hr"),
    "Norwegian as Danish": ("Fergen til Ytre Strand står i elleve dager", "", "no", "da"),
    "Ukrainian text": (
        "",
        "Пором до Верхньої Лугині не ходить одинадцять днів через лід.",
        "ru",
        "uk",
    ),
    "Bulgarian, long": ("Фериботът", "Фериботът не пътува заради леда по езерото. " * 12, "ru", "bg"),
    "Japanese in ideographs": ("湖上渡船結冰停航十一日", "", "ja", "zh"),
}


def newsroom(
    store: Store,
    clock: Clock | None = None,
    *,
    retention_ms: int | None = None,
    batch_articles: int = BATCH_ARTICLES,
) -> Core:
    """A core with four spaces; several over one store behave like several processes."""
    return build_core(
        Index(store, ANALYZER.spaces, retention_ms=retention_ms),
        in_process(ANALYZER),
        Policy(),
        clock=clock or Clock(),
        batch_articles=batch_articles,
    )


async def post(core: Core, id_: str, title: str, lang: str, text: str = "") -> Answer:
    """Submit one article."""
    return await core.ingest.submit(Article(id=id_, title=title, text=text, lang=lang))


@pytest.mark.integration
@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("swapped", [False, True])
async def test_an_equal_text_is_a_duplicate_whatever_its_tag(store: Store, name: str, swapped: bool) -> None:
    """In both orders; also with the headline in capitals, as far as the language allows."""
    title, text, *tags = TAGGED[name]
    first, second = reversed(tags) if swapped else tags
    core = newsroom(store)
    original = await post(core, "first", title, first, text)
    copy = await post(core, "second", title, second, text)
    again = await post(core, "third", title.replace("ß", "ss").upper(), second, text)

    assert original.outcome.verdict == "new"
    for answer in (copy, again):
        assert answer.outcome.match is not None
        assert (answer.outcome.match.id, answer.outcome.match.rule) == ("first", "exact")
        assert answer.space == original.space


@pytest.mark.parametrize("batch_articles", [1, 2, 32])
async def test_batches_answer_as_single_posts(batch_articles: int) -> None:
    """Also where one batch is looked up before the one before it is committed."""
    articles = [
        Article(id=f"{side}{n}", title=title, text=text, lang=tags[side])
        for n, (title, text, *tags) in enumerate(TAGGED.values())
        for side in (0, 1, 0)
    ]
    articles = [replace(article, id=f"{i}-{article.id}") for i, article in enumerate(articles)]
    single, batched = newsroom(MemoryStore()), newsroom(MemoryStore(), batch_articles=batch_articles)
    expected = [await single.ingest.submit(article) for article in articles]
    answers = await batched.ingest.submit_many(articles)

    def shown(answer: object) -> tuple[object, ...]:
        assert isinstance(answer, Answer)
        return (
            answer.id,
            answer.space,
            answer.outcome.verdict,
            answer.outcome.match and answer.outcome.match.id,
        )

    assert [*map(shown, answers)] == [*map(shown, expected)]
    assert sum(answer.outcome.verdict == "duplicate" for answer in expected) == 2 * len(TAGGED)


async def test_an_unlike_text_stays_in_its_language() -> None:
    """The key finds texts that begin alike; it proves nothing."""
    core, opening = newsroom(MemoryStore()), "Фериботът не пътува заради леда по езерото. " * 4
    await post(core, "a", "", "ru", opening + "Пътниците чакат на кея.")
    other = await post(core, "b", "", "bg", opening + "Кметът отговори на въпроси.")

    assert (other.outcome.verdict, other.space) == ("new", ANALYZER.space_of("bg"))


async def test_a_repeat_under_another_tag_is_a_repeat() -> None:
    """Nothing is stored, and the article stays where it is."""
    core = newsroom(MemoryStore())
    await post(core, "a", FERRY, "en")
    repeat = await post(core, "a", FERRY, "de")

    assert (repeat.stored, repeat.space) == (False, ANALYZER.space_of("en"))


async def test_a_deleted_article_leads_nowhere() -> None:
    """Its entries stay in the buckets; later articles are in their own languages again."""
    core = newsroom(MemoryStore())
    await post(core, "a", FERRY, "en")
    await core.ingest.delete("a")
    first, second = await post(core, "b", FERRY, "de"), await post(core, "c", FERRY, "de")

    assert (first.outcome.verdict, first.space) == ("new", ANALYZER.space_of("de"))
    assert second.outcome.match is not None
    assert second.outcome.match.id == "b"


async def test_a_copy_that_is_left_leads_to_its_language() -> None:
    """It shared the entries of the deleted article."""
    core = newsroom(MemoryStore())
    await post(core, "a", FERRY, "en")
    await post(core, "b", FERRY, "en")
    await core.ingest.delete("a")

    found = (await post(core, "c", FERRY, "de")).outcome.match
    assert found is not None
    assert found.id == "b"


async def test_an_expired_article_leads_nowhere() -> None:
    """Also while its segment is live."""
    clock = Clock()
    core = newsroom(MemoryStore(), clock, retention_ms=HOUR_MS)
    await post(core, "a", FERRY, "en")
    space = ANALYZER.space_of("en")
    await core.index.segments.advance_head(space, floor=(clock.now_ms + HOUR_MS) << 22)

    assert (await post(core, "b", FERRY, "de")).outcome.verdict == "new"


async def test_an_update_keeps_its_space() -> None:
    """The verdict of an id stays when its text becomes one that another space has."""
    core = newsroom(MemoryStore())
    await post(core, "a", FERRY, "en")
    await post(core, "b", "Fähre nach Estmark fährt wieder", "de")
    updated = await post(core, "b", FERRY, "de")

    assert (updated.outcome.verdict, updated.space) == ("new", ANALYZER.space_of("de"))


async def test_what_two_languages_have_is_found_in_each() -> None:
    """Two processes that post one text at the same instant leave two articles."""
    store = MemoryStore()
    core = newsroom(store)
    await post(core, "a", FERRY, "en")
    alone = build_core(Index(store, [ANALYZER.space_of("de")]), in_process(ANALYZER), Policy(), clock=Clock())
    await post(alone, "b", FERRY, "de")

    await post(core, "c", FERRY, "de")
    for id_, verdict in (("b", "new"), ("c", "duplicate")):
        repeat = await post(core, id_, FERRY, "en")
        assert (repeat.stored, repeat.outcome.verdict) == (False, verdict)
    for lang, id_ in (("en", "a"), ("de", "b")):
        match = (await post(core, f"copy in {lang}", FERRY, lang)).outcome.match
        assert match is not None
        assert match.id == id_


@pytest.mark.parametrize("complete", [False, True])
async def test_equal_texts_are_found_in_sealed_and_rehashed_segments(complete: bool) -> None:
    """A bucket may be in any segment and of two widths; the audit knows the entries."""
    store, clock = MemoryStore(), Clock()
    core, space = newsroom(store, clock), ANALYZER.space_of("en")
    await post(core, "a", FERRY, "en")
    rehash = SketchRehash(store, core.index.segments, split_entries=-1)
    async for _ in rehash.steps(space):
        if not complete:
            break
    await core.index.segments.seal(space, 0, clock())

    match = (await post(core, "b", FERRY, "de")).outcome.match
    assert match is not None
    assert match.id == "a"
    assert (await check_integrity(core.index, space, clock() + HOUR_MS)).ok


class LosesRace(MemoryStore):
    """Refuses its first commit, before which ``rival`` posts."""

    rival: Core | None = None

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """All checks fail once."""
        if self.rival is None:
            return await super().commit_many(transactions)
        rival, self.rival = self.rival, None
        await post(rival, "a", FERRY, "en")
        return [(0,)] * len(transactions)


async def test_a_retry_follows_what_was_stored_meanwhile() -> None:
    """The record that the first attempt wrote in the other language is gone."""
    store = LosesRace()
    store.rival = newsroom(store)
    answer = await post(newsroom(store), "b", FERRY, "de")

    assert answer.outcome.match is not None
    assert answer.outcome.match.id == "a"
    records = await scan(store, keys.RECORD_PREFIX)
    assert {key.split(b":")[1].decode() for key in records} == {ANALYZER.space_of("en")}
    assert len(records) == 2


async def test_only_the_latest_of_many_are_read() -> None:
    """A text that is repeated for years under another tag costs no more."""
    clock = Clock()
    core = newsroom(MemoryStore(), clock)
    for day in range(9):
        clock.now_ms += 30 * HOUR_MS  # copies share entries for a day
        await post(core, f"a{day}", FERRY, "en")
    analysis = ANALYZER.analyze(Article(id="b", title=FERRY, lang="de"))
    probe = core.index.lookup.probe(analysis, "b")
    found = equal_in_any_space(await core.index.lookup.read_snapshot([probe]), probe)

    assert set(found.values()) == {ANALYZER.space_of("en")}
    assert len(found) == 4
    assert arrival_ms_of(min(found)) > clock.now_ms - 4 * 30 * HOUR_MS
