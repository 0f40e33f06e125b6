"""Conditional responses (RFC 9110, section 13): 304 while the client's copy is current."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime

from aiohttp import web


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
