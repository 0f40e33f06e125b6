"""The id of the current request, and spans for OpenTelemetry: requests, analysis, look-up and commit.

Only the API is used (extra ``tracing``), so an operator chooses SDK, exporter and sampling. Without the API a
span is a shared object that does nothing; without an SDK the API records nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:
    trace = None  # type: ignore[assignment]

CURRENT_REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")  # for log records
_NOTHING: AbstractContextManager[Any] = contextlib.nullcontext()
# Delegates to the SDK's tracer as soon as there is one.
_tracer = trace.get_tracer("aggregator") if trace is not None else None


def span(name: str) -> AbstractContextManager[Any]:
    """A span inside the current one."""
    return _tracer.start_as_current_span(name) if _tracer is not None else _NOTHING


def request_span(method: str, route: str, headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """The span of a request, as part of the trace that its headers name (W3C ``traceparent``), if any."""
    if _tracer is None:
        return _NOTHING
    return _tracer.start_as_current_span(
        f"{method} {route}",
        context=propagate.extract(headers),
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": method, "http.route": route},
    )


def set_status(status: int, request_id: str) -> None:
    """Add status and id of the request to the current span."""
    if _tracer is not None:
        trace.get_current_span().set_attributes(
            {"http.response.status_code": status, "aggregator.request_id": request_id}
        )


def current() -> Any:
    """The current span, for ``batch_span``; None without the API."""
    return trace.get_current_span() if _tracer is not None else None


def batch_span(name: str, origins: Iterable[Any]) -> AbstractContextManager[Any]:
    """A span of a batch of articles; ``origins``: the span of each article's request, from ``current``.

    It is a child of the first request, linked to the others, and not the current span of what runs inside,
    which may be interleaved with other batches.
    """
    if _tracer is None:
        return _NOTHING
    spans = {origin.get_span_context().span_id: origin for origin in origins if origin is not None}
    first, *others = spans.values() or [trace.INVALID_SPAN]
    return _ending(
        _tracer.start_span(
            name,
            context=trace.set_span_in_context(first),
            links=[trace.Link(origin.get_span_context()) for origin in others],
            attributes={"aggregator.requests": len(spans)},
        )
    )


@contextlib.contextmanager
def _ending(started: Any) -> Iterator[Any]:
    try:
        yield started
    except Exception as error:
        started.record_exception(error)
        raise
    finally:
        started.end()
