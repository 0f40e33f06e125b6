"""The request id as a context variable."""

from __future__ import annotations

import asyncio

from aggregator.http.request_id import CURRENT_REQUEST_ID


def test_outside_a_request_there_is_no_id() -> None:
    """Log records of the background services have an empty one."""
    assert CURRENT_REQUEST_ID.get() == ""


async def test_concurrent_requests_do_not_see_each_other() -> None:
    """Each task keeps its own id across a switch, and tasks that it starts inherit the id."""
    both_set = asyncio.Barrier(2)

    async def read() -> str:
        return CURRENT_REQUEST_ID.get()

    async def handle(request_id: str) -> tuple[str, str]:
        CURRENT_REQUEST_ID.set(request_id)
        await both_set.wait()
        return CURRENT_REQUEST_ID.get(), await asyncio.create_task(read())

    handled = await asyncio.gather(
        asyncio.create_task(handle("crawler-1")), asyncio.create_task(handle("crawler-2"))
    )

    assert list(handled) == [("crawler-1", "crawler-1"), ("crawler-2", "crawler-2")]
    assert CURRENT_REQUEST_ID.get() == ""
