"""Admission control: load shedding, per-caller limits, memory budget of bodies."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Answer, Article
from aggregator.errors import AggregatorError, Overloaded
from aggregator.http.app_keys import BODY_MEMORY_BUDGET
from aggregator.http.limits import (
    EXEMPT_BYTES,
    GUARANTEED_PER_CALLER,
    MAX_OPEN_BATCHES,
    BodyMemoryBudget,
    CallerUsage,
    LoadShedder,
    PerCallerLimit,
    batch_limit,
)
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving
from tests.support.hang_limit import HANG_LIMIT_S


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


@pytest.mark.integration
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


@pytest.mark.integration
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
        assert shedder.usage.total == 1


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


@pytest.mark.integration
async def test_open_batches_are_limited() -> None:
    """An address without a key has half of them. The next one is refused before its body is read."""
    end = asyncio.Event()

    async def lines() -> AsyncIterator[bytes]:
        yield b'{"text": "words"}\n'
        await end.wait()

    async with serving(FakeService(Settings())) as client:
        opened = [await client.post("/v1/articles/batch", data=lines()) for _ in range(MAX_OPEN_BATCHES // 2)]
        refused = await client.post("/v1/articles/batch", data=b'{"text": "words"}')
        problem = await refused.json(content_type=None)
        end.set()
        answered = [len((await response.read()).splitlines()) for response in opened]
        again = await client.post("/v1/articles/batch", data=b'{"text": "words"}')

        assert (refused.status, problem["code"], refused.headers["Retry-After"]) == (503, "overloaded", "1")
        assert problem["detail"].startswith("32 batches of this caller are open here already")
        assert answered == [1] * (MAX_OPEN_BATCHES // 2)
        assert again.status == 200


def test_one_caller_gets_half_of_the_slots() -> None:
    """All callers together get all of them; slots are released."""
    limit = batch_limit()
    for _ in range(2):
        with ExitStack() as opened:
            for caller in ("a", "b"):
                for _ in range(MAX_OPEN_BATCHES // 2):
                    opened.enter_context(limit.slot(caller))
                with pytest.raises(AggregatorError, match="batches"):
                    opened.enter_context(limit.slot(caller))
            with pytest.raises(AggregatorError, match="64 batches are open"):
                opened.enter_context(limit.slot("c"))


def test_the_error_names_the_callers_share() -> None:
    """How many slots it holds."""
    limit = PerCallerLimit(4, AggregatorError, "{own} are yours", "0 are yours")
    with limit.slot("a"), limit.slot("a"):
        with pytest.raises(AggregatorError, match="2 are yours"), limit.slot("a"):
            pass
        with (
            limit.slot("127.0.0.1"),
            limit.slot("127.0.0.1"),
            pytest.raises(AggregatorError, match="0 are yours"),
            limit.slot("b"),
        ):
            pass


CALLERS = st.sampled_from(["", "k1", "k2"])


@given(st.lists(st.tuples(CALLERS, st.integers(min_value=1, max_value=9))))
def test_the_total_is_the_sum_of_all_callers(added: list[tuple[str, int]]) -> None:
    """Additions of one caller do not change another's usage; removing everything leaves no state."""
    usage, expected = CallerUsage(), Counter[str]()
    for caller, amount in added:
        usage.add(caller, amount)
        expected[caller] += amount

    assert usage.total == expected.total()
    assert {caller: usage.of(caller) for caller in ("", "k1", "k2")} == {
        caller: expected[caller] for caller in ("", "k1", "k2")
    }

    for caller, amount in added:
        usage.add(caller, -amount)
    assert usage.total == 0
    assert not usage._by_caller


def test_callers_without_usage_take_no_memory() -> None:
    """Keys are many and short-lived: asking for one, or its last removal, leaves no entry."""
    usage = CallerUsage()
    assert usage.of("k1") == 0
    usage.add("k2", 1)
    usage.add("k2", -1)

    assert len(usage._by_caller) == 0


def test_a_partial_removal_keeps_the_rest() -> None:
    """A body that shrinks gives back part of its bytes."""
    usage = CallerUsage()
    usage.add("k1", 5)
    usage.add("", 2)
    usage.add("k1", -3)

    assert (usage.of("k1"), usage.of(""), usage.total) == (2, 2, 4)


LARGE = json.dumps({"text": "x" * 3 * EXEMPT_BYTES}).encode()


@given(
    bodies=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.lists(st.integers(0, 40 * EXEMPT_BYTES), min_size=1, max_size=4)
        ),
        max_size=8,
    )
)
def test_usage_never_exceeds_the_budget_nor_half_of_it_per_caller(
    bodies: list[tuple[str, list[int]]],
) -> None:
    """For bodies growing in any order; exempt sizes are never rejected, and everything is released."""
    budget = BodyMemoryBudget(60 * EXEMPT_BYTES)
    with ExitStack() as held:
        for caller, sizes in bodies:
            resize = held.enter_context(budget.reserve(caller))
            for size in sorted(sizes):
                try:
                    resize(size)
                except Overloaded:
                    assert size > EXEMPT_BYTES
                    break
            assert budget.usage.total <= 60 * EXEMPT_BYTES
            assert max(map(budget.usage.of, "abc")) <= 30 * EXEMPT_BYTES
    assert (budget.usage.total, budget.usage._by_caller) == (0, {})


@pytest.mark.integration
async def test_slow_large_bodies_do_not_block_small_ones() -> None:
    """Two stalled bodies fill their caller's half: a third one gets 503, small articles are accepted."""
    async with serving(FakeService(Settings(store_url="memory"))) as client:
        client.app[BODY_MEMORY_BUDGET]._size_bytes = 10 * EXEMPT_BYTES
        budget = client.app[BODY_MEMORY_BUDGET]
        writers = []
        for _ in range(2):
            _, writer = await asyncio.open_connection(client.host, client.port)
            writer.write(
                b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(LARGE)
                + LARGE[:-1]
            )
            writers.append(writer)
        async with asyncio.timeout(HANG_LIMIT_S):
            while budget.usage.total < 2 * (len(LARGE) - 1 - EXEMPT_BYTES):  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        refused = await client.post("/v1/articles", data=LARGE)
        small = await client.post("/v1/articles", json={"text": "words"})
        problem = await refused.json(content_type=None)
        for writer in writers:
            writer.close()
        async with asyncio.timeout(HANG_LIMIT_S):
            while budget.usage.total:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        again = await client.post("/v1/articles", data=LARGE)

    assert (refused.status, problem["code"], small.status, again.status) == (503, "overloaded", 201, 201)
    assert "large bodies" in problem["detail"]


@pytest.mark.integration
async def test_a_failed_body_is_released() -> None:
    """Too large or invalid."""
    async with serving(FakeService(Settings(store_url="memory", max_body_bytes=2 * EXEMPT_BYTES))) as client:
        statuses = [(await client.post("/v1/articles", data=LARGE[:size])).status for size in (-1, 100_000)]
        chunked = await client.post("/v1/articles", data=chunked_body())

        assert (statuses, chunked.status) == ([413, 400], 413)
        assert client.app[BODY_MEMORY_BUDGET].usage.total == 0


async def chunked_body() -> AsyncIterator[bytes]:
    """A body without Content-Length."""
    for _ in range(4):
        yield LARGE[:EXEMPT_BYTES]


def test_the_error_says_what_to_do() -> None:
    """Retry."""
    with BodyMemoryBudget(0).reserve("") as resize, pytest.raises(Overloaded, match="retry in a second"):
        resize(EXEMPT_BYTES + 1)
