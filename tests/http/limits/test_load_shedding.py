"""Back-pressure: who is refused at once, and who keeps a place."""

import asyncio
from contextlib import ExitStack

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import Overloaded
from aggregator.http.limits.load_shedding import GUARANTEED_PER_CALLER, LoadShedder
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


class _Held(FakeService):
    """Articles wait at the decision until they are let go."""

    def __init__(self) -> None:
        super().__init__(Settings(max_inflight_articles=2))
        self.waiting = 0
        self.arrived = asyncio.Condition()
        self.go = asyncio.Event()

    async def submit(self, article: Article, *, dry_run: bool = False) -> Answer:
        async with self.arrived:
            self.waiting += 1
            self.arrived.notify_all()
        await self.go.wait()
        return await super().submit(article, dry_run=dry_run)


async def test_beyond_the_limit_a_request_is_refused_at_once_and_later_taken_in() -> None:
    """Refused with a status that says so and when to come again; those on their way are answered all the same."""
    service = _Held()
    async with serving(service) as client:
        held = [
            asyncio.create_task(client.post("/v1/articles", json={"text": f"words {i}"})) for i in range(2)
        ]
        async with service.arrived:
            await service.arrived.wait_for(lambda: service.waiting == 2)

        refused = await client.post("/v1/articles", json={"text": "one more"})
        told = await refused.json(content_type=None)
        service.go.set()
        answered = [(await one).status for one in held]
        again = await client.post("/v1/articles", json={"text": "one more"})

        assert (refused.status, told["code"], refused.headers["Retry-After"]) == (503, "overloaded", "1")
        assert "max_inflight_articles" in told["detail"]
        assert answered == [201, 201]
        assert again.status == 201


async def test_what_fails_gives_its_place_back() -> None:
    """Unusable articles as well."""
    async with serving(FakeService(Settings(max_inflight_articles=1))) as client:
        statuses = [(await client.post("/v1/articles", data=b"{")).status for _ in range(3)]

        assert statuses == [400, 400, 400]
        assert (await client.post("/v1/articles", json={"text": "words"})).status == 201


def test_places_are_counted() -> None:
    """As many as there are, no more."""
    admission = LoadShedder(1)
    with admission.slot(), pytest.raises(Overloaded, match="1 articles"), admission.slot():
        pass

    with admission.slot():
        assert admission.in_flight == 1


def test_slow_answers_leave_fewer_places() -> None:
    """No more are taken in than are answered within a second; a fast pace brings the places back."""
    now_s = 0.0
    admission = LoadShedder(100, lambda: now_s)

    def answer(pace_s: float, times: int) -> None:
        nonlocal now_s
        for _ in range(times):
            with admission.slot():
                now_s += pace_s

    answer(0.05, 10)
    assert admission.limit == 20
    answer(2.0, 200)
    assert admission.limit == GUARANTEED_PER_CALLER
    now_s += 1000  # nothing to do: that is not slowness
    answer(0.001, 800)
    assert admission.limit == 100


def test_the_places_of_one_caller_keep_no_other_out() -> None:
    """Whose answers are slow fills what the pace allows; another caller still has a few, while there are any at all."""
    now_s = 0.0
    admission = LoadShedder(3 * GUARANTEED_PER_CALLER, lambda: now_s)
    with admission.slot("foul"):
        now_s += 60.0
    assert admission.limit == GUARANTEED_PER_CALLER

    with ExitStack() as held:
        for _ in range(GUARANTEED_PER_CALLER):
            held.enter_context(admission.slot("foul"))
        with pytest.raises(Overloaded):
            held.enter_context(admission.slot("foul"))
        for caller in ("fair", "other"):
            for _ in range(GUARANTEED_PER_CALLER):
                held.enter_context(admission.slot(caller))
        with pytest.raises(Overloaded):
            held.enter_context(admission.slot("fourth"))
    with ExitStack() as held:
        for _ in range(GUARANTEED_PER_CALLER):
            held.enter_context(admission.slot("foul"))
