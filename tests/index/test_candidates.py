"""Related lookup: what is found for a subject, and which of it is still live when it is loaded."""

from dataclasses import replace

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Analysis, Article
from aggregator.store.base import Store
from tests.index.helpers import seal
from tests.support.factories import core, edited, story

ANALYZER = Analyzer({"xx": HashedModel()})


def analysis(text: str) -> Analysis:
    """As the service analyzes a posted article."""
    return ANALYZER.analyze(Article(id="", text=text, lang="en"))


async def test_near_articles_of_all_segments_are_candidates(store: Store) -> None:
    """Those near by bits are first, by distance; articles that only share terms follow."""
    newsroom = core(store)
    await newsroom.post("same", story(1))
    await seal(newsroom)
    await newsroom.post("near", edited(story(1), 5))
    await newsroom.post("other", story(2))
    related = newsroom.index.related

    found = await related.find(analysis(story(1)), "subject")
    candidates = await related.load_candidates(found)

    assert [candidate.record.id for candidate in candidates][:2] == ["same", "near"]
    assert candidates[0].evidence.distance == 0 < candidates[1].evidence.distance
    assert found.own_binding is None


async def test_the_binding_of_a_stored_subject_is_returned(store: Store) -> None:
    """Its newest version."""
    newsroom = core(store)
    await newsroom.post("subject", story(1))
    await newsroom.post("subject", story(3))

    found = await newsroom.index.related.find(analysis(story(3)), "subject")

    assert found.own_binding == (await newsroom.index.bindings.find("subject")).binding


async def test_articles_deleted_since_they_were_found_are_not_loaded(store: Store) -> None:
    """Numbers given in addition are loaded like those that were found."""
    newsroom = core(store)
    for i, id_ in enumerate(("near", "extra", "deleted")):
        await newsroom.post(id_, story(i))
    (space,) = newsroom.index.spaces
    related = newsroom.index.related
    extra = await related.article_numbers_of(space, ["extra", "unknown", "deleted"])
    found = await related.find(analysis(story(0)), "subject")
    await newsroom.ingest.delete("deleted")

    both = await related.load_candidates(found, extra)
    only_extra = await related.load_candidates(replace(found, numbers=()), extra)

    assert len(extra) == 2
    assert {candidate.record.id for candidate in both} == {"near", "extra"}
    assert [candidate.record.id for candidate in only_extra] == ["extra"]
