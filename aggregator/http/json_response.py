"""JSON responses and the Server-Timing header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from aiohttp import web
from msgspec import Struct

from aggregator.contract.responses import encode

_NON_TOKEN_CHARS = re.compile(r"[^A-Za-z0-9_-]")


def struct_response(
    body: Struct, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A response with a Struct as JSON, ending in a newline for readability in a terminal."""
    return web.Response(
        body=encode(body) + b"\n",
        status=status,
        headers=headers,
        content_type="application/json",
        charset=None,
    )


def created(collection: str, body: Struct, *, is_new: bool) -> web.Response:
    """The resource ``body``, which has an id: 201 with its Location if it is new, 200 if it existed."""
    headers = location(collection, body.id) if is_new else None  # type: ignore[attr-defined]
    return struct_response(body, 201 if is_new else 200, headers)


def location(collection: str, id_: str) -> dict[str, str]:
    """The Location header of a resource that was created: its path below that of its collection."""
    return {"Location": f"{collection}/{quote(id_, safe='')}"}


def server_timing(timings_ms: Mapping[str, float]) -> dict[str, str]:
    """The Server-Timing header for the stages of one article; empty without timings."""
    if not timings_ms:
        return {}
    return {
        "Server-Timing": ", ".join(
            f"{_NON_TOKEN_CHARS.sub('_', k)};dur={v:.2f}" for k, v in timings_ms.items()
        )
    }
