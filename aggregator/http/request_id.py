"""Context variable with the id of the current request, for log records."""

from __future__ import annotations

from contextvars import ContextVar

CURRENT_REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
