"""The middleware of every request: request ids, CSRF, CORS, metrics, access log, headers of responses."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aggregator.http.errors import MAX_LOGGED_PATH_CHARS
from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz", "/nothing", "/v1/events", "/static/page.js"])
async def test_every_response_has_security_headers(client: Client, path: str) -> None:
    """Pages, API responses and errors."""
    headers = (await client.get(path)).headers

    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Server"] == "aggregator"


async def test_valid_request_ids_are_kept(client: Client) -> None:
    """An invalid one is replaced."""
    valid = await client.get("/healthz", headers={"X-Request-Id": "crawler-7.42"})
    invalid = await client.get("/healthz", headers={"X-Request-Id": "x" * 100})

    assert valid.headers["X-Request-Id"] == "crawler-7.42"
    assert len(invalid.headers["X-Request-Id"]) == 16


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
async def test_cross_site_writes_are_refused(client: Client, headers: dict[str, str], status: int) -> None:
    """A web page must not write to a service on its visitor's machine."""
    response = await client.post("/v1/articles", json={"id": "a", "text": "One text."}, headers=headers)

    assert response.status == status


async def test_same_origin_writes_are_accepted(client: Client) -> None:
    """Pages of this service."""
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
async def test_public_url_is_the_own_origin_behind_a_proxy(origin: str, status: int) -> None:
    """Regardless of the Host header that the proxy sends."""
    settings = Settings(store_url="memory", public_url="https://news.example:443/desk")
    async with serving(FakeService(settings)) as client:
        response = await client.post("/v1/articles", json={"text": "One text."}, headers={"Origin": origin})

    assert response.status == status


async def test_the_access_log_has_one_line_per_request_without_the_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Method, path, status and time; off by default."""
    caplog.set_level("INFO", "aggregator.access")
    quiet, chatty = FakeService(), FakeService(Settings(store_url="memory", access_log=True))
    for service in (quiet, chatty):
        async with serving(service) as client:
            await client.get("/healthz?name=reader", headers={"X-Request-Id": "crawler-7"})
            await client.get("/no%0Asuch")
    logged = [(r.getMessage().rsplit(" ", 2)[0], vars(r)["fields"]["status"]) for r in caplog.records]

    assert logged == [("GET /healthz 200", 200), ("GET /no%0Asuch 404", 404)]


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "id;1", "ид"])
async def test_an_unsafe_request_id_is_replaced(client: Client, given: str) -> None:
    """It would be copied into logs and into the response."""
    response = await client.get("/healthz", headers={"X-Request-Id": given})

    assert response.headers["X-Request-Id"] != given
    assert set(response.headers["X-Request-Id"]) <= set("0123456789abcdef")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_other_sites_may_link_to_pages(client: Client, method: str) -> None:
    """Only changes are refused."""
    headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://other.example"}

    assert (await client.request(method, "/", headers=headers)).status == 200


async def test_a_long_path_is_cut_in_the_access_log(caplog: pytest.LogCaptureFixture) -> None:
    """One request cannot fill the log."""
    caplog.set_level("INFO", "aggregator.access")
    async with serving(FakeService(Settings(store_url="memory", access_log=True))) as client:
        await client.get("/" + "x" * 3000)

    (record,) = caplog.records
    assert vars(record)["fields"]["path"] == "/" + "x" * (MAX_LOGGED_PATH_CHARS - 1)


async def test_clients_cannot_create_metric_series(client: Client) -> None:
    """Unknown paths and methods share one series; ids in a path are replaced by the route."""
    for path in ("/wp-login.php", "/nothing", "/v1/articles/a1"):
        await client.get(path)
    await client.request("PROPFIND", "/v1/events")

    text = await (await client.get("/metrics")).text()
    (requests,) = (f for f in text_string_to_metric_families(text) if f.name == "aggregator_requests")
    counts = {
        (s.labels["method"], s.labels["route"], s.labels["status"]): s.value
        for s in requests.samples
        if s.name == "aggregator_requests_total"
    }
    assert counts["any", "unmatched", "404"] == 2
    assert not any("a1" in route or "nothing" in route for _, route, _ in counts)
    assert not any(method == "PROPFIND" for method, _, _ in counts)


SITE = "https://news.example"
PREFLIGHT = {"Origin": SITE, "Access-Control-Request-Method": "GET"}
FORBIDDEN = {"Origin": "https://other.example", "Access-Control-Request-Method": "GET"}


def open_to(origins: str) -> FakeService:
    """A service whose setting is ``origins``."""
    return FakeService(Settings(store_url="memory", cors_origins=origins))


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/articles", "GET, HEAD, OPTIONS, POST"),
        ("/v1/articles/pool-1", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/articles/pool-1/related", "GET, HEAD, OPTIONS"),
        ("/v1/articles/a%2Frelated", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/related", "GET, HEAD, OPTIONS, POST"),
        ("/v1/desks/d/targets", "OPTIONS, POST"),
        ("/", "GET, HEAD, OPTIONS"),
    ],
)
async def test_options_lists_the_methods_of_an_address(client: Client, path: str, allowed: str) -> None:
    """204 without a body; nothing about CORS unless it is configured, or every page may ask."""
    response = await client.options(path, headers=PREFLIGHT)

    assert (response.status, await response.read()) == (204, b"")
    assert response.headers["Allow"] == allowed
    is_open = any(name.startswith("Access-Control") for name in response.headers)
    assert is_open == path.endswith("/related")


async def test_options_of_an_unknown_address_is_404(client: Client) -> None:
    """As any other method."""
    assert (await client.options("/v1/nothing")).status == 404


async def test_a_page_of_a_configured_origin_may_read() -> None:
    """The preflight permits the key header; the answer, also an error, can be read by that origin alone."""
    async with serving(open_to(f"https://x.example, {SITE}")) as client:
        preflight = await client.options("/v1/articles/a/copies", headers=PREFLIGHT)
        missing = await client.get("/v1/articles/a", headers={"Origin": SITE})
        other = await client.get("/v1/events", headers={"Origin": "https://other.example"})
        unasked = await client.get("/v1/events")

    assert preflight.status == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == SITE
    assert preflight.headers["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert "Authorization" in preflight.headers["Access-Control-Allow-Headers"]
    assert (missing.status, missing.headers["Access-Control-Allow-Origin"]) == (404, SITE)
    assert "Retry-After" in missing.headers["Access-Control-Expose-Headers"]
    assert {r.headers["Vary"] for r in (missing, other, unasked)} == {"Origin"}
    assert "Access-Control-Allow-Origin" not in other.headers
    assert all("Access-Control-Allow-Credentials" not in r.headers for r in (preflight, missing))


async def test_pages_of_other_origins_may_not_change_anything() -> None:
    """Neither with a preflight nor without, under any setting; the service's own pages stay closed."""
    async with serving(open_to("*")) as client:
        preflight = await client.options(
            "/v1/desks", headers={"Origin": SITE, "Access-Control-Request-Method": "POST"}
        )
        change = await client.post("/v1/desks", json={"name": "n", "terms": ["a"]}, headers={"Origin": SITE})
        page = await client.get("/", headers={"Origin": SITE})
        read = await client.get("/v1/events", headers={"Origin": SITE})

    assert "Access-Control-Allow-Methods" not in preflight.headers
    assert change.status == 403
    assert "Access-Control-Allow-Origin" not in {**change.headers, **page.headers}
    assert read.headers["Access-Control-Allow-Origin"] == "*"


async def test_the_preflight_of_another_origin_permits_nothing() -> None:
    """204 with Allow only."""
    async with serving(open_to(SITE)) as client:
        response = await client.options("/v1/events", headers=FORBIDDEN)

    assert response.status == 204
    assert not [name for name in response.headers if name.startswith("Access-Control")]


async def test_a_key_over_its_limit_is_told_when_to_retry() -> None:
    """A burst of 2 s passes; then 429, with the seconds until there is a token again."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=2.0))
    _, text = await service.edge.api_keys.add("Reader", "reader")
    async with serving(service) as client:
        answers = [
            await client.get("/v1/events", headers={"Authorization": f"Bearer {text}"}) for _ in range(5)
        ]

    assert [answer.status for answer in answers] == [200] * 4 + [429]
    assert answers[-1].headers["Retry-After"] == "1"
