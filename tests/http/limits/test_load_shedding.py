"""Load shedding: adaptive limit, guaranteed slots, errors."""

import asyncio
from contextlib import ExitStack

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import Overloaded
from aggregator.http.limits.load_shedding import GUARANTEED_PER_CALLER, LoadShedder
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


class _BlockedService(FakeService):
    """A service whose articles wait until ``proceed`` is set."""

    def __init__(self) -> None:
        super().__init__(Settings(max_inflight_articles=2))
        self.waiting = 0
        self.arrived = asyncio.Condition()
        self.proceed = asyncio.Event()

    async def submit(
        self, article: Article, *, dry_run: bool = False, sources: tuple[str, ...] = ()
    ) -> Answer:
        async with self.arrived:
            self.waiting += 1
            self.arrived.notify_all()
        await self.proceed.wait()
        return await super().submit(article, dry_run=dry_run)


async def test_requests_above_the_limit_are_refused_immediately() -> None:
    """503 with Retry-After; requests in flight are completed, and later ones admitted."""
    service = _BlockedService()
    async with serving(service) as client:
        blocked = [
            asyncio.create_task(client.post("/v1/articles", json={"text": f"words {i}"})) for i in range(2)
        ]
        async with service.arrived:
            await service.arrived.wait_for(lambda: service.waiting == 2)

        refused = await client.post("/v1/articles", json={"text": "one more"})
        problem = await refused.json(content_type=None)
        service.proceed.set()
        completed = [(await request).status for request in blocked]
        again = await client.post("/v1/articles", json={"text": "one more"})

        assert (refused.status, problem["code"]) == (503, "overloaded")
        assert refused.headers["Retry-After"] in ("1", "2", "3")
        assert "max_inflight_articles" in problem["detail"]
        assert completed == [201, 201]
        assert again.status == 201


async def test_a_failed_request_releases_its_slot() -> None:
    """An invalid article."""
    async with serving(FakeService(Settings(max_inflight_articles=1))) as client:
        statuses = [(await client.post("/v1/articles", data=b"{")).status for _ in range(3)]

        assert statuses == [400, 400, 400]
        assert (await client.post("/v1/articles", json={"text": "words"})).status == 201


def test_slots_are_limited() -> None:
    """At most ``max_slots`` are in use."""
    shedder = LoadShedder(1)
    with shedder.slot(), pytest.raises(Overloaded, match="1 articles"), shedder.slot():
        pass

    with shedder.slot():
        assert shedder.in_flight == 1


def test_the_limit_follows_the_pace() -> None:
    """Slow answers reduce the limit to what completes within 1 s; fast answers restore it."""
    now_s = 0.0
    shedder = LoadShedder(100, lambda: now_s)

    def complete(duration_s: float, times: int) -> None:
        nonlocal now_s
        for _ in range(times):
            with shedder.slot():
                now_s += duration_s

    complete(0.05, 10)
    assert shedder.limit == 20
    complete(2.0, 200)
    assert shedder.limit == GUARANTEED_PER_CALLER
    now_s += 1000  # idle time does not count as slowness
    complete(0.001, 800)
    assert shedder.limit == 75  # the rest is left to callers with few articles


def test_every_caller_has_guaranteed_slots() -> None:
    """A caller with slow articles uses up the limit; other callers still get slots up to ``max_slots``."""
    now_s = 0.0
    shedder = LoadShedder(3 * GUARANTEED_PER_CALLER, lambda: now_s)
    with shedder.slot("slow"):
        now_s += 60.0
    assert shedder.limit == GUARANTEED_PER_CALLER

    with ExitStack() as held:
        for _ in range(GUARANTEED_PER_CALLER):
            held.enter_context(shedder.slot("slow"))
        with pytest.raises(Overloaded):
            held.enter_context(shedder.slot("slow"))
        for caller in ("first", "second"):
            for _ in range(GUARANTEED_PER_CALLER):
                held.enter_context(shedder.slot(caller))
        with pytest.raises(Overloaded):
            held.enter_context(shedder.slot("third"))
    with ExitStack() as held:
        for _ in range(GUARANTEED_PER_CALLER):
            held.enter_context(shedder.slot("slow"))
