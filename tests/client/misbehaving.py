"""Servers on loopback that fail in one way, for tests of the clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.contract.problems import PROBLEM_TITLES

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, **options: Any) -> AsyncIterator[str]:
    """URL of a server that answers every request by ``handler``; ``options``: of TestServer."""
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app, **options) as server:
        yield str(server.make_url("")).rstrip("/")


def problem(status: int, code: str, retry_after_s: int | None = None) -> Handler:
    """Answers every request with a problem."""

    async def answer(request: web.Request) -> web.Response:
        body = {
            "type": f"/docs#error-{code}",
            "title": PROBLEM_TITLES[code],
            "status": status,
            "detail": f"The reason is {code}.",
            "code": code,
        }
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        return web.json_response(body, status=status, headers=headers)

    return answer


def page(status: int) -> Handler:
    """Answers every request with an HTML page, like a proxy or another server."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<h1>Welcome</h1>", content_type="text/html", status=status)

    return answer


async def hang(request: web.Request) -> web.Response:
    """Answers no request."""
    await asyncio.Event().wait()
    raise AssertionError


async def disconnect(request: web.Request) -> web.Response:
    """Closes the connection of each request."""
    assert request.transport is not None
    request.transport.close()
    raise web.HTTPBadGateway
