"""Audit of a source and its removal, on every kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from aggregator.app import Service, open_service
from aggregator.domain import Answer, Article
from aggregator.errors import InvalidInput
from aggregator.provenance.audit import SourceAudit, audit
from aggregator.settings import Settings
from aggregator.store.base import Store
from tests.support.factories import Core, core, edited, story
from tests.support.fake_service import serving

pytestmark = pytest.mark.integration


async def no_events(numbers: Sequence[int]) -> dict[int, str]:
    """No article is in an event."""
    return {}


@pytest.fixture
async def newsroom(store: Store) -> Core:
    """Two texts that a dishonest outlet posted before others, and one that it copied."""
    room = core(store)
    await room.post("d1", story(1), source="Dishonest Daily", url="https://daily.example/1")
    await room.post("g1", edited(story(1), 2), source="Gazette", url="https://gazette.example/1")
    await room.post("h1", edited(story(1), 3), source="Herald", title="Herald's")
    await room.post("d2", story(2), source=" DISHONEST  daily")
    await room.post("g3", story(3), source="Gazette")
    await room.post("d3", story(3), url="https://daily.example/3")
    return room


async def audited(room: Core, source: str, *, untrusted: bool | None = None) -> SourceAudit:
    """What a source caused, and its removal."""
    return await audit(room.index, source, no_events, room.ingest.delete, untrusted=untrusted)


async def verdict(room: Core, id_: str) -> str:
    """The verdict that is stored."""
    return (await room.index.articles.get(id_)).outcome.verdict


async def test_what_a_source_caused_is_listed(newsroom: Core) -> None:
    """Its articles by name, in any spelling, or by site; copies by others name their original."""
    found = await audited(newsroom, "dishonest daily")

    assert found.articles == ("d1", "d2")
    assert [(copy.id, copy.source) for copy in found.copies] == [("g1", "Gazette"), ("h1", "Herald")]
    assert (await audited(newsroom, "daily.example")).articles == ("d1", "d3")
    unknown, mistyped = await audited(newsroom, "Harbour Times"), await audited(newsroom, "gazete")
    assert (unknown.articles, unknown.similar) == ((), "")
    assert (mistyped.articles, mistyped.similar) == ((), "Gazette")
    with pytest.raises(InvalidInput):
        await audited(newsroom, "  ")


async def test_an_untrusted_source_is_nobodys_original(newsroom: Core) -> None:
    """What it caused is decided anew; what it posts gets a verdict and is not stored."""
    found = await audited(newsroom, "Dishonest Daily", untrusted=True)

    (promoted,) = found.copies
    assert await verdict(newsroom, promoted.id) == "new"
    assert {await verdict(newsroom, id_) for id_ in ("g1", "h1")} == {"new", "duplicate"}
    assert found.articles == ("d1", "d2")
    again = await newsroom.post("d4", story(4), source="dishonest DAILY")
    copied = await newsroom.post("d5", story(3), source="Dishonest Daily")
    assert (again.outcome.verdict, again.stored, again.withheld) == ("new", False, True)
    asked = (
        await newsroom.ingest.submit_many(
            [Article(id="d5", text=story(9), source="Dishonest Daily")], dry_run=True
        )
    )[0]
    assert isinstance(asked, Answer)
    assert [(each.outcome.keep, each.untrusted) for each in (again, asked)] == [(False, True)] * 2
    assert (copied.outcome.verdict, copied.withheld) == ("duplicate", True)
    batch = [
        Article(id="d6", text=story(6), source="Dishonest Daily"),
        Article(id="g6", text=story(6), source="Gazette"),
        Article(id="g4", text=story(4), source="Gazette"),
    ]
    answers = [a for a in await newsroom.ingest.submit_many(batch) if isinstance(a, Answer)]
    assert [(a.outcome.verdict, a.stored) for a in answers] == [("new", False), ("new", True), ("new", True)]
    assert (await audited(newsroom, "Dishonest Daily")).articles == ()

    await audited(newsroom, "Dishonest Daily", untrusted=False)
    assert (await newsroom.post("d7", story(7), source="Dishonest Daily")).stored


async def test_other_processes_know_it_with_their_next_look_up(store: Store, newsroom: Core) -> None:
    """Also updates of an id that it posted before are not stored."""
    other = core(store)
    await newsroom.index.untrusted.edit(lambda listed: listed | {"dishonest daily"})

    assert (await other.post("d1", story(8), source="Dishonest Daily")).withheld
    assert (await other.index.articles.get("d1")).record.number == (
        await newsroom.index.articles.get("d1")
    ).record.number
    assert (await other.post("g8", story(8), source="Gazette")).outcome.verdict == "new"


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A whole service, without keys."""
    async with open_service(Settings(store_url="memory")) as opened:
        yield opened


async def test_events_end_and_forget_it(service: Service) -> None:
    """A false alarm of a source under many headlines ends; what it wrote is in no event afterwards."""
    starts = (
        "Harbour bridge collapses in Estmark",
        "Estmark harbour bridge collapse",
        "Bridge of Estmark falls",
    )
    async with serving(service) as client:
        for number in range(24):
            await client.post(
                "/v1/articles",
                json={
                    "id": f"f{number}",
                    "source": "Fabricator" if number % 2 else f"Outlet {number}",
                    "title": f"{starts[number % 3]}, {story(number, 3)}",
                },
            )
        await service.background.scheduler.detector.run_once()
        listed = (await (await client.get("/v1/events")).json())["events"]
        answer = await client.put("/v1/sources/Fabricator", json={"untrusted": True})
        body = await answer.json()
        await service.background.scheduler.detector.run_once()
        after = (await (await client.get("/v1/events")).json())["events"]

    assert (answer.status, body["articles"]) == (200, 12)
    (before,), (left,) = listed, after
    assert before["size"] - left["size"] == body["events"][before["id"]] >= 8
