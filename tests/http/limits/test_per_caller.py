"""Long requests: so many are open at once, half of them one caller's; the rest is told to come again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from aggregator.errors import AggregatorError
from aggregator.http.limits import per_caller
from aggregator.http.limits.per_caller import MAX_OPEN_BATCHES, PerCallerLimit
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


async def test_no_more_batches_are_open_than_there_are_places() -> None:
    """The next is refused before anything is read of it, and taken in when those have ended."""
    end = asyncio.Event()

    async def lines() -> AsyncIterator[bytes]:
        yield b'{"text": "words"}\n'
        await end.wait()

    async with serving(FakeService(Settings())) as client:
        opened = [await client.post("/v1/articles/batch", data=lines()) for _ in range(MAX_OPEN_BATCHES)]
        refused = await client.post("/v1/articles/batch", data=b'{"text": "words"}')
        told = await refused.json(content_type=None)
        end.set()
        answered = [len((await one.read()).splitlines()) for one in opened]
        again = await client.post("/v1/articles/batch", data=b'{"text": "words"}')

        assert (refused.status, told["code"], refused.headers["Retry-After"]) == (503, "overloaded", "1")
        assert told["detail"].startswith("64 batches are open here already")
        assert answered == [1] * MAX_OPEN_BATCHES
        assert again.status == 200


def test_half_is_left_to_others() -> None:
    """And of all callers together there are no more than all; each gives its place back."""
    kind = per_caller.batch_limit()
    for _ in range(2):
        with ExitStack() as opened:
            for caller in ("a", "b"):
                for _ in range(MAX_OPEN_BATCHES // 2):
                    opened.enter_context(kind.slot(caller))
                with pytest.raises(AggregatorError, match="batches"):
                    opened.enter_context(kind.slot(caller))
            with pytest.raises(AggregatorError, match="64 batches are open"):
                opened.enter_context(kind.slot("c"))


def test_who_has_half_is_told_so() -> None:
    """In so many words; where nobody has a key one caller gets all."""
    kind = PerCallerLimit(4, lambda own: AggregatorError(f"{own} are yours"))
    with kind.slot("a"), kind.slot("a"):
        with pytest.raises(AggregatorError, match="2 are yours"), kind.slot("a"):
            pass
        with kind.slot(""), kind.slot(""):
            pass
    with kind.slot(""), kind.slot(""), kind.slot(""), kind.slot(""):
        pass
