"""Host names that are answered, and the addresses that links are built from."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aggregator.settings import Settings
from tests.support.factories import event
from tests.support.fake_service import Client, FakeService, serving

UNKNOWN_HOSTS = (
    "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "a.b/@", "[::1",
    "evil.example@localhost", "evil.example\\@localhost", "localhost#evil.example", "[::1]:80,evil.example",
    "localhost/evil.example", "localhost?evil.example", "localhost:evil.example", "localhost\\.evil.example",
    "localhost:999999", "a b", "<localhost>",
)  # fmt: skip


async def served(**settings: Any) -> AsyncIterator[Client]:
    service = FakeService(Settings(store_url="memory", **settings))
    service.events.stored = [event("e1", "Bridge closed", ("a",))]
    async with serving(service) as client:
        yield client


@pytest.fixture(params=["no key", "key", "auth_disabled"])
async def any_access(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Client, dict[str, str]]]:
    """A client with and without required keys, and the headers that it needs."""
    service = FakeService(Settings(store_url="memory", auth_disabled=request.param == "auth_disabled"))
    headers = {}
    if request.param == "key":
        headers = {"Authorization": f"Bearer {(await service.api_keys.add('Desk', 'admin'))[1]}"}
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
        feed = await (await client.get("/v1/events.json", headers={"Host": "evil.example"})).text()
        assert "evil.example" not in feed


@pytest.mark.parametrize("path", ["/v1/events.atom", "/v1/events.json", "/", "/events/e1", "/v1/watches"])
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
        response = await client.get("/v1/events.json", headers={"Host": host})
        feed = json.loads(await response.read())

        assert (feed["home_page_url"], feed["items"][0]["url"]) == (f"{base}/", f"{base}/events/e1")
