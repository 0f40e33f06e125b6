"""Every route with every role: who gets in, and that nobody else does."""

from __future__ import annotations

import logging

import pytest
from multidict import CIMultiDict

from aggregator.auth.api_keys import ROLE_PERMISSIONS, ROLES
from aggregator.http.app_keys import REJECTED_LOG
from aggregator.http.middleware.rejected_log import LOG_INTERVAL_S
from aggregator.log_limits import LogThrottle
from aggregator.http.routes import ENDPOINTS, Endpoint
from aggregator.settings import Settings
from tests.support.factories import event
from tests.support.fake_service import FakeService, serving

# Who gets past the gate, route by route: written down apart from the program, so that a slip there shows here.
OPEN = "everybody"
TABLE = {
    "postArticle": "crawler admin",
    "postBatch": "crawler admin",
    "deleteArticle": "crawler admin",
    "getArticle": "crawler reader editor admin",
    "getCopies": "reader editor admin",
    "getRelated": "reader editor admin",
    "postRelated": "reader editor admin",
    "explain": "reader editor admin",
    "listEvents": "reader editor admin",
    "streamEvents": "reader editor admin",
    "atomFeed": "reader editor admin",
    "jsonFeed": "reader editor admin",
    "postWatch": "editor admin",
    "listWatches": "reader editor admin",
    "getWatch": "reader editor admin",
    "deleteWatch": "editor admin",
    "getEvent": "reader editor admin",
    "postAction": "editor admin",
    "postWebhook": "editor admin",
    "listWebhooks": "editor admin",
    "getWebhook": "editor admin",
    "deleteWebhook": "editor admin",
    "postWebhookAction": "editor admin",
    "metrics": "reader editor admin",
    "front": "reader editor admin",
    "report": "reader editor admin",
    "lookup": "reader editor admin",
    "lookupPasted": "reader editor admin",
    "compare": "reader editor admin",
    "comparePasted": "reader editor admin",
    "healthPage": "reader editor admin",
    "health": OPEN,
    "ready": OPEN,
    "openapi": OPEN,
    "docs": OPEN,
    "signInForm": OPEN,
    "signIn": OPEN,
    "signOut": OPEN,
    "static": OPEN,
}
WHO = ("nobody", "a stranger", *ROLES)


@pytest.fixture
async def guarded():
    """A service that asks for keys, and a key of each role."""
    service = FakeService(Settings(store_url="memory"))
    keys = {role: (await service.api_keys.add(f"the {role}", role))[1] for role in ROLES}
    keys["a stranger"] = keys["admin"][:-1] + ("a" if keys["admin"][-1] != "a" else "b")
    async with serving(service) as client:
        client.keys = keys
        yield client


def bearer(client, who: str) -> dict[str, str]:
    """The header that ``who`` sends."""
    return {"Authorization": f"Bearer {client.keys[who]}"} if who in client.keys else {}


def test_the_table_names_every_route() -> None:
    """A new route decides here who may use it."""
    assert set(TABLE) == {endpoint.operation_id for endpoint in ENDPOINTS}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.operation_id)
async def test_every_route_with_every_role(guarded, endpoint: Endpoint) -> None:
    """401 without a key that works, 403 with one that is not enough, anything else with one that is."""
    allowed = WHO if TABLE[endpoint.operation_id] == OPEN else TABLE[endpoint.operation_id].split()
    path = endpoint.path.replace("{id}", "none").replace("{name}", "page.css")
    for who in WHO:
        methods = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
        for method in methods:
            async with guarded.request(
                method, path, headers=bearer(guarded, who), allow_redirects=False
            ) as response:
                refused = 401 if who in ("nobody", "a stranger") else 403
                if who in allowed:
                    assert response.status not in (403, 429, 500), (who, response.status)
                    assert response.status != 401 or endpoint.operation_id == "signIn"
                else:
                    assert response.status == refused, (who, response.status)


def test_changes_are_audited() -> None:
    """All that changes something beyond taking in articles, or reading by POST."""
    reading = {"postArticle", "postBatch", "postRelated", "explain", "lookupPasted", "comparePasted"}

    assert {e.operation_id for e in ENDPOINTS if e.audited} == {
        e.operation_id for e in ENDPOINTS if e.method != "GET"
    } - reading


def test_needs_are_all_granted_to_somebody() -> None:
    """No route is out of everybody's reach."""
    assert {e.permission for e in ENDPOINTS} <= ROLE_PERMISSIONS["admin"]


async def test_no_keys_no_questions(client) -> None:
    """On loopback without a key everything is open; a page has no button to sign out."""
    assert (await client.post("/v1/articles", json={"text": "One text."})).status == 201
    assert "Sign out" not in await (await client.get("/")).text()


@pytest.mark.parametrize(
    "method, path", [("GET", "/v1/events"), ("DELETE", "/v1/articles/a"), ("GET", "/"), ("GET", "/metrics")]
)
@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "a.b/@"]
)
async def test_without_keys_no_name_of_a_stranger_is_answered(
    client, method: str, path: str, name: str
) -> None:
    """Else a page that lets its name point here is its own site, and does what it likes (DNS rebinding)."""
    host = {"Host": name}
    async with client.request(method, path, headers=host | {"Origin": f"http://{name}"}) as response:
        assert response.status == 403
        assert "public_url" in await response.text() or "another site" in await response.text()
    assert (await client.get("/healthz", headers=host)).status == 200


@pytest.mark.parametrize(
    "name",
    ["localhost:8080", "LOCALHOST.", "a.localhost", "[::1]:80", "10.1.2.3", "desk", "news.example:443"],
)
async def test_our_own_names_are_answered(name: str) -> None:
    """Addresses, what has no dot and belongs to nobody, and the name that readers are told."""
    async with serving(
        FakeService(Settings(store_url="memory", public_url="https://news.example"))
    ) as client:
        assert (await client.get("/v1/events", headers={"Host": name})).status == 200


async def test_with_keys_or_a_gate_of_its_own_any_name_will_do(guarded) -> None:
    """A key or a session stands for the caller, and belongs to one name; ``auth_disabled`` leaves it to the proxy."""
    host = {"Host": "news.example"}
    assert (await guarded.get("/v1/events", headers=host | bearer(guarded, "reader"))).status == 200
    async with serving(FakeService(Settings(store_url="memory", auth_disabled=True))) as client:
        assert (await client.get("/v1/events", headers=host)).status == 200


async def test_a_refusal_is_a_problem_that_says_what_to_do(guarded) -> None:
    """With the challenge that HTTP asks for, and never the key that was sent."""
    stranger = await guarded.get("/v1/events", headers=bearer(guarded, "a stranger"))
    crawler = await guarded.get("/v1/events", headers=bearer(guarded, "crawler"))
    told = await stranger.json(content_type="application/problem+json")

    assert (stranger.status, told["code"]) == (401, "unauthenticated")
    assert stranger.headers["WWW-Authenticate"] == 'Bearer realm="aggregator"'
    assert guarded.keys["a stranger"] not in await stranger.text()
    assert "invalid, revoked or expired access key" in told["detail"]
    nobody = await (await guarded.get("/v1/events")).json(content_type=None)
    assert nobody["detail"] == 'Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.'
    assert (await crawler.json(content_type=None))["detail"].startswith(
        "Authorization: the role crawler does not permit this"
    )


@pytest.mark.parametrize("path", ["/v1/events?key={}", "/v1/events?access_token={}", "/v1/events/{}"])
async def test_keys_in_addresses_open_nothing(guarded, path: str) -> None:
    """They would end up in logs of proxies and in histories."""
    response = await guarded.get(path.format(guarded.keys["admin"]))

    assert response.status == 401


async def test_of_two_keys_neither_is_taken(guarded) -> None:
    """A proxy that looks at the one must not let in what we see in the other."""
    headers = [("Authorization", f"Bearer {guarded.keys[who]}") for who in ("reader", "a stranger")]

    for both in (headers, headers[::-1]):
        assert (await guarded.get("/v1/events", headers=CIMultiDict(both))).status == 401


async def test_a_person_signs_in_and_out(guarded) -> None:
    """The page leads to the sign-in page and back; the session is a cookie that scripts cannot read."""
    origin = {"Origin": f"http://{guarded.host}:{guarded.port}"}
    page = {"Accept": "text/html"}
    away = await guarded.get("/events/e%2F1?x=1", headers=page, allow_redirects=False)
    form = await (await guarded.get(away.headers["Location"])).text()
    wrong = await guarded.post("/sign-in", data={"key": "nonsense"}, headers=origin)
    fields = {"key": guarded.keys["editor"], "next": "/lookup"}
    into = await guarded.post("/sign-in", data=fields, headers=origin, allow_redirects=False)
    cookie = into.headers["Set-Cookie"]
    shown = await (await guarded.get("/")).text()
    out = await guarded.post("/sign-out", headers=origin, allow_redirects=False)

    assert (away.status, away.headers["Location"]) == (303, "/sign-in?next=%2Fevents%2Fe%252F1%3Fx%3D1")
    assert 'value="/events/e%2F1?x=1"' in form
    assert wrong.status == 401
    assert (into.status, into.headers["Location"]) == (303, "/lookup")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert guarded.keys["editor"] not in cookie
    assert 'data-who="the editor"' in shown
    assert out.headers["Location"] == "/sign-in"
    assert (await guarded.get("/v1/events")).status == 401


@pytest.mark.parametrize(
    "next", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
async def test_signing_in_leads_nowhere_else(guarded, next: str) -> None:
    """No open redirect, neither in the form nor in the answer."""
    form = await (await guarded.get("/sign-in", params={"next": next})).text()
    fields = {"key": guarded.keys["reader"], "next": next}
    into = await guarded.post("/sign-in", data=fields, allow_redirects=False)

    assert 'name="next" value="/"' in form
    assert into.headers["Location"] == "/"


async def test_a_session_changes_things_only_from_our_own_pages(guarded) -> None:
    """A cookie alone does not speak for a person: the browser must say which page sends it."""
    origin = {"Origin": f"http://{guarded.host}:{guarded.port}"}
    await guarded.post("/sign-in", data={"key": guarded.keys["editor"]}, allow_redirects=False)
    body = {"name": "Bridges", "query": "term=bridge"}

    assert (await guarded.post("/v1/watches", json=body)).status == 403
    assert (
        await guarded.post("/v1/watches", json=body, headers={"Origin": "https://evil.example"})
    ).status == 403
    assert (await guarded.post("/v1/watches", json=body, headers=origin)).status == 201


async def test_actions_carry_the_name_of_the_key_and_are_audited(caplog) -> None:
    """Whatever name the body claims; one line per change, with key and request."""
    caplog.set_level(logging.INFO, "aggregator.audit")
    service = FakeService()
    key, text = await service.api_keys.add("Ada", "editor")
    service.events.told = [event("e1", "Bridge closed")]
    async with serving(service) as client:
        headers = {"Authorization": f"Bearer {text}", "X-Request-Id": "r-1"}
        body = {"action": "acknowledge", "actor": "Somebody else"}
        answer = await (await client.post("/v1/events/e1/actions", json=body, headers=headers)).json()

    assert answer["acknowledged_by"] == "Ada"
    assert caplog.messages[-1] == (
        f"postAction /v1/events/e1/actions by='Ada' key={key.id} status=200 request=r-1"
    )


async def test_who_is_refused_is_audited_seldom(guarded, caplog) -> None:
    """Keys that are tried do not go unseen, nor fill the log; whoever has none at all has only not signed in."""
    now_s = 0.0
    guarded.app[REJECTED_LOG]._throttle = LogThrottle(LOG_INTERVAL_S, lambda: now_s)
    caplog.set_level(logging.INFO, "aggregator.audit")

    async def refused(method: str, path: str, **more: object) -> str:
        """What is told of a request, ten seconds later."""
        nonlocal now_s
        now_s, told = now_s + LOG_INTERVAL_S, len(caplog.messages)
        response = await guarded.request(method, path, **more)
        assert response.status in (401, 403)
        return " ".join(caplog.messages[told:])

    assert await refused("GET", "/v1/events") == ""
    assert "refused GET /v1/events code=unauthenticated from=127.0.0.1 key=-" in await refused(
        "GET", "/v1/events", headers=bearer(guarded, "a stranger")
    )
    assert "refused POST /sign-in code=unauthenticated" in await refused(
        "POST", "/sign-in", data={"key": "nonsense"}
    )
    key = guarded.keys["reader"].split("_")[1]
    assert f"refused POST /v1/watches code=forbidden from=127.0.0.1 key={key} " in await refused(
        "POST", "/v1/watches", headers=bearer(guarded, "reader")
    )
    assert "code=cross_site" in await refused("POST", "/sign-out", headers={"Origin": "https://evil.example"})
    for _ in range(20):
        await guarded.post("/sign-in", data={"key": "nonsense"})
    assert "; 20 more since the last such line" in await refused("POST", "/sign-in", data={"key": "nonsense"})
    assert "nonsense" not in caplog.text
    assert len(caplog.messages) == 5


async def test_the_audit_log_cannot_be_written_by_callers(guarded, caplog) -> None:
    """Line ends, escape sequences and braces in an address stay one line of printable characters."""
    caplog.set_level(logging.INFO)
    for id_ in ("a%0Aaudit by='root'", "%1B[2J", "{0}%s%n", "\u2028x"):
        response = await guarded.delete(f"/v1/watches/{id_}", headers=bearer(guarded, "editor"))
        assert response.status in (204, 400, 404)

    assert all(message.isprintable() for message in caplog.messages)
    assert not any(secret in caplog.text for secret in guarded.keys.values())


async def test_metrics_may_be_open(caplog) -> None:
    """By choice, and then nothing else is."""
    service = FakeService(Settings(store_url="memory", metrics_public=True))
    _, text = await service.api_keys.add("Ada", "reader")
    async with serving(service) as client:
        metrics = await client.get("/metrics")
        events = await client.get("/v1/events")
        page = await (await client.get("/metrics")).text()

    assert (metrics.status, events.status) == (200, 401)
    assert text not in page
    assert "Ada" not in page


async def test_a_key_for_one_source_touches_no_other(client, service) -> None:
    """Posts, lines of a batch, and what it deletes."""
    await client.post("/v1/articles", json={"id": "theirs", "source": "Radio", "text": "One text."})
    _, text = await service.api_keys.add("Gazette", "crawler", sources=("Gazette",))
    headers = {"Authorization": f"Bearer {text}"}
    own = {"id": "own", "source": "Gazette", "text": "Another text."}
    lines = b'{"source": "Gazette", "text": "Third."}\n{"source": "Radio", "text": "Fourth."}\n'

    assert (await client.post("/v1/articles", json=own, headers=headers)).status == 201
    assert (await client.post("/v1/articles", json={**own, "source": "Radio"}, headers=headers)).status == 403
    assert (await client.post("/v1/articles", json={"text": "No source."}, headers=headers)).status == 403
    batch = (await (await client.post("/v1/articles/batch", data=lines, headers=headers)).text()).splitlines()
    assert '"verdict":"new"' in batch[0]
    assert '"code":"forbidden"' in batch[1]
    assert (await client.delete("/v1/articles/theirs", headers=headers)).status == 403
    assert (await client.delete("/v1/articles/own", headers=headers)).status == 204


async def test_a_key_over_its_limit_is_told_when_to_come_back() -> None:
    """429 with Retry-After; the lines of a batch count."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=2.0))
    _, text = await service.api_keys.add("Crawler", "crawler")
    headers = {"Authorization": f"Bearer {text}"}
    async with serving(service) as client:
        statuses = [
            (await client.post("/v1/articles", json={"text": f"Text {n}."}, headers=headers)).status
            for n in range(8)
        ]
        refused = await client.post("/v1/articles", json={"text": "Last."}, headers=headers)
        told = await refused.json(content_type=None)

    assert statuses == [201] * 4 + [429] * 4
    assert refused.headers["Retry-After"] == "1"
    assert told["code"] == "over_limit"


async def test_watching_goes_on_over_the_limit() -> None:
    """Figures cost nothing: who must see that a limit is too low, or that the store which counts is away."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=0.001))
    _, text = await service.api_keys.add("Prometheus", "reader")
    headers = {"Authorization": f"Bearer {text}"}
    async with serving(service) as client:
        statuses = [(await client.get(path, headers=headers)).status
                    for path in ("/metrics", "/v1/events", "/v1/events", "/metrics", "/metrics")]  # fmt: skip

    assert statuses == [200, 200, 429, 200, 200]


async def test_signing_in_counts_towards_the_limit() -> None:
    """Each session is kept in the store for half a day: a reader must not fill it."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=1.0))
    _, text = await service.api_keys.add("Reader", "reader")
    async with serving(service) as client:
        answers = [await client.post("/sign-in", data={"key": text}, allow_redirects=False) for _ in range(3)]

    assert [answer.status for answer in answers] == [303, 303, 429]
