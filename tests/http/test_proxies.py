"""Users named by a trusted proxy: who is believed, what they may do, and what is recorded of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from multidict import CIMultiDict

from aggregator.http.proxies import UserRoles, is_user_name, user_key
from aggregator.settings import Settings
from tests.support.cluster import free_ports
from tests.support.factories import event
from tests.support.fake_service import FakeService, serving
from tests.support.nginx import documented_blocks, nginx

pytestmark = pytest.mark.integration

TRUSTED, UNTRUSTED = "127.0.0.1, ::1", "192.0.2.7"
ORIGIN = {"Sec-Fetch-Site": "same-origin"}
RULES = UserRoles("ada@news.example=reader, @news room=editor,@it=admin , *=reader")


def behind(proxies: str = TRUSTED) -> FakeService:
    """A service whose proxy names users."""
    return FakeService(
        Settings(
            store_url="memory",
            trusted_proxies=proxies,
            user_header="X-Forwarded-User",
            user_groups_header="X-Forwarded-Groups",
            user_roles="ada=admin, @newsroom=editor, @readers=reader",
            sign_out_url="https://news.example/oauth2/sign_out",
        )
    )


HEADERS = {
    "nobody": [],
    "ada": [("X-Forwarded-User", "ada")],
    "twice": [("X-Forwarded-User", "ada"), ("X-Forwarded-User", "bob")],
    "empty": [("X-Forwarded-User", "")],
    "control": [("X-Forwarded-User", "ada\x07")],
    "editor": [("X-Forwarded-User", "bob"), ("X-Forwarded-Groups", "other,newsroom")],
    "no role": [("X-Forwarded-User", "bob"), ("X-Forwarded-Groups", "other")],
    "groups alone": [("X-Forwarded-Groups", "newsroom")],
    "forged address": [("X-Forwarded-User", "ada"), ("X-Forwarded-For", "127.0.0.1")],
    "invalid key": [("X-Forwarded-User", "ada"), ("Authorization", "Bearer agg_0_x")],
}


@pytest.mark.parametrize(
    ("proxies", "sent", "status"),
    [
        (TRUSTED, "nobody", 401),
        (TRUSTED, "ada", 200),
        (TRUSTED, "twice", 401),  # a client's header that the proxy did not remove
        (TRUSTED, "empty", 401),
        (TRUSTED, "editor", 200),
        (TRUSTED, "no role", 403),
        (TRUSTED, "groups alone", 401),
        (TRUSTED, "invalid key", 401),  # never a weaker credential than the one that was sent
        (UNTRUSTED, "nobody", 401),
        (UNTRUSTED, "ada", 401),
        (UNTRUSTED, "editor", 401),
        (UNTRUSTED, "no role", 401),
        (UNTRUSTED, "forged address", 401),
    ],
)
async def test_who_is_believed(proxies: str, sent: str, status: int) -> None:
    """The header counts on connections of trusted proxies only, whatever other headers claim."""
    async with serving(behind(proxies)) as client:
        response = await client.get("/v1/events", headers=CIMultiDict(HEADERS[sent]))

    assert response.status == status


async def test_without_the_setting_the_header_means_nothing() -> None:
    """A service with keys; also if the proxy is trusted for addresses."""
    service = FakeService(Settings(store_url="memory", trusted_proxies=TRUSTED))
    await service.edge.api_keys.add("root", "admin")
    async with serving(service) as client:
        assert (await client.get("/v1/events", headers={"X-Forwarded-User": "ada"})).status == 401


async def test_a_refusal_names_the_address_to_trust() -> None:
    """An operator sees which proxy is missing in the settings."""
    async with serving(behind(UNTRUSTED)) as client:
        answer = await client.get("/v1/events", headers={"X-Forwarded-User": "ada"})
        detail = (await answer.json(content_type=None))["detail"]

    assert "trusted_proxies" in detail and "127.0.0.1" in detail


async def test_actions_are_recorded_under_the_name_of_the_user() -> None:
    """Each user has an own read mark; a service key still works, and names the program."""
    service = behind()
    service.fake_events.stored = [event("e1", "Bridge closed")]
    _, key = await service.edge.api_keys.add("importer", "editor")
    async with serving(service) as client:
        ada = {"X-Forwarded-User": "ada", **ORIGIN}
        acted = await client.post("/v1/events/e1/actions", json={"action": "acknowledge"}, headers=ada)
        await client.post("/v1/read-mark", json={"seen": ["e1"]}, headers=ada)
        own = await (await client.get("/v1/read-mark", headers=ada)).json()
        other = await (await client.get("/v1/read-mark", headers=dict(HEADERS["editor"]))).json()
        program = await client.post(
            "/v1/events/e1/actions",
            json={"action": "acknowledge"},
            headers={"Authorization": f"Bearer {key}", "X-Forwarded-User": "ada"},
        )
        page = await (await client.get("/", headers=ada)).text()
        acknowledged_by = (await acted.json())["acknowledged_by"]

    assert acknowledged_by == "ada"
    assert (own["seen"], other["seen"]) == (["e1"], [])
    assert program.status == 200
    assert 'data-user="ada"' in page


async def test_a_change_needs_an_origin() -> None:
    """The proxy's cookie is sent for pages of other sites, too."""
    async with serving(behind()) as client:
        body = {"name": "Bridges", "terms": ["bridge"]}
        ada = {"X-Forwarded-User": "ada"}

        assert (await client.post("/v1/desks", json=body, headers=ada)).status == 403
        evil = {**ada, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert (await client.post("/v1/desks", json=body, headers=evil)).status == 403
        assert (await client.post("/v1/desks", json=body, headers=ada | ORIGIN)).status == 201


async def test_signing_out_ends_the_session_at_the_proxy() -> None:
    """The next request would sign the user in again otherwise."""
    async with serving(behind()) as client:
        answer = await client.post(
            "/sign-out", headers={"X-Forwarded-User": "ada", **ORIGIN}, allow_redirects=False
        )

    assert answer.headers["Location"] == "https://news.example/oauth2/sign_out"


async def test_a_stream_is_open_for_a_user() -> None:
    """It ends with the hour of ``user_key``; the clock of this service stands still."""
    async with (
        serving(behind()) as client,
        client.get("/v1/events/stream", headers={"X-Forwarded-User": "ada"}) as response,
    ):
        assert (response.status, await response.content.readline()) == (200, b"retry: 2000\n")


SIGN_IN = """server {{ listen 127.0.0.1:{port}; location = /oauth2/auth {{
    if ($cookie_user = "") {{ return 401; }}
    add_header X-Auth-Request-User $cookie_user always; add_header X-Auth-Request-Groups newsroom always;
    return 202; }} }}
"""


@pytest.mark.integration
async def test_nginx_with_a_sign_in_as_documented(tmp_path: Path) -> None:
    """A signed-in user has the role of the groups, others are sent to the sign-in, programs use their key."""
    port, sign_in_port = free_ports(2)
    url = f"http://127.0.0.1:{port}/dedup"
    service = FakeService(replace(behind("127.0.0.1").settings, public_url=url))
    _, key = await service.edge.api_keys.add("importer", "reader")
    forged = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "newsroom", "X-Auth-Request-User": "ada"}
    program, stranger = {"Authorization": f"Bearer {key}"}, {"Authorization": "Bearer agg_0_x"}
    async with serving(service) as client, aiohttp.ClientSession(headers=forged) as session:
        block = documented_blocks()[1].replace("http://127.0.0.1:8080", str(client.make_url("")).rstrip("/"))
        block = block.replace("127.0.0.1:4180", f"127.0.0.1:{sign_in_port}")
        with nginx(tmp_path, port, block, SIGN_IN.format(port=sign_in_port)):
            nobody = await session.get(url + "/?q=a", allow_redirects=False)
            page = await session.get(url + "/", cookies={"user": "bob"})
            desk = await session.post(
                url + "/v1/desks",
                json={"name": "Bridges", "terms": ["bridge"]},
                cookies={"user": "bob"},
                headers=ORIGIN,
            )
            read = await session.get(url + "/v1/events", headers=program)
            refused = await session.get(url + "/v1/events", headers=stranger, allow_redirects=False)

            assert nobody.headers["Location"] == f"http://127.0.0.1:{port}/oauth2/start?rd={url}/?q=a"
            assert 'data-user="bob"' in await page.text()
            assert (desk.status, read.status, refused.status) == (201, 200, 401)


@pytest.mark.parametrize(
    ("name", "groups", "role"),
    [
        ("ada@news.example", ["it"], "reader"),  # a rule for the name takes precedence
        ("bob", ["news room"], "editor"),
        ("bob", ["news room", "it", "other"], "admin"),  # the highest role
        ("bob", [], "reader"),
        ("@it", [], "reader"),  # a name is no group
        ("Ada@news.example", ["IT"], "reader"),
        ("*", [], "reader"),
    ],
)
def test_the_rule_that_applies(name: str, groups: list[str], role: str) -> None:
    """Name, then the highest role of the groups, then everybody; compared exactly."""
    assert RULES.role_of(name, groups) == role


def test_without_a_rule_there_is_no_role() -> None:
    """Neither for a name nor for an empty group."""
    assert UserRoles("ada=editor").role_of("bob", ["", "ada"]) is None
    assert UserRoles("").role_of("", [""]) is None


def test_a_user_is_the_same_tomorrow() -> None:
    """The id depends on the name alone and is never that of a key; the permission ends after an hour."""
    today, tomorrow = user_key("ada", "editor", 0), user_key("ada", "admin", 86_400_000)

    assert today.id == tomorrow.id != user_key("bob", "editor", 0).id
    assert not today.hash and today.allows("editor") and not today.allows("admin")
    assert today.is_active(3_599_999) and not today.is_active(3_600_000)


@pytest.mark.parametrize("name", ["", "a\nb", "a\x1b[2J", "\udcff", "x" * 101])
def test_names_that_cannot_be_recorded(name: str) -> None:
    """Empty, with control characters or bytes that are not UTF-8, or too long."""
    assert not is_user_name(name)
    assert is_user_name("Ada Лавлейс 王")
