"""OPTIONS of every address, and cross-origin reads by pages of the configured origins."""

from __future__ import annotations

import pytest

from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService, serving

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
        ("/v1/related", "OPTIONS, POST"),
        ("/v1/desks/d/targets", "OPTIONS, POST"),
        ("/", "GET, HEAD, OPTIONS"),
    ],
)
async def test_options_lists_the_methods_of_an_address(client: Client, path: str, allowed: str) -> None:
    """204 without a body; nothing about CORS unless it is configured."""
    response = await client.options(path, headers=PREFLIGHT)

    assert (response.status, await response.read()) == (204, b"")
    assert response.headers["Allow"] == allowed
    assert not [name for name in response.headers if name.startswith("Access-Control")]


async def test_options_of_an_unknown_address_is_404(client: Client) -> None:
    """As any other method."""
    assert (await client.options("/v1/nothing")).status == 404


async def test_a_page_of_a_configured_origin_may_read() -> None:
    """The preflight permits the key header; the answer, also an error, can be read by that origin alone."""
    async with serving(open_to(f"https://x.example, {SITE}")) as client:
        preflight = await client.options("/v1/articles/a/related", headers=PREFLIGHT)
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
            "/v1/watches", headers={"Origin": SITE, "Access-Control-Request-Method": "POST"}
        )
        change = await client.post(
            "/v1/watches", json={"name": "n", "query": "term=a"}, headers={"Origin": SITE}
        )
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
