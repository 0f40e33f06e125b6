"""Authorization of every route for every role, sessions, audit log and rate limit."""

from __future__ import annotations

import gzip
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from multidict import CIMultiDict

from aggregator.auth.api_keys import ROLE_PERMISSIONS, ApiKey, Role
from aggregator.errors import InvalidInput
from aggregator.http.endpoint import Endpoint
from aggregator.http.errors import LOG_INTERVAL_S, REFUSAL_LOG
from aggregator.http.pages.sign_in import MAX_FORM_BYTES
from aggregator.http.routes import ENDPOINTS
from aggregator.log_limits import LogThrottle
from aggregator.settings import Settings
from tests.support.factories import event
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration

# Roles that each route admits, written independently of the code, so that a mistake there fails a test.
OPEN = "all"
ADMITTED_ROLES = {
    "postArticle": "crawler admin",
    "postBatch": "crawler admin",
    "deleteArticle": "crawler admin",
    "getArticle": "crawler reader editor admin",
    "getCopies": "reader editor admin",
    "getProvenance": "reader editor admin",
    "getEventProvenance": "reader editor admin",
    "getEventItems": "reader editor admin",
    "getEventItemsCsv": "reader editor admin",
    "getReadMark": "reader editor admin",
    "postReadMark": "reader editor admin",
    "listSources": "reader editor admin",
    "getSource": "reader editor admin",
    "putSource": "admin",
    "articleProvenance": "reader editor admin",
    "eventProvenance": "reader editor admin",
    "sourcesPage": "reader editor admin",
    "sourcePage": "reader editor admin",
    "getRelated": "related reader editor admin",
    "getRelatedToNothing": "related reader editor admin",
    "postRelated": "related reader editor admin",
    "postRelatedBatch": "related reader editor admin",
    "explain": "reader editor admin",
    "listEvents": "reader editor admin",
    "listTopStories": "reader editor admin",
    "streamEvents": "reader editor admin",
    "atomFeed": "reader editor admin",
    "getEvent": "reader editor admin",
    "getStory": "reader editor admin",
    "postAction": "editor admin",
    "postDesk": "editor admin",
    "listDesks": "reader editor admin",
    "getDesk": "reader editor admin",
    "putDesk": "editor admin",
    "deleteDesk": "editor admin",
    "postTarget": "editor admin",
    "desksPage": "reader editor admin",
    "createDesk": "editor admin",
    "deskPage": "reader editor admin",
    "changeDesk": "editor admin",
    "webhooksPage": "editor admin",
    "webhookPage": "editor admin",
    "changeWebhook": "editor admin",
    "postWebhook": "editor admin",
    "listWebhooks": "editor admin",
    "getWebhook": "editor admin",
    "deleteWebhook": "editor admin",
    "postWebhookAction": "editor admin",
    "metrics": "reader editor admin",
    "front": "reader editor admin",
    "report": "reader editor admin",
    "story": "reader editor admin",
    "search": "reader editor admin",
    "listArticles": "reader editor admin",
    "searchPage": "reader editor admin",
    "searchPasted": "reader editor admin",
    "daysPage": "reader editor admin",
    "dayPage": "reader editor admin",
    "getDay": "reader editor admin",
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
NO_KEY, UNKNOWN_KEY = "no key", "unknown key"
CALLERS = (NO_KEY, UNKNOWN_KEY, *ROLE_PERMISSIONS)


@pytest.fixture
def keys() -> dict[str, str]:
    """The key of each role, and an unknown one; filled by ``guarded``."""
    return {}


@pytest.fixture
async def guarded(keys: dict[str, str]) -> AsyncIterator[Client]:
    """A client of a service that requires keys."""
    service = FakeService(Settings(store_url="memory"))
    for role in ROLE_PERMISSIONS:
        _, keys[role] = await service.edge.api_keys.add(f"the {role}", role)
    keys[UNKNOWN_KEY] = keys["admin"][:-1] + ("a" if keys["admin"][-1] != "a" else "b")
    async with serving(service) as client:
        yield client


def bearer(key: str | None) -> dict[str, str]:
    """The Authorization header of a key; empty for None."""
    return {"Authorization": f"Bearer {key}"} if key is not None else {}


def test_the_table_covers_every_route() -> None:
    """A new route needs an entry here."""
    assert set(ADMITTED_ROLES) == {endpoint.operation_id for endpoint in ENDPOINTS}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.operation_id)
async def test_every_route_with_every_role(guarded: Client, keys: dict[str, str], endpoint: Endpoint) -> None:
    """401 without a valid key, 403 with a role that does not suffice, anything else otherwise."""
    allowed = (
        CALLERS
        if ADMITTED_ROLES[endpoint.operation_id] == OPEN
        else ADMITTED_ROLES[endpoint.operation_id].split()
    )
    path = endpoint.path.replace("{id}", "none").replace("{name}", "page.css").replace("{date}", "2026-11-20")
    for caller in CALLERS:
        methods = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
        for method in methods:
            async with guarded.request(
                method, path, headers=bearer(keys.get(caller)), allow_redirects=False
            ) as response:
                refused_status = 401 if caller in (NO_KEY, UNKNOWN_KEY) else 403
                if caller in allowed:
                    assert response.status not in (403, 429, 500), (caller, response.status)
                    assert response.status != 401 or endpoint.operation_id == "signIn"
                else:
                    assert response.status == refused_status, (caller, response.status)


def test_changes_are_audited() -> None:
    """Every route that changes state, except for storing articles and reading by POST."""
    reading = {
        "postArticle",
        "postBatch",
        "postRelated",
        "postRelatedBatch",
        "explain",
        "searchPasted",
        "comparePasted",
        "postReadMark",
    }

    assert {e.operation_id for e in ENDPOINTS if e.audited} == {
        e.operation_id for e in ENDPOINTS if e.method != "GET"
    } - reading


def test_every_permission_is_granted_to_admins() -> None:
    """No route is unreachable."""
    assert {e.permission for e in ENDPOINTS} <= ROLE_PERMISSIONS["admin"]


async def test_without_keys_everything_is_open(client: Client) -> None:
    """On loopback; pages have no sign-out button."""
    assert (await client.post("/v1/articles", json={"text": "One text."})).status == 201
    assert "Sign out" not in await (await client.get("/")).text()


async def test_a_refusal_says_what_to_do(guarded: Client, keys: dict[str, str]) -> None:
    """With the challenge that HTTP requires, and without the key that was sent."""
    unknown = await guarded.get("/v1/events", headers=bearer(keys[UNKNOWN_KEY]))
    crawler = await guarded.get("/v1/events", headers=bearer(keys["crawler"]))
    problem = await unknown.json(content_type="application/problem+json")

    assert (unknown.status, problem["code"]) == (401, "unauthenticated")
    assert unknown.headers["WWW-Authenticate"] == 'Bearer realm="aggregator"'
    assert keys[UNKNOWN_KEY] not in await unknown.text()
    assert "invalid, revoked or expired access key" in problem["detail"]
    no_key = await (await guarded.get("/v1/events")).json(content_type=None)
    assert no_key["detail"] == 'Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.'
    assert (await crawler.json(content_type=None))["detail"].startswith(
        "Authorization: the role crawler does not permit this"
    )


@pytest.mark.parametrize("path", ["/v1/events?key={}", "/v1/events?access_token={}", "/v1/events/{}"])
async def test_keys_in_addresses_are_ignored(guarded: Client, keys: dict[str, str], path: str) -> None:
    """They would end up in proxy logs and browser histories."""
    response = await guarded.get(path.format(keys["admin"]))

    assert response.status == 401


async def test_two_authorization_headers_are_refused(guarded: Client, keys: dict[str, str]) -> None:
    """A proxy may check one of them while the service reads the other."""
    headers = [("Authorization", f"Bearer {keys[name]}") for name in ("reader", UNKNOWN_KEY)]

    for order in (headers, headers[::-1]):
        assert (await guarded.get("/v1/events", headers=CIMultiDict(order))).status == 401


async def test_signing_in_and_out(guarded: Client, keys: dict[str, str]) -> None:
    """Redirect to the sign-in page and back; the session cookie is not readable by scripts."""
    origin = {"Origin": f"http://{guarded.host}:{guarded.port}"}
    page = {"Accept": "text/html"}
    redirect = await guarded.get("/events/e%2F1?x=1", headers=page, allow_redirects=False)
    form = await (await guarded.get(redirect.headers["Location"])).text()
    wrong = await guarded.post("/sign-in", data={"key": "nonsense"}, headers=origin)
    fields = {"key": keys["editor"], "next": "/search"}
    signed_in = await guarded.post("/sign-in", data=fields, headers=origin, allow_redirects=False)
    cookie = signed_in.headers["Set-Cookie"]
    page_text = await (await guarded.get("/")).text()
    signed_out = await guarded.post("/sign-out", headers=origin, allow_redirects=False)

    assert (redirect.status, redirect.headers["Location"]) == (
        303,
        "/sign-in?next=%2Fevents%2Fe%252F1%3Fx%3D1",
    )
    assert 'value="/events/e%2F1?x=1"' in form
    assert wrong.status == 401
    assert (signed_in.status, signed_in.headers["Location"]) == (303, "/search")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert keys["editor"] not in cookie
    assert 'data-user="the editor"' in page_text
    assert signed_out.headers["Location"] == "/sign-in"
    assert (await guarded.get("/v1/events")).status == 401


@pytest.mark.parametrize(
    "next", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
async def test_sign_in_is_no_open_redirect(guarded: Client, keys: dict[str, str], next: str) -> None:
    """Neither in the form nor in the response."""
    form = await (await guarded.get("/sign-in", params={"next": next})).text()
    fields = {"key": keys["reader"], "next": next}
    signed_in = await guarded.post("/sign-in", data=fields, allow_redirects=False)

    assert 'name="next" value="/"' in form
    assert signed_in.headers["Location"] == "/"


async def test_a_session_cannot_be_used_by_other_sites(guarded: Client, keys: dict[str, str]) -> None:
    """A change needs an Origin header of this service in addition to the cookie."""
    origin = {"Origin": f"http://{guarded.host}:{guarded.port}"}
    await guarded.post("/sign-in", data={"key": keys["editor"]}, allow_redirects=False)
    body = {"name": "Bridges", "terms": ["bridge"]}

    assert (await guarded.post("/v1/desks", json=body)).status == 403
    assert (
        await guarded.post("/v1/desks", json=body, headers={"Origin": "https://evil.example"})
    ).status == 403
    assert (await guarded.post("/v1/desks", json=body, headers=origin)).status == 201


async def test_actions_are_recorded_under_the_name_of_the_key(caplog: pytest.LogCaptureFixture) -> None:
    """Not under the name in the body; the audit log has one line with key and request id."""
    caplog.set_level(logging.INFO, "aggregator.audit")
    service = FakeService()
    key, text = await service.edge.api_keys.add("Ada", "editor")
    service.fake_events.stored = [event("e1", "Bridge closed")]
    async with serving(service) as client:
        headers = {"Authorization": f"Bearer {text}", "X-Request-Id": "r-1"}
        body = {"action": "acknowledge", "actor": "Somebody else"}
        answer = await (await client.post("/v1/events/e1/actions", json=body, headers=headers)).json()

    assert answer["acknowledged_by"] == "Ada"
    assert caplog.messages[-1] == (
        f"postAction /v1/events/e1/actions by='Ada' key={key.id} status=200 request=r-1"
    )


async def test_refusals_are_logged_and_throttled(
    guarded: Client, keys: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Invalid and insufficient keys are logged at a limited rate; a missing key is not logged."""
    now_s = 0.0
    guarded.app[REFUSAL_LOG]._throttle = LogThrottle(LOG_INTERVAL_S, lambda: now_s)
    caplog.set_level(logging.INFO, "aggregator.audit")

    async def log_of_refused(method: str, path: str, **options: Any) -> str:
        """The log lines of a request, 10 s after the previous one."""
        nonlocal now_s
        now_s, logged_before = now_s + LOG_INTERVAL_S, len(caplog.messages)
        response = await guarded.request(method, path, **options)
        assert response.status in (401, 403)
        return " ".join(caplog.messages[logged_before:])

    assert await log_of_refused("GET", "/v1/events") == ""
    assert "refused GET /v1/events code=unauthenticated from=127.0.0.1 key=-" in await log_of_refused(
        "GET", "/v1/events", headers=bearer(keys[UNKNOWN_KEY])
    )
    assert "refused POST /sign-in code=unauthenticated" in await log_of_refused(
        "POST", "/sign-in", data={"key": "nonsense"}
    )
    key_id = keys["reader"].split("_")[1]
    assert f"refused POST /v1/desks code=forbidden from=127.0.0.1 key={key_id} " in await log_of_refused(
        "POST", "/v1/desks", headers=bearer(keys["reader"])
    )
    assert "code=cross_site" in await log_of_refused(
        "POST", "/sign-out", headers={"Origin": "https://evil.example"}
    )
    for _ in range(20):
        await guarded.post("/sign-in", data={"key": "nonsense"})
    assert "; 20 more since the last such line" in await log_of_refused(
        "POST", "/sign-in", data={"key": "nonsense"}
    )
    assert "nonsense" not in caplog.text
    assert len(caplog.messages) == 5


async def test_the_audit_log_cannot_be_forged(
    guarded: Client, keys: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Line breaks, escape sequences and braces in an address are logged as printable characters."""
    caplog.set_level(logging.INFO)
    for id_ in ("a%0Aaudit by='root'", "%1B[2J", "{0}%s%n", "\u2028x"):
        response = await guarded.delete(f"/v1/desks/{id_}", headers=bearer(keys["editor"]))
        assert response.status in (204, 400, 404)

    assert all(message.isprintable() for message in caplog.messages)
    assert not any(secret in caplog.text for secret in keys.values())


async def test_metrics_may_be_public(caplog: pytest.LogCaptureFixture) -> None:
    """With the setting metrics_public; nothing else is then."""
    service = FakeService(Settings(store_url="memory", metrics_public=True))
    _, text = await service.edge.api_keys.add("Ada", "reader")
    async with serving(service) as client:
        metrics = await client.get("/metrics")
        events = await client.get("/v1/events")
        page = await (await client.get("/metrics")).text()

    assert (metrics.status, events.status) == (200, 401)
    assert text not in page
    assert "Ada" not in page


async def test_a_key_for_one_source_cannot_touch_others(client: Client, service: FakeService) -> None:
    """Single articles, lines of a batch, and deletions."""
    await client.post("/v1/articles", json={"id": "other", "source": "Radio", "text": "One text."})
    _, text = await service.edge.api_keys.add("Gazette", "crawler", sources=("Gazette",))
    headers = {"Authorization": f"Bearer {text}"}
    body = {"id": "own", "source": "Gazette", "text": "Another text."}
    lines = b'{"source": "Gazette", "text": "Third."}\n{"source": "Radio", "text": "Fourth."}\n'

    assert (await client.post("/v1/articles", json=body, headers=headers)).status == 201
    assert (
        await client.post("/v1/articles", json={**body, "source": "Radio"}, headers=headers)
    ).status == 403
    assert (await client.post("/v1/articles", json={"text": "No source."}, headers=headers)).status == 201
    assert {article.source for article in service.submitted} == {"Radio", "Gazette"}
    batch = (await (await client.post("/v1/articles/batch", data=lines, headers=headers)).text()).splitlines()
    assert '"verdict":"new"' in batch[0]
    assert '"code":"forbidden"' in batch[1]
    assert (await client.delete("/v1/articles/other", headers=headers)).status == 403
    assert (await client.delete("/v1/articles/own", headers=headers)).status == 204


async def test_a_key_bound_to_sources_grants_no_more_than_a_crawler(
    client: Client, service: FakeService
) -> None:
    """Only crawler keys can be created with sources; a key of several must name one in each article."""
    roles: tuple[Role, ...] = ("reader", "editor", "admin")
    for role in roles:
        with pytest.raises(InvalidInput, match="only keys with the role crawler"):
            await service.edge.api_keys.add("Gazette", role, sources=("Gazette",))
    assert not ApiKey("i", "n", "admin", b"", 0, sources=("Gazette",)).allows("reader")
    _, text = await service.edge.api_keys.add("Both", "crawler", sources=(" Gazette ", "Radio"))
    headers = {"Authorization": f"Bearer {text}"}
    bodies = [{"text": "One."}, {"text": "One.", "source": "Gazette"}, {"text": "Two.", "source": "Radio"}]
    responses = [await client.post("/v1/articles", json=body, headers=headers) for body in bodies]

    assert [response.status for response in responses] == [403, 201, 201]


async def test_a_key_over_its_rate_limit_gets_retry_after() -> None:
    """429 with Retry-After; the lines of a batch count."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=2.0))
    _, text = await service.edge.api_keys.add("Crawler", "crawler")
    headers = {"Authorization": f"Bearer {text}"}
    async with serving(service) as client:
        statuses = [
            (await client.post("/v1/articles", json={"text": f"Text {n}."}, headers=headers)).status
            for n in range(8)
        ]
        refused = await client.post("/v1/articles", json={"text": "Last."}, headers=headers)
        problem = await refused.json(content_type=None)

    assert statuses == [201] * 4 + [429] * 4
    assert refused.headers["Retry-After"] == "1"
    assert problem["code"] == "over_limit"


async def test_invalid_lines_of_a_batch_are_charged() -> None:
    """Reading them is work, too: a key cannot send any number of them."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=2.0))
    _, text = await service.edge.api_keys.add("Crawler", "crawler")
    headers = {"Authorization": f"Bearer {text}"}
    async with serving(service) as client:
        await (await client.post("/v1/articles/batch", data=b"{}\n" * 100, headers=headers)).read()
        refused = await client.post("/v1/articles/batch", data=b"{}\n", headers=headers)

    assert refused.status == 429


async def test_scrapes_are_not_rate_limited() -> None:
    """Monitoring must show that a limit is too low or that the store is unavailable."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=0.001))
    _, text = await service.edge.api_keys.add("Prometheus", "reader")
    headers = {"Authorization": f"Bearer {text}"}
    async with serving(service) as client:
        statuses = [(await client.get(path, headers=headers)).status
                    for path in ("/metrics", "/v1/events", "/v1/events", "/metrics", "/metrics")]  # fmt: skip

    assert statuses == [200, 200, 429, 200, 200]


async def test_sign_in_is_rate_limited() -> None:
    """Each session is stored for half a day; a reader must not fill the store."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=1.0))
    _, text = await service.edge.api_keys.add("Reader", "reader")
    async with serving(service) as client:
        answers = [await client.post("/sign-in", data={"key": text}, allow_redirects=False) for _ in range(3)]

    assert [answer.status for answer in answers] == [303, 303, 429]


async def test_the_sign_in_form_is_small_and_uncompressed(guarded: Client, keys: dict[str, str]) -> None:
    """It is the only body that is read without a key."""
    compressed = await guarded.post(
        "/sign-in", data=gzip.compress(b"key=abc"), headers={"Content-Encoding": "gzip"}
    )
    large = await guarded.post("/sign-in", data={"key": "x" * MAX_FORM_BYTES})
    article = await guarded.post(
        "/v1/articles", data=gzip.compress(b"{}") * 9, headers={"Content-Encoding": "gzip"}
    )

    assert (compressed.status, large.status, article.status) == (415, 413, 401)
