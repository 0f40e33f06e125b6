"""Spans and the id of the current request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from aggregator import tracing
from aggregator.app import open_service
from aggregator.settings import Settings
from aggregator.tracing import CURRENT_REQUEST_ID
from tests.support.fake_service import serving

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="needs opentelemetry-sdk (scripts/setup test)")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TEXT = "The ferry between Brackwater and Estmark runs again from Monday, every hour until ten at night."


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The exporter of a tracer that records all spans."""
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, exporter = sdk.TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


@pytest.mark.integration
async def test_a_posted_article_has_four_spans_in_the_trace_of_its_caller(spans: Any) -> None:
    """Request, analysis, look-up and commit; without the article's text or id."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        response = await client.post(
            "/v1/articles", json={"id": "secret-id", "text": TEXT}, headers={"traceparent": TRACEPARENT}
        )
    found = {span.name: span for span in spans.get_finished_spans()}
    request = found["POST /v1/articles"]

    assert set(found) == {"POST /v1/articles", "analyze", "look up", "commit"}
    assert {f"{span.context.trace_id:032x}" for span in found.values()} == {TRACEPARENT.split("-")[1]}
    assert request.attributes["http.response.status_code"] == 201
    assert request.attributes["aggregator.request_id"] == response.headers["X-Request-Id"]
    assert all(
        span.parent.span_id == request.context.span_id for span in found.values() if span is not request
    )
    assert "secret-id" not in " ".join(span.to_json() for span in found.values())


@pytest.mark.integration
async def test_a_batch_is_linked_to_the_requests_of_all_its_articles(spans: Any) -> None:
    """Articles that arrive together share look-ups and commits."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        await asyncio.gather(
            *(client.post("/v1/articles", json={"id": f"a{i}", "text": f"{TEXT} {i}"}) for i in range(8))
        )
    finished = spans.get_finished_spans()
    requests = {span.context.span_id for span in finished if span.name == "POST /v1/articles"}
    commits = [span for span in finished if span.name == "commit"]
    origins = [{span.parent.span_id, *(link.context.span_id for link in span.links)} for span in commits]

    assert len(requests) == 8
    assert set().union(*origins) == requests
    assert [len(ids) for ids in origins] == [span.attributes["aggregator.requests"] for span in commits]


@pytest.mark.integration
async def test_an_unknown_path_is_no_name_of_a_span(spans: Any) -> None:
    """Names come from the route table, so callers cannot make new ones."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        await client.get("/no/such/path")

    assert [span.name for span in spans.get_finished_spans()] == ["GET unmatched"]


def test_a_failed_commit_is_recorded(spans: Any) -> None:
    """The span ends, with the exception, which is raised."""
    with pytest.raises(OSError), tracing.span("commit", origins=[tracing.current()]):
        raise OSError("the store is unavailable")
    (span,) = spans.get_finished_spans()

    assert [event.name for event in span.events] == ["exception"]


def test_without_the_api_a_span_is_a_shared_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """No allocation, no clock, no context."""
    monkeypatch.setattr(tracing, "_tracer", None)
    made = [tracing.span("a"), tracing.span("GET /", headers={}), tracing.span("b", origins=[None])]

    assert len(set(map(id, made))) == 1
    with made[0] as span:
        assert span is None


def test_outside_a_request_there_is_no_id() -> None:
    """Log records of the background services have an empty one."""
    assert CURRENT_REQUEST_ID.get() == ""


async def test_concurrent_requests_do_not_see_each_other() -> None:
    """Each task keeps its own id across a switch, and tasks that it starts inherit the id."""
    both_set = asyncio.Barrier(2)

    async def read() -> str:
        return CURRENT_REQUEST_ID.get()

    async def handle(request_id: str) -> tuple[str, str]:
        CURRENT_REQUEST_ID.set(request_id)
        await both_set.wait()
        return CURRENT_REQUEST_ID.get(), await asyncio.create_task(read())

    handled = await asyncio.gather(
        asyncio.create_task(handle("crawler-1")), asyncio.create_task(handle("crawler-2"))
    )

    assert list(handled) == [("crawler-1", "crawler-1"), ("crawler-2", "crawler-2")]
    assert CURRENT_REQUEST_ID.get() == ""
