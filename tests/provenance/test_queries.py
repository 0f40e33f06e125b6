"""Provenance of stored articles and of events, over the memory store."""

from __future__ import annotations

import pytest

from aggregator.errors import NotFound
from aggregator.provenance import queries
from aggregator.provenance.queries import ProvenanceQueries
from aggregator.store.memory import MemoryStore
from tests.support.factories import START_MS, Core, core, edited, story

TEXT = story(1, 20)
MINUTE_MS = 60_000


def at(minutes: float) -> int:
    """A publication time before the arrival of all articles."""
    return START_MS - 100 * MINUTE_MS + round(minutes * MINUTE_MS)


@pytest.fixture
def built() -> Core:
    """A core that stores texts."""
    return core(MemoryStore())


async def test_the_first_publisher_of_a_text_may_arrive_last(built: Core) -> None:
    """The group's canonical article is the one that arrived first; the first publisher is another one."""
    await built.post("late", edited(TEXT, 1), source="Late", published_at_ms=at(60))
    await built.post("later", edited(TEXT, 1), source="Later", published_at_ms=at(90))
    await built.post("first", TEXT, source="First", published_at_ms=at(0))
    found = await ProvenanceQueries(built.index).of_article("late")

    assert [step.record.id for step in found.steps] == ["first", "late", "later"]
    assert [step.parent for step in found.steps] == [None, 0, 1]
    assert found.outlets == 3 and not found.is_first_certain and not found.truncated
    assert found.steps[0].changes is None
    assert found.steps[1].changes is not None and found.steps[1].changes.texts is not None
    assert found.steps[2].changes is not None and found.steps[2].changes.same_text


async def test_without_stored_texts_changes_are_estimates() -> None:
    """The default: texts are not stored."""
    built = core(MemoryStore(), store_texts=False)
    await built.post("a", TEXT, source="A", published_at_ms=at(0))
    await built.post("b", edited(TEXT, 1), source="B", published_at_ms=at(1))
    changes = (await ProvenanceQueries(built.index).of_article("b")).steps[1].changes

    assert changes is not None and changes.texts is None
    assert changes.kept > 0.8


async def test_a_large_group_is_cut_and_still_contains_the_article(
    built: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first MAX_COPIES by arrival, and the one that was asked for."""
    monkeypatch.setattr(queries, "MAX_COPIES", 3)
    for n in range(8):
        await built.post(f"a{n}", TEXT, source=f"S{n}", published_at_ms=at(n))
    found = await ProvenanceQueries(built.index).of_article("a7")

    assert found.truncated
    assert [step.record.id for step in found.steps] == ["a0", "a1", "a2", "a7"]


async def test_an_unknown_article(built: Core) -> None:
    """404 as for every route of an article."""
    with pytest.raises(NotFound):
        await ProvenanceQueries(built.index).of_article("none")


async def test_an_event_by_outlet(built: Core) -> None:
    """Each outlet once, with its lag and whether its first text was its own."""
    own = story(2, 20)
    await built.post("b1", edited(TEXT, 1), source="B", published_at_ms=at(30))
    await built.post("a1", TEXT, source="A", published_at_ms=at(0))
    await built.post("c1", own, source="C", published_at_ms=at(40))
    await built.post("c2", TEXT, source="C", published_at_ms=at(50))
    await built.post("d1", TEXT, source="D", published_at_ms=at(0))
    times = {"b1": at(30), "a1": at(0), "c1": at(40), "c2": at(50), "d1": at(0), "deleted": at(1)}
    found = await ProvenanceQueries(built.index).of_event(times, "a1")

    assert found.first is not None and found.first.source == "A"
    assert [(e.publication.source, e.kind, e.lag_ms // MINUTE_MS, e.articles) for e in found.outlets] == [
        ("A", "first", 0, 1),
        ("D", "same time", 0, 1),
        ("B", "copy", 30, 1),
        ("C", "own", 40, 2),
    ]
    assert [e.original.source if e.original else None for e in found.outlets] == [None, "A", "A", None]
    assert [text.outlets for text in found.texts] == [4]
    assert not found.texts[0].is_first_certain
    assert found.articles == 5 and not found.truncated


async def test_a_text_repeats_only_what_has_half_of_it(built: Core) -> None:
    """A preview with two fifths of the dispatch was sent in later: the copies are those of the dispatch."""
    preview = f"{' '.join(TEXT.split()[:80])} {story(5, 16)}"
    for n, (id_, text) in enumerate((("wire", TEXT), ("copy", edited(TEXT, 1)), ("preview", preview))):
        await built.post(id_, text, title="Ferry runs aground", source=id_, published_at_ms=at(10 * n))
    queries, group = ProvenanceQueries(built.index), built.index.articles.group_members
    assert len(await group("wire", 9)) == 3  # one headline and a shared opening make it one
    found = await queries.of_event({"wire": at(0), "copy": at(10), "preview": at(-400)}, "preview")

    originals = {e.publication.source: e.original and e.original.source for e in found.outlets}
    assert originals == {"preview": None, "wire": None, "copy": "wire"}


async def test_what_is_earlier_than_the_first_report_is_doubtful(built: Core) -> None:
    """A notice that shares one name came before; without a first report nobody is said to be first."""
    await built.post("n1", story(7, 20), source="Notices", published_at_ms=at(0))
    await built.post("a1", TEXT, source="A", published_at_ms=at(30))
    queries = ProvenanceQueries(built.index)
    times = {"n1": at(0), "a1": at(30)}

    found = await queries.of_event(times, "a1", {"n1"})
    assert [(e.publication.source, e.kind, e.lag_ms // MINUTE_MS) for e in found.outlets] == [
        ("A", "first", 0),
        ("Notices", "doubtful", -30),
    ]
    unsure = await queries.of_event(times)
    assert unsure.first is None
    assert [(e.publication.source, e.kind) for e in unsure.outlets] == [("Notices", "own"), ("A", "own")]


async def test_of_headlines_alone_nothing_is_said_of_texts(built: Core) -> None:
    """Two outlets with the same headline, and one with another; nobody has seen a text."""
    for id_, source, title in [
        ("a1", "A", "Night ferry to Estmark runs aground near Pellworm pier"),
        ("b1", "B", "Night ferry to Estmark runs aground near Pellworm pier"),
        ("c1", "C", "Captain of the stranded Estmark ferry questioned by the coast guard"),
    ]:
        await built.post(id_, "", title=title, source=source, published_at_ms=at(ord(source)))
    times = {f"{name}1": at(ord(name.upper())) for name in "abc"}
    found = await ProvenanceQueries(built.index).of_event(times, "a1")

    kinds = [(e.kind, e.original.source if e.original else None) for e in found.outlets]
    assert kinds == [("first", None), ("headline", "A"), ("headline", None)]


async def test_an_event_counts_an_article_at_its_own_time(built: Core) -> None:
    """A date that it did not believe is a claim."""
    await built.post("a1", TEXT, source="A", published_at_ms=at(0))
    await built.post("b1", story(9), source="B")
    found = await ProvenanceQueries(built.index).of_event({"a1": at(99), "b1": at(98)})

    shown = [(e.publication.source, e.publication.at_ms, e.publication.basis) for e in found.outlets]
    assert shown == [("B", at(98), "arrived"), ("A", at(99), "claimed")]


async def test_an_event_without_stored_articles(built: Core) -> None:
    """All were deleted or have expired."""
    found = await ProvenanceQueries(built.index).of_event({"gone": 0})

    assert (found.first, found.outlets, found.texts, found.articles) == (None, (), (), 0)


COPIES = {  # by id: outlet, minute of publication, text
    "short": ("B", 0, story(2, 20)),
    "report": ("A", 10, TEXT),
    "copy": ("B", 20, TEXT),
    "again": ("B", 30, TEXT),
    "stranger": ("C", 40, TEXT),
}


@pytest.mark.parametrize(
    "arrivals",
    [
        ("short", "report", "copy", "again", "stranger"),
        ("report", "short", "copy", "again", "stranger"),
        ("report", "short", "again", "copy", "stranger"),
        ("report", "short", "stranger", "again", "copy"),
    ],
)
async def test_a_copy_that_is_not_counted_is_among_those_of_its_text(
    built: Core, arrivals: tuple[str, ...]
) -> None:
    """The outlet has another article in the event; only what it publishes again itself is a repeat."""
    for id_ in arrivals:
        source, minute, text = COPIES[id_]
        await built.post(id_, text, source=source, published_at_ms=at(minute))
    queries = ProvenanceQueries(built.index)
    times = {"short": at(0), "report": at(10)}
    found = await queries.of_event(times, "short", (), ())

    assert [[step.record.id for step in text.steps] for text in found.texts] == [["report", "copy"]]
    assert found.texts[0].steps[1].parent == 0
    assert [record.id for record in found.repeats] == ["again"]
    assert (found.articles, [entry.kind for entry in found.outlets]) == (2, ["first", "own"])
    without = await queries.of_event(times, "short", (), {"copy", "again"})  # editors removed them
    assert (without.texts, without.repeats) == ((), ())


async def test_a_copy_that_arrived_before_its_original_is_counted(built: Core) -> None:
    """Then the original is the article that came later, and nothing is left out."""
    for id_ in ("short", "copy", "report"):
        source, minute, text = COPIES[id_]
        await built.post(id_, text, source=source, published_at_ms=at(minute))
    times = {"short": at(0), "copy": at(20), "report": at(10)}
    found = await ProvenanceQueries(built.index).of_event(times, "short", (), ())

    assert [[step.record.id for step in text.steps] for text in found.texts] == [["report", "copy"]]
    assert found.repeats == ()
