"""Routes of a user's read mark: which events the user has seen."""

from __future__ import annotations

import msgspec
from aiohttp import web

from aggregator.contract.decoding import to_unix_ms
from aggregator.contract.encoding import to_datetime
from aggregator.contract.requests import NoQuery, ReadMarkIn
from aggregator.contract.responses import ReadMarkOut
from aggregator.errors import NotFound
from aggregator.events.read_marks import ReadMark
from aggregator.http import body as bodies
from aggregator.http import json_response
from aggregator.http.app_keys import SERVICE, caller_id

_decode_read_mark_in = msgspec.json.Decoder(ReadMarkIn).decode


async def get(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The read mark of the caller's key."""
    return _response(await request.app[SERVICE].read_marks.get(_user(request)) or ReadMark())


async def post(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """Add to the read mark of the caller's key; a time in the future counts as now."""
    service = request.app[SERVICE]
    user = _user(request)
    body = await bodies.read_struct(request, _decode_read_mark_in)
    looked_ms = min(to_unix_ms(body.looked_at, "looked_at") or 0, service.clock())
    return _response(await service.read_marks.advance(user, looked_ms, body.seen))


def _user(request: web.Request) -> str:
    """Id of the caller's key. Raises NotFound where no key is required."""
    user = caller_id(request)
    if not user:
        raise NotFound(
            "There are no users here, since no access key is required. Keep the read mark in the client."
        )
    return user


def _response(mark: ReadMark) -> web.StreamResponse:
    looked_at = to_datetime(mark.looked_ms) if mark.looked_ms else None
    return json_response.struct_response(ReadMarkOut(looked_at, list(mark.seen)))
