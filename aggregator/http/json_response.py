"""JSON responses, conditional responses (RFC 9110, section 13) and the Server-Timing header."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
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


def conditional_response(
    request: web.Request,
    body: bytes,
    media_type: str,
    *,
    charset: str | None = "utf-8",
    headers: Mapping[str, str] | None = None,
    modified_at: datetime | None = None,
) -> web.Response:
    """``body`` with an ETag of its content, or 304 without a body if the client has it already.

    headers      added to, or replacing, "Cache-Control: private, no-cache"
    modified_at  UTC, whole seconds; also sent as Last-Modified and compared where the client sends no ETag
    """
    tag = hashlib.sha256(body).hexdigest()[:32]
    sent = {"Cache-Control": "private, no-cache", **(headers or {}), "ETag": f'"{tag}"'}
    if modified_at is not None:
        sent["Last-Modified"] = format_datetime(modified_at, usegmt=True)
    if _is_not_modified(request, tag, modified_at):
        return web.Response(status=304, headers=sent)
    return web.Response(body=body, content_type=media_type, charset=charset, headers=sent)


def _is_not_modified(request: web.Request, tag: str, modified_at: datetime | None) -> bool:
    """RFC 9110, section 13.2.2: If-Modified-Since counts only without If-None-Match."""
    if request.if_none_match is not None:
        return any(known.value in (tag, "*") for known in request.if_none_match)
    since = request.if_modified_since
    return since is not None and modified_at is not None and modified_at <= since
