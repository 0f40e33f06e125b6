"""Where requests are addressed to and come from: host names, the base of links, proxies."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aggregator.http.proxies import TrustedProxies, base_path
from aggregator.settings import Settings
from aggregator_client import Client as ApiClient
from tests.support.factories import event
from tests.support.fake_service import Client, FakeService, serving
from tests.support.nginx import documented_blocks, nginx

pytestmark = pytest.mark.integration

UNKNOWN_HOSTS = (
    "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "a.b/@", "[::1",
    "evil.example@localhost", "evil.example\\@localhost", "localhost#evil.example", "[::1]:80,evil.example",
    "localhost/evil.example", "localhost?evil.example", "localhost:evil.example", "localhost\\.evil.example",
    "localhost:999999", "a b", "<localhost>",
)  # fmt: skip


async def served(**settings: Any) -> AsyncIterator[Client]:
    service = FakeService(Settings(store_url="memory", **settings))
    service.fake_events.stored = [event("e1", "Bridge closed", ("a",))]
    async with serving(service) as client:
        yield client


@pytest.fixture(params=["no key", "key", "auth_disabled"])
async def any_access(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Client, dict[str, str]]]:
    """A client with and without required keys, and the headers that it needs."""
    service = FakeService(Settings(store_url="memory", auth_disabled=request.param == "auth_disabled"))
    headers = {}
    if request.param == "key":
        headers = {"Authorization": f"Bearer {(await service.edge.api_keys.add('Desk', 'admin'))[1]}"}
    async with serving(service) as client:
        yield client, headers


@pytest.mark.parametrize("name", UNKNOWN_HOSTS)
@pytest.mark.parametrize("path", ["/v1/events", "/v1/events.atom", "/", "/metrics", "/docs", "/sign-in"])
async def test_unknown_host_names_are_refused(
    any_access: tuple[Client, dict[str, str]], path: str, name: str
) -> None:
    """421 with what to set; a page whose host name resolves to this machine would be the same site."""
    client, headers = any_access
    async with client.get(path, headers=headers | {"Host": name}) as response:
        assert response.status == 421
        assert "set public_url or allowed_hosts" in await response.text()


@pytest.mark.parametrize("name", UNKNOWN_HOSTS)
async def test_probes_are_answered_under_any_name(
    any_access: tuple[Client, dict[str, str]], name: str
) -> None:
    """A kubelet or load balancer may send whatever name it has."""
    client, _ = any_access
    for path in ("/healthz", "/readyz"):
        assert (await client.get(path, headers={"Host": name})).status == 200


@pytest.mark.parametrize(
    "name",
    [
        "localhost:8080", "LOCALHOST.", "a.localhost", "[::1]:80", "10.1.2.3", "desk", "desk.news.svc:8080",
        "desk.news.svc.cluster.local", "news.example:443", "one.example", "TWO.example",
    ],
)  # fmt: skip
async def test_known_host_names_are_answered(name: str) -> None:
    """Addresses (a pod's, say), names unknown to public DNS, those of public_url and allowed_hosts."""
    async for client in served(public_url="https://news.example", allowed_hosts="one.example, Two.Example"):
        for path in ("/v1/events", "/metrics"):
            assert (await client.get(path, headers={"Host": name})).status == 200


async def test_any_host_name_can_be_allowed() -> None:
    """With *; links are built from named hosts only all the same."""
    async for client in served(allowed_hosts="*"):
        feed = await (await client.get("/v1/events.atom", headers={"Host": "evil.example"})).text()
        assert "evil.example" not in feed


@pytest.mark.parametrize("path", ["/v1/events.atom", "/", "/events/e1", "/v1/desks"])
@pytest.mark.parametrize("name", ["evil", "6.6.6.6", "evil.internal:99", "[2001:db8::6]"])
async def test_no_link_is_built_from_an_arbitrary_host(path: str, name: str) -> None:
    """A name or address that is answered, but is not one of the service's, appears in no body or header."""
    async for client in served():
        async with client.get(path, headers={"Host": name}) as response:
            answer = await response.text() + str(response.headers)
            assert response.status == 200
            assert name not in answer


@pytest.mark.parametrize(
    ("settings", "host", "base"),
    [
        ({"public_url": "https://news.example/"}, "6.6.6.6", "https://news.example"),
        ({"allowed_hosts": "desk.example"}, "desk.example:8443", "http://desk.example:8443"),
        ({}, "localhost:8080", "http://localhost:8080"),
        ({}, "127.0.0.1:99", "http://127.0.0.1:99"),
        ({}, "6.6.6.6", ""),
    ],
)
async def test_the_base_address_of_links(settings: dict[str, str], host: str, base: str) -> None:
    """public_url, else an allowed or local address of the request, else links are relative."""
    async for client in served(**settings):
        response = await client.get("/v1/events.atom", headers={"Host": host})
        links = re.findall('rel="alternate" type="text/html" href="([^"]*)"', await response.text())

        assert links[:2] == [f"{base}/", f"{base}/events/e1"]


PROXIES = TrustedProxies("10.0.0.0/8, 192.0.2.1,fd00::/8")
PREFIX = "/news/dedup"


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),  # no proxy: anybody can send the header
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.7", "198.51.100.7"),  # the first part is what the client claims
        ("10.0.0.1", "198.51.100.7, 192.0.2.1, 10.9.9.9", "198.51.100.7"),  # a chain of proxies
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.7, evil\x00", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.2", "10.0.0.2"),  # a client inside
        ("::ffff:10.0.0.1", "2001:db8::5", "2001:db8::5"),
        ("fd00::1", "198.51.100.7", "198.51.100.7"),
        ("", "198.51.100.7", ""),  # a Unix socket
    ],
)
def test_the_address_of_the_client(peer: str, forwarded_for: str, client: str) -> None:
    """Read from the end of the list for as long as the proxies are trusted."""
    assert PROXIES.client_of(peer, forwarded_for) == client


def test_the_path_of_the_public_address() -> None:
    """Without a slash at the end; a host of its own has none."""
    assert base_path(Settings(public_url=f"https://news.example{PREFIX}/")) == PREFIX
    assert base_path(Settings(public_url="https://news.example/")) == base_path(Settings()) == ""


@pytest.fixture(params=[True, False], ids=["prefix kept", "prefix removed"])
async def proxied(
    request: pytest.FixtureRequest, tmp_path: Path, free_port: int
) -> AsyncIterator[tuple[str, FakeService]]:
    """Public URL of a service behind nginx as documented, and the service."""
    url = f"http://127.0.0.1:{free_port}{PREFIX}"
    service = FakeService(Settings(store_url="memory", public_url=url, trusted_proxies="127.0.0.1"))
    service.fake_events.stored = [event("e1", "Bridge closed"), event("e/2", "Ferry sails")]
    block = documented_blocks()[0].replace("/dedup/", f"{PREFIX}/").replace("$scheme", "https")
    async with serving(service) as client:
        target = origin(client) + ("" if request.param else "/")
        with nginx(tmp_path, free_port, block.replace("http://127.0.0.1:8080", target)):
            yield url, service


def origin(client: Client) -> str:
    """URL of a test client's server."""
    return str(client.make_url("")).rstrip("/")


@pytest.mark.integration
async def test_every_link_of_every_page_stays_below_the_path(proxied: tuple[str, FakeService]) -> None:
    """A crawl from the front page: all local addresses have the prefix and are answered, scripts included."""
    url, _ = proxied
    seen, waiting = set[str](), [PREFIX + "/", PREFIX + "/webhooks", PREFIX + "/sign-in"]
    root = url.removesuffix(PREFIX)
    async with aiohttp.ClientSession() as session:
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            async with session.get(root + path, headers={"Accept": "text/html"}) as response:
                assert response.status == 200, (path, response.status)
                if response.content_type != "text/html":
                    continue
                text = await response.text()
            found = re.findall(r' (href|src|action|formaction|data-stream)="(/[^"#]*)', text)
            assert found and 'data-base-path="/news/dedup"' in text
            for attribute, address in found:
                assert address.startswith(PREFIX + "/"), (path, address)
                page = address.partition("?")[0].replace("&amp;", "&")
                if attribute in ("href", "src") and page not in seen:
                    waiting.append(page)

    assert {PREFIX + p for p in ("/", "/desks", "/sources", "/health", "/docs", "/static/app.js")} <= seen
    assert f"{PREFIX}/events/e%2F2" in seen


async def test_scripts_add_the_path_to_addresses_that_they_make() -> None:
    """No address that a script fetches or goes to begins with a slash."""
    from importlib import resources

    static = resources.files("aggregator.http.pages").joinpath("static")
    scripts = [file for file in static.iterdir() if file.name.endswith(".js")]
    for script in scripts:
        found = re.findall(
            r"""(?:fetch\(|openStream\(|href = )["'`]/.*""", script.read_text(encoding="utf-8")
        )
        assert not found, (script.name, found)
    assert scripts


@pytest.mark.integration
async def test_redirects_cookies_and_addresses_in_answers(proxied: tuple[str, FakeService]) -> None:
    """Location, Set-Cookie, OpenAPI servers, feeds, addresses in JSON; the session is Secure behind https."""
    url, service = proxied
    _, key = await service.edge.api_keys.add("Ada", "admin")
    bearer = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(headers={"Accept": "text/html"}) as session:
        asked = await session.get(url + "/events/e1?x=1", allow_redirects=False)
        signed_in = await session.post(
            url + "/sign-in", data={"key": key, "next": "/search"}, allow_redirects=False
        )
        desk = await session.post(
            url + "/v1/desks", json={"name": "Bridges", "terms": ["bridge"]}, headers=bearer
        )
        openapi = await (await session.get(url + "/openapi.json")).json()
        feed = await (await session.get(url + "/v1/events.atom", headers=bearer)).text()
        lost = await session.get(url + "/v1/nothing", headers=bearer)

        assert asked.headers["Location"] == f"{PREFIX}/sign-in?next=%2Fevents%2Fe1%3Fx%3D1"
        assert signed_in.headers["Location"] == f"{PREFIX}/search"
        assert f"Path={PREFIX};" in signed_in.headers["Set-Cookie"] + ";"
        assert "Secure" in signed_in.headers["Set-Cookie"]
        assert desk.headers["Location"].startswith(f"{PREFIX}/v1/desks/")
        assert (await desk.json())["stream"].startswith(f"{PREFIX}/v1/events/stream?watch=")
        assert openapi["servers"] == [{"url": PREFIX}]
        assert f"{url}/events/e1" in feed
        assert (await lost.json(content_type=None))["instance"] == f"{PREFIX}/v1/nothing"


@pytest.mark.integration
async def test_the_event_stream_passes(proxied: tuple[str, FakeService]) -> None:
    """Its first message arrives while the stream stays open: nginx does not collect it in a buffer."""
    url, _ = proxied
    async with aiohttp.ClientSession() as session, session.get(url + "/v1/events/stream") as response:
        assert (await response.content.readline()).startswith(b"retry:")


@pytest.mark.integration
async def test_the_log_has_the_address_of_the_client(
    proxied: tuple[str, FakeService], caplog: pytest.LogCaptureFixture
) -> None:
    """Not the proxy's, and not what the client claims."""
    url, service = proxied
    await service.edge.api_keys.add("Ada", "admin")
    connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
    headers = {"Authorization": "Bearer agg_0_x", "X-Forwarded-For": "198.51.100.7"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        assert (await session.get(url + "/v1/events")).status == 401

    assert "127.0.0.2" in caplog.text and "198.51.100.7" not in caplog.text


@pytest.mark.integration
async def test_the_client_library_posts_below_the_path(proxied: tuple[str, FakeService]) -> None:
    """The address of a service may have a path."""
    url, service = proxied
    async with ApiClient(url) as client:
        decision = await client.check({"id": "a", "text": "The ferry between Brackwater and Estmark runs."})

    assert decision.verdict == "new" and service.submitted[0].text.startswith("The ferry")


@pytest.mark.integration
async def test_probes_need_no_prefix_and_neighbors_are_not_answered(
    proxied: tuple[str, FakeService],
) -> None:
    """/readyz for the orchestrator; /news/deduplicate is another application."""
    settings = Settings(store_url="memory", public_url=f"http://localhost{PREFIX}")
    async with serving(FakeService(settings)) as client:
        assert (await client.get("/readyz")).status == 200
        assert (await client.get(PREFIX + "/readyz")).status == 200
        assert (await client.get(PREFIX + "licate/readyz")).status == 404
        assert (await client.get("/news")).status == 404
