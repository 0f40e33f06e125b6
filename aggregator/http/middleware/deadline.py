"""Deadline of a request: from its first byte to its answer, whatever it waits for.

The time of the body, of every queue, of the analysis and of the store counts together, so three time-outs of
the store in a row delay nobody three times. When it has passed, the work is cancelled and the request is
answered 503. An analysis in a worker continues (``analysis/pool/continuation.py``), and a commit that has
begun is not interrupted (``ingest/batcher.py``): the article may be stored although the answer was 503, and
repeating the request returns its verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from aggregator.errors import BodyTimeout, DeadlineExceeded
from aggregator.http.app_keys import SERVICE
from aggregator.http.connections import first_byte_s


@asynccontextmanager
async def enforced(request: web.Request) -> AsyncIterator[None]:
    """Raise DeadlineExceeded, or BodyTimeout if the body is incomplete, when the time has passed."""
    timeout_s = request.app[SERVICE].settings.request_timeout_seconds
    try:
        async with asyncio.timeout_at(first_byte_s(request) + timeout_s) as scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        if not request.content.is_eof():
            raise BodyTimeout(
                f"body: not received within {timeout_s:g} s (setting request_timeout_seconds).", field="body"
            ) from None
        raise DeadlineExceeded(
            f"The request was not finished within {timeout_s:g} s (setting request_timeout_seconds); repeat "
            "it. An article that was stored meanwhile is then answered with its verdict, and one whose "
            "analysis takes longer when it has been analyzed."
        ) from None
