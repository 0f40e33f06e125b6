"""What duplicates add to what readers have, through the ingest service: versions, teasers, collections."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import AggregatorError
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from tests.support.factories import START_MS, Core, core, edited, story

FRAMES = (
    "The {} of the {} was {} by the {} at {}.",
    "They had {} the {} before the {} and {} of {}.",
    "It is {} that {} will {} from the {} to {}.",
)


def sentence(seed: int) -> str:
    """An English sentence of about ten words, five of them made up."""
    return FRAMES[seed % 3].format(*story(seed, 1).lower().rstrip(".").split()[:5])


SENTENCES = [sentence(seed) for seed in range(200)]
TITLES = (
    "Beavers flood a campsite",
    "Comet with two tails found",
    "Pilots end harbour strike",
    "Bakers sue shops",
)


def text(*sentences: int) -> str:
    """A text of these sentences of ten words each."""
    return " ".join(SENTENCES[n] for n in sentences)


FIRST, FULLER = text(*range(20)), text(*range(40))
# Most of the first version and a little that no other has.
EXTENDED = text(*range(18), *range(100, 103))


async def post(
    newsroom: Core, id_: str, own: str, title: str = "", source: str = "", hour: int = 0
) -> Answer:
    """Post an article of this hour."""
    return await newsroom.post(
        id_, own, title=title, source=source, published_at_ms=START_MS + hour * HOUR_MS
    )


async def in_batch(newsroom: Core, articles: Sequence[Article]) -> list[Answer]:
    """The answers on a batch without errors."""
    answers = await newsroom.ingest.submit_many(articles)
    assert not any(isinstance(answer, AggregatorError) for answer in answers)
    return [answer for answer in answers if isinstance(answer, Answer)]


async def test_a_kept_duplicate_counts_as_read() -> None:
    """The fuller version is kept, so that its copy adds nothing, though the first lacks half of it."""
    newsroom = core(MemoryStore())
    await newsroom.post("first", FIRST, source="Gazette")
    fuller = (await newsroom.post("fuller", FULLER, source="Radio")).outcome
    copy = (await newsroom.post("copy", edited(FULLER, 3), source="Herald")).outcome

    assert (fuller.verdict, fuller.fuller, fuller.keep) == ("duplicate", True, True)
    assert fuller.adds == pytest.approx(0.5, abs=0.08)
    assert copy.match is not None and copy.match.canonical_id == "first"
    assert copy.adds is not None and copy.adds < 0.1


async def test_a_dropped_duplicate_does_not_count_as_read() -> None:
    """What it added is still new in the next article that has it."""
    newsroom = core(MemoryStore())
    await newsroom.post("first", FIRST, source="Gazette")
    dropped = (await newsroom.post("dropped", EXTENDED, source="Radio")).outcome
    later = (await newsroom.post("later", edited(EXTENDED, 3, 2), source="Herald")).outcome

    assert dropped.adds is not None and 0.08 <= dropped.adds < 0.2 and not dropped.keep
    assert later.verdict == "duplicate" and later.adds is not None
    assert later.adds >= dropped.adds - 0.03


async def test_a_batch_answers_as_single_posts() -> None:
    """Also where the canonical article and the kept member are of the same batch."""
    articles = [
        Article(id=id_, text=own, source=source, lang="en")
        for id_, own, source in (
            ("first", FIRST, "Gazette"),
            ("fuller", FULLER, "Radio"),
            ("copy", edited(FULLER, 3), "Herald"),
            ("extended", EXTENDED, "Post"),
            ("exact", FULLER, "Courier"),
        )
    ]
    one_by_one, batched = core(MemoryStore()), core(MemoryStore())
    single = [await one_by_one.ingest.submit(article) for article in articles]
    together = await in_batch(batched, articles)

    def compared(answers: list[Answer]) -> list[object]:
        return [
            (a.outcome.verdict, a.outcome.adds, a.outcome.fuller, a.outcome.keep, a.outcome.follows)
            for a in answers
        ]

    assert compared(single) == compared(together)
    assert [a.outcome.verdict for a in single] == ["new", *["duplicate"] * 4]
    assert [a.outcome.fuller for a in single][:2] == [False, True]


async def test_a_copy_of_the_kept_fuller_version_is_not_kept() -> None:
    """Nor the third and fourth: readers have it."""
    newsroom = core(MemoryStore())
    await newsroom.post("first", FIRST, source="Gazette")
    await newsroom.post("fuller", FULLER, source="Radio")
    copies = [await newsroom.post(f"copy{n}", edited(FULLER, n), source=f"Outlet {n}") for n in range(3)]

    assert [answer.outcome.keep for answer in copies] == [False] * 3


async def test_a_retry_answers_the_same() -> None:
    """With all that was found, in whole percents."""
    newsroom = core(MemoryStore())
    for id_, own in (
        ("first", FIRST),
        ("fuller", FULLER),
        ("extended", EXTENDED),
        ("copy", edited(FIRST, 3)),
    ):
        answer = await newsroom.post(id_, own)
        assert (await newsroom.post(id_, own)).outcome == answer.outcome


async def test_half_an_article_then_the_whole() -> None:
    """Kept as the fuller one, in every order of sources; the half after the whole adds nothing."""
    for sources in (("Gazette", "Gazette"), ("Gazette", "Radio"), ("", "")):
        for first, second in ((FIRST, FULLER), (FULLER, FIRST)):
            newsroom = core(MemoryStore())
            await post(newsroom, "a", first, TITLES[0], sources[0])
            found = (await post(newsroom, "b", second, TITLES[0], sources[1], 1)).outcome

            assert found.verdict == "duplicate"
            assert (found.fuller, found.keep) == ((True, True) if second == FULLER else (False, False))
            assert second == FULLER or found.adds == 0


@pytest.mark.parametrize("words", [30, 45, 80])
async def test_a_teaser_and_its_article(words: int) -> None:
    """The article is kept after its teaser; the teaser is a duplicate after its article."""
    teaser = " ".join(FULLER.split()[:words])
    for source in ("Gazette", "Radio"):
        newsroom, other = core(MemoryStore()), core(MemoryStore())
        await post(newsroom, "teaser", teaser, TITLES[0], "Gazette")
        article = (await post(newsroom, "article", FULLER, TITLES[0], source, 1)).outcome
        assert article.keep and (article.verdict, article.fuller) in (("duplicate", True), ("related", False))

        await post(other, "article", FULLER, TITLES[0], "Gazette")
        late = (await post(other, "teaser", teaser, TITLES[0], source, 1)).outcome
        assert (late.verdict, late.keep) == ("duplicate", False)
        assert late.adds is not None and late.adds < 0.2


@pytest.mark.parametrize("words", [20, 30])
async def test_a_teaser_of_a_line_after_its_article(words: int) -> None:
    """Under the headline of the article, of nine words: nothing is new."""
    newsroom, title = core(MemoryStore()), "Beavers flood a campsite below Ellerby after building dam"
    await post(newsroom, "article", FULLER, title, "Gazette")
    found = (await post(newsroom, "teaser", " ".join(FULLER.split()[:words]), title, "Gazette", 1)).outcome

    assert (found.verdict, found.keep, found.adds) == ("duplicate", False, 0)


@pytest.mark.parametrize("step", [1, 2, 3, 5])
@pytest.mark.parametrize("title", ["", "Storm at the coast: latest"])
async def test_a_rolling_page(step: int, title: str) -> None:
    """Twelve versions: none stays with a canonical article of which less than half is left."""
    newsroom = core(MemoryStore())
    versions = {f"v{n}": set(range(100 - step * n, 120 - step * n)) for n in range(12)}
    canonical, followed = {}, []
    for hour, (id_, sentences) in enumerate(versions.items()):
        found = (await post(newsroom, id_, text(*sorted(sentences)), title, "Gazette", hour)).outcome
        canonical[id_] = found.match.canonical_id if found.match else id_
        if found.follows:
            followed.append(found.follows)
            assert found.keep and found.verdict == "related"

    for id_, first in canonical.items():
        assert len(versions[id_] & versions[first]) >= 9
    assert set(followed) <= set(canonical.values())
    assert len(set(canonical.values())) >= 1 + (11 * step) // 15


def briefing() -> str:
    """Four items of twelve sentences, each under its headline."""
    return "\n".join(f"{title}. {item(n)}" for n, title in enumerate(TITLES))


def item(number: int) -> str:
    """An item whose first sentence has the words of its headline."""
    return f"{TITLES[number]}, officials said on Monday evening. {text(*range(12 * number, 12 * number + 7))}"


async def test_a_collection_swallows_no_item() -> None:
    """Nor do its items swallow it; a copy of the whole is a duplicate."""
    for source in ("Gazette", "Radio"):
        newsroom, other, parts = core(MemoryStore()), core(MemoryStore()), 0
        await post(newsroom, "briefing", briefing(), "Good morning", "Gazette")
        for n, title in enumerate(TITLES):
            found = (await post(newsroom, f"item{n}", item(n), title, source, 1)).outcome
            assert found.match is None and found.keep
            parts += found.part_of == "briefing"
            assert (await post(other, f"item{n}", item(n), title, source)).outcome.match is None
        assert parts >= 3  # of a fourth of a text the look-up finds nine of ten
        whole = (await post(other, "briefing", briefing(), "Good morning", "Gazette", 1)).outcome
        assert whole.match is None and whole.keep
        again = (await post(other, "again", edited(briefing(), 3), "Good morning", "Herald", 1)).outcome
        assert again.match is not None and again.match.canonical_id == "briefing" and not again.keep


async def test_an_update_that_nobody_kept_does_not_hide_the_next() -> None:
    """Another outlet's figures are not kept; those of the outlet itself, in the same words, are."""
    newsroom = core(MemoryStore())
    toll = "The county counts {} flooded houses."
    await newsroom.post("first", f"{FIRST} {toll.format(3)}", source="Wire")
    other = (await newsroom.post("other", f"{FIRST} {toll.format(11)}", source="Ledger")).outcome
    own = (await newsroom.post("own", f"{FIRST} {toll.format(11)}", source="Wire")).outcome
    last = (await newsroom.post("last", f"{FIRST} {toll.format(11)}", source="Ledger")).outcome

    assert (other.updated_figures, other.keep) == (True, False)
    assert own.match is not None and own.match.rule == "exact"
    assert (own.updated_figures, own.keep) == (True, True)
    assert (last.updated_figures, last.keep) == (False, False)


async def test_an_outlet_updates_its_copy_of_another_one() -> None:
    """Its first version was dropped; the new figures are in no version that readers have."""
    newsroom = core(MemoryStore())
    toll = "The county counts {} flooded houses."
    await newsroom.post("wire", f"{FIRST} {toll.format(3)}", source="Wire")
    copy = await newsroom.post("copy", f"{edited(FIRST, 2)} {toll.format(3)}", source="Ledger")
    update = (await newsroom.post("update", f"{FIRST} {toll.format(11)}", source="Ledger")).outcome

    assert not copy.outcome.keep

    assert (update.verdict, update.updated_figures, update.keep) == ("duplicate", True, True)
