"""Memory budget of request bodies: limits, release and error."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import Overloaded
from aggregator.http.app_keys import BODY_MEMORY_BUDGET
from aggregator.http.limits.body_memory import EXEMPT_BYTES, BodyMemoryBudget
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving
from tests.support.hang_limit import HANG_LIMIT_S

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
            assert budget.used_bytes <= 60 * EXEMPT_BYTES
            assert max(map(budget._usage.of, "abc")) <= 30 * EXEMPT_BYTES
    assert (budget.used_bytes, budget._usage._by_caller) == (0, {})


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
            while budget.used_bytes < 2 * (len(LARGE) - 1 - EXEMPT_BYTES):  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        refused = await client.post("/v1/articles", data=LARGE)
        small = await client.post("/v1/articles", json={"text": "words"})
        problem = await refused.json(content_type=None)
        for writer in writers:
            writer.close()
        async with asyncio.timeout(HANG_LIMIT_S):
            while budget.used_bytes:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        again = await client.post("/v1/articles", data=LARGE)

    assert (refused.status, problem["code"], small.status, again.status) == (503, "overloaded", 201, 201)
    assert "large bodies" in problem["detail"]


async def test_a_failed_body_is_released() -> None:
    """Too large or invalid."""
    async with serving(FakeService(Settings(store_url="memory", max_body_bytes=2 * EXEMPT_BYTES))) as client:
        statuses = [(await client.post("/v1/articles", data=LARGE[:size])).status for size in (-1, 100_000)]
        chunked = await client.post("/v1/articles", data=chunked_body())

        assert (statuses, chunked.status) == ([413, 400], 413)
        assert client.app[BODY_MEMORY_BUDGET].used_bytes == 0


async def chunked_body() -> AsyncIterator[bytes]:
    """A body without Content-Length."""
    for _ in range(4):
        yield LARGE[:EXEMPT_BYTES]


def test_the_error_says_what_to_do() -> None:
    """Retry."""
    with BodyMemoryBudget(0).reserve("") as resize, pytest.raises(Overloaded, match="retry in a second"):
        resize(EXEMPT_BYTES + 1)
