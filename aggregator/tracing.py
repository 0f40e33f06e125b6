"""The id of the current request, and spans for OpenTelemetry: requests, analysis, look-up and commit.

Only the API is used (extra ``tracing``), so an operator chooses SDK, exporter and sampling. Without the API a
span is a shared object that does nothing; without an SDK the API records nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
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


# The span of the request that is handled, for ``origins``; None without the API.
current: Callable[[], Any] = trace.get_current_span if trace is not None else type(None)


def span(
    name: str, *, headers: Mapping[str, str] | None = None, origins: Iterable[Any] | None = None
) -> AbstractContextManager[Any]:
    """A span inside the current one; its context gives the span, or None without the API.

    ``headers``: of the request "METHOD ROUTE", which may name its trace (W3C ``traceparent``).
    ``origins``: of a batch of articles, the span of each one's request; the span is then not the current one
    of what runs inside, which may be interleaved with other batches.
    """
    if _tracer is None:
        return _NOTHING
    if origins is not None:
        first, *others = dict.fromkeys(origins)
        return _ending(
            _tracer.start_span(
                name,
                context=trace.set_span_in_context(first),
                links=[trace.Link(origin.get_span_context()) for origin in others],
                attributes={"aggregator.requests": 1 + len(others)},
            )
        )
    if headers is None:
        return _tracer.start_as_current_span(name)
    method, _, route = name.partition(" ")
    return _tracer.start_as_current_span(
        name,
        context=propagate.extract(headers),
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": method, "http.route": route},
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
