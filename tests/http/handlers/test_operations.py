"""Health, readiness, metrics, headers, methods."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aggregator.errors import StoreUnavailable
from aggregator.http.metrics import collectors
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


async def test_health(client):
    """The process runs, whatever the store does."""
    response = await client.get("/healthz?probe=1")

    assert (response.status, (await response.json())["status"]) == (200, "ok")


async def test_ready_and_not_ready(client, service):
    """Readiness follows the store and says why not."""
    ready = await client.get("/readyz")
    service.store.state = replace(
        service.store.state, ready=False, problem="The store is loading its data; wait a little."
    )
    loading = await client.get("/readyz")

    assert (ready.status, (await ready.json())["store"]["kind"]) == (200, "memory")
    assert loading.status == 503
    assert (await loading.json(content_type=None))[
        "detail"
    ] == "The store is loading its data; wait a little."


async def test_a_verdict_that_was_never_given_is_a_series_at_0(client):
    """Else a service that no article ever reached would not be noticed by the rule NoArticles."""
    text = await (await client.get("/metrics")).text()

    for verdict in ("new", "related", "duplicate"):
        assert f'aggregator_articles_total{{verdict="{verdict}"}} 0.0' in text


async def test_metrics(client):
    """Requests, verdicts, distances and store figures are there, labelled by our routes only."""
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
    assert samples["aggregator_articles_total", "new"] == 1
    assert samples["aggregator_articles_total", "duplicate"] == 1
    assert samples["aggregator_articles_rejected_total", "bad_input"] == 1
    assert samples["aggregator_distance_bits_bucket", "0.0"] == 1
    assert samples["aggregator_requests_total", "/v1/articles", "201", "POST"] == 1
    assert samples["aggregator_requests_total", "/v1/articles/{id}", "200", "GET"] == 1
    assert samples["aggregator_requests_total", "404", "any", "unmatched"] == 1
    assert samples["aggregator_store_ready",] == 1
    assert samples["aggregator_store_memory_bytes",] == 4096
    assert not [key for key in samples if "setup.php" in str(key)]


async def test_metrics_of_a_store_that_hangs(client, service, monkeypatch):
    """They come all the same, in time for who gathers them, and say that it is not ready."""
    monkeypatch.setattr(collectors, "STORE_TIMEOUT_S", 0.01)

    async def hang():
        await asyncio.Event().wait()

    service.store.info = hang
    async with asyncio.timeout(5):
        text = await (await client.get("/metrics")).text()

    assert "aggregator_store_ready 0.0" in text
    assert "aggregator_requests_total" in text


async def test_metrics_without_an_outbox(client, service):
    """One value of the store that cannot be read does not hide all the others."""

    async def damaged():
        raise StoreUnavailable("The outbox in the store is damaged.")

    service.webhook_dispatcher.owed = damaged
    response = await client.get("/metrics")

    assert response.status == 200
    assert "aggregator_store_ready 1.0" in await response.text()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/articles", "POST"),
        ("PUT", "/v1/articles/a", "DELETE, GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("TRACE", "/v1/events", "GET, HEAD"),
        ("OPTIONS", "/v1/related", "POST"),
        ("PATCH", "/v1/articles/a/copies", "DELETE, GET, HEAD"),
    ],
)
async def test_other_methods_are_405(client, method, path, allowed):
    """The Allow header says what would work."""
    response = await client.request(method, path)

    assert response.status == 405
    assert response.headers["Allow"] == allowed
    assert (await response.json(content_type="application/problem+json"))["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/articles/", "/static/../app.py", "/static/none.js"])
async def test_unknown_addresses_are_404(client, path):
    """Every unknown address is a problem document, not a page of the framework."""
    response = await client.get(path)

    assert response.status == 404
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz", "/nothing", "/v1/events", "/static/page.js"])
async def test_security_headers_are_everywhere(client, path):
    """Pages, answers and errors alike."""
    headers = (await client.get(path)).headers

    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Server"] == "aggregator"


async def test_request_ids(client):
    """A decent id of the caller is kept, anything else is replaced."""
    kept = await client.get("/healthz", headers={"X-Request-Id": "crawler-7.42"})
    made = await client.get("/healthz", headers={"X-Request-Id": "x" * 100})

    assert kept.headers["X-Request-Id"] == "crawler-7.42"
    assert len(made.headers["X-Request-Id"]) == 16


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({}, 201),
    ],
)
async def test_pages_of_other_sites_cannot_write(client, headers, status):
    """A page that a reader visits must not fill the index of a service on their machine."""
    response = await client.post("/v1/articles", json={"id": "a", "text": "One text."}, headers=headers)

    assert response.status == status


async def test_own_origin_can_write(client):
    """The pages of this service may."""
    origin = {"Origin": f"http://{client.host}:{client.port}"}

    assert (await client.post("/v1/articles", json={"text": "One text."}, headers=origin)).status == 201


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://news.example", 201),
        ("http://news.example", 403),
        ("https://news.example:8443", 403),
        ("https://news.example.evil.example", 403),
        ("null", 403),
    ],
)
async def test_own_origin_behind_a_proxy_can_write(origin: str, status: int) -> None:
    """Whatever ``Host`` the proxy sends: readers reach the pages at ``public_url``."""
    settings = Settings(store_url="memory", public_url="https://news.example:443/desk")
    async with serving(FakeService(settings)) as client:
        response = await client.post("/v1/articles", json={"text": "One text."}, headers={"Origin": origin})

    assert response.status == status


async def test_the_access_log_names_each_request_and_no_query(caplog):
    """One record: method, path, status, time and the id that the answer carries."""
    caplog.set_level("INFO", "aggregator.access")
    quiet, chatty = FakeService(), FakeService(Settings(store_url="memory", access_log=True))
    for service in (quiet, chatty):
        async with serving(service) as client:
            await client.get("/healthz?who=reader", headers={"X-Request-Id": "crawler-7"})
            await client.get("/no%0Asuch")
    told = [(r.getMessage().rsplit(" ", 2)[0], r.fields["status"]) for r in caplog.records]

    assert told == [("GET /healthz 200", 200), ("GET /no%0Asuch 404", 404)]
