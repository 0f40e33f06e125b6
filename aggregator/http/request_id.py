"""Which request is served just now? Known to whatever it calls, so that log records can name it."""

from __future__ import annotations

from contextvars import ContextVar

CURRENT_REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
