"""Per-caller limits: slots in total, half of them per key or address, errors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from aggregator.errors import AggregatorError
from aggregator.http.limits import per_caller
from aggregator.http.limits.per_caller import MAX_OPEN_BATCHES, PerCallerLimit
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


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
    limit = per_caller.batch_limit()
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
    limit = PerCallerLimit(4, lambda own: AggregatorError(f"{own} are yours"))
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
