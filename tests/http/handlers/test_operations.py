"""Operations routes, and methods of all routes."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aggregator import readiness
from aggregator.errors import StoreUnavailable
from aggregator.readiness import Readiness, ReadinessCheck
from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration


async def test_the_liveness_check_ignores_the_store(client: Client) -> None:
    """200 while the process handles requests."""
    response = await client.get("/healthz?probe=1")

    body = await response.json()
    assert (response.status, body["status"], body["store"]) == (200, "ok", "memory")


async def test_readiness_follows_the_store(client: Client, service: FakeService) -> None:
    """503 with the reason while the store is not ready."""
    ready = await client.get("/readyz")
    service.store.state = replace(service.store.state, ready=False, problem="The store is loading its data.")
    loading = await client.get("/readyz")

    assert (ready.status, (await ready.json())["store"]["kind"]) == (200, "memory")
    assert loading.status == 503
    assert (await loading.json(content_type=None))["detail"] == "The store is loading its data."


async def test_a_store_that_hangs_is_the_reason(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within half of the time for a request; the checks, which may hang as well, are not made."""
    assert Settings().request_timeout_seconds > 2 * readiness.CHECK_TIMEOUT_S
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.01)

    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(service.store, "info", hang)
    service.edge.readiness = Readiness({"clock": hang})
    response = await asyncio.wait_for(client.get("/readyz"), HANG_LIMIT_S)

    assert response.status == 503
    detail = (await response.json(content_type=None))["detail"]
    assert detail == "The store did not answer in time (0.01 s): it hangs or is overloaded."


async def test_readiness_names_every_failing_check(client: Client, service: FakeService) -> None:
    """503 with the sentences of all failing checks."""
    sentences = {"clock": "The clock is wrong; correct it.", "data": None, "log": "The log is damaged."}

    def check(sentence: str | None) -> ReadinessCheck:
        async def result() -> str | None:
            return sentence

        return result

    service.edge.readiness = Readiness({name: check(sentence) for name, sentence in sentences.items()})
    response = await client.get("/readyz")

    assert response.status == 503
    assert (await response.json(content_type=None))["detail"] == (
        "The clock is wrong; correct it. The log is damaged."
    )


async def test_a_store_that_is_not_ready_fails_its_check(client: Client, service: FakeService) -> None:
    """The label names it as /readyz does; the other checks are not blamed."""

    async def passes() -> None:
        return None

    service.edge.readiness = Readiness({"clock": passes, "store": passes})
    service.store.state = replace(
        service.store.state, ready=False, problem="The store is full.", limit_bytes=9
    )
    text = await (await client.get("/metrics")).text()

    assert 'aggregator_not_ready{check="store"} 1.0' in text
    assert 'aggregator_not_ready{check="clock"} 0.0' in text
    assert "aggregator_store_memory_limit_bytes 9.0" in text


async def test_verdict_counters_start_at_0(client: Client) -> None:
    """Otherwise the alert NoArticles would miss a service that never received an article."""
    text = await (await client.get("/metrics")).text()

    for verdict in ("new", "related", "duplicate"):
        assert f'aggregator_articles_total{{policy="default",verdict="{verdict}"}} 0.0' in text


async def test_metrics_count_requests_verdicts_and_store(client: Client) -> None:
    """Route labels come from the route table only."""
    await client.post("/v1/articles", json={"id": "a", "text": "One text."})
    await client.post("/v1/articles", json={"id": "b", "text": "One text."})
    await client.post("/v1/articles", json={"id": "c"})
    await client.get("/wp-admin/setup.php")
    await client.get("/v1/articles/a")
    response = await client.get("/metrics")
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(await response.text())
        for sample in family.samples
    }

    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert samples["aggregator_articles_total", "default", "new"] == 1
    assert samples["aggregator_articles_total", "default", "duplicate"] == 1
    assert samples["aggregator_articles_rejected_total", "bad_input"] == 1
    assert samples["aggregator_distance_bits_bucket", "0.0"] == 1
    assert samples["aggregator_requests_total", "/v1/articles", "201", "POST"] == 1
    assert samples["aggregator_requests_total", "/v1/articles/{id}", "200", "GET"] == 1
    assert samples["aggregator_requests_total", "404", "any", "unmatched"] == 1
    assert samples["aggregator_store_ready",] == 1
    assert samples["aggregator_store_memory_bytes",] == 4096
    assert not [key for key in samples if "setup.php" in str(key)]


async def test_metrics_of_a_store_that_hangs(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are served in time for the scrape and report the store as not ready."""

    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(service.store, "info", hang)
    async with asyncio.timeout(HANG_LIMIT_S):
        text = await (await client.get("/metrics")).text()

    assert "aggregator_store_ready 0.0" in text
    assert "aggregator_requests_total" in text


async def test_metrics_without_a_readable_webhook_outbox(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unreadable value of the store does not hide the others."""

    async def damaged() -> dict[str, int]:
        raise StoreUnavailable("The outbox in the store is corrupt.")

    monkeypatch.setattr(service.background.webhook_dispatcher.queue, "pending", damaged)
    response = await client.get("/metrics")

    assert response.status == 200
    assert "aggregator_store_ready 1.0" in await response.text()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/articles", "GET, HEAD, OPTIONS, POST"),
        ("PUT", "/v1/articles/a", "DELETE, GET, HEAD, OPTIONS"),
        ("POST", "/healthz", "GET, HEAD, OPTIONS"),
        ("TRACE", "/v1/events", "GET, HEAD, OPTIONS"),
        ("PATCH", "/v1/articles/a/copies", "GET, HEAD, OPTIONS"),
        ("DELETE", "/v1/articles/a/related", "GET, HEAD, OPTIONS"),
        ("GET", "/v1/events/a/actions", "OPTIONS, POST"),
        ("POST", "/v1/events/a/items.csv", "GET, HEAD, OPTIONS"),
    ],
)
async def test_other_methods_are_405(client: Client, method: str, path: str, allowed: str) -> None:
    """The Allow header lists the allowed methods."""
    response = await client.request(method, path)

    assert response.status == 405
    assert response.headers["Allow"] == allowed
    assert (await response.json(content_type="application/problem+json"))["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/articles/", "/static/../app.py", "/static/none.js"])
async def test_unknown_addresses_are_404(client: Client, path: str) -> None:
    """A problem instead of the framework's error page."""
    response = await client.get(path)

    assert response.status == 404
    assert response.headers["Content-Type"] == "application/problem+json"
