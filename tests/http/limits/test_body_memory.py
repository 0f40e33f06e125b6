"""Large bodies share a room while they arrive; small ones need none."""

import asyncio
import json
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.app_keys import BODY_MEMORY_BUDGET
from aggregator.http.limits.body_memory import EXEMPT_BYTES, BodyMemoryBudget
from aggregator.http.limits.load_shedding import Overloaded
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving

LARGE = json.dumps({"text": "x" * 3 * EXEMPT_BYTES}).encode()


@given(
    bodies=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.lists(st.integers(0, 40 * EXEMPT_BYTES), min_size=1, max_size=4)
        ),
        max_size=8,
    )
)
def test_what_is_held_never_exceeds_the_room_nor_a_caller_its_half(
    bodies: list[tuple[str, list[int]]],
) -> None:
    """Whatever grows in whatever order; small bodies are never refused, and all of it is given back."""
    room = BodyMemoryBudget(60 * EXEMPT_BYTES)
    with ExitStack() as held:
        for caller, sizes in bodies:
            grew = held.enter_context(room.reserve(caller))
            for size in sorted(sizes):
                try:
                    grew(size)
                except Overloaded:
                    assert size > EXEMPT_BYTES
                    break
            assert room.used_bytes <= 60 * EXEMPT_BYTES
            assert max(room._bytes_per_caller.values(), default=0) <= 30 * EXEMPT_BYTES
    assert (room.used_bytes, room._bytes_per_caller) == (0, {})


async def test_large_bodies_that_dawdle_keep_no_small_one_out() -> None:
    """Two that stop on the way fill the half of their caller: a third is told to come again, articles go on."""
    async with serving(FakeService(Settings(store_url="memory"))) as client:
        client.app[BODY_MEMORY_BUDGET]._size_bytes = 10 * EXEMPT_BYTES
        room = client.app[BODY_MEMORY_BUDGET]
        writers = []
        for _ in range(2):
            _, writer = await asyncio.open_connection(client.host, client.port)
            writer.write(
                b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(LARGE)
                + LARGE[:-1]
            )
            writers.append(writer)
        async with asyncio.timeout(30):
            while room.used_bytes < 2 * (len(LARGE) - 1 - EXEMPT_BYTES):  # noqa: ASYNC110 (it tells nobody)
                await asyncio.sleep(0.01)
        refused = await client.post("/v1/articles", data=LARGE)
        small = await client.post("/v1/articles", json={"text": "words"})
        told = await refused.json(content_type=None)
        for writer in writers:
            writer.close()
        async with asyncio.timeout(30):
            while room.used_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        again = await client.post("/v1/articles", data=LARGE)

    assert (refused.status, told["code"], small.status, again.status) == (503, "overloaded", 201, 201)
    assert "large bodies" in told["detail"]


async def test_a_body_that_fails_gives_its_room_back() -> None:
    """Too large, damaged, or no article."""
    async with serving(FakeService(Settings(store_url="memory", max_body_bytes=2 * EXEMPT_BYTES))) as client:
        statuses = [(await client.post("/v1/articles", data=LARGE[:size])).status for size in (-1, 100_000)]
        chunked = await client.post("/v1/articles", data=pieces())

        assert (statuses, chunked.status) == ([413, 400], 413)
        assert client.app[BODY_MEMORY_BUDGET].used_bytes == 0


async def pieces():
    """A body without a length."""
    for _ in range(4):
        yield LARGE[:EXEMPT_BYTES]


def test_no_room_is_said_in_one_sentence() -> None:
    """What to do stands in it."""
    with BodyMemoryBudget(0).reserve("") as grew, pytest.raises(Overloaded, match="send this one again"):
        grew(EXEMPT_BYTES + 1)
