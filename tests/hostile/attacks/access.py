"""Attacks on authentication, authorization, sessions and hosts."""

from __future__ import annotations

import random
import statistics
import time
from urllib.parse import urlencode

from aggregator.auth.api_keys import ROLE_PERMISSIONS
from aggregator.http.endpoint import Endpoint
from aggregator.http.routes import ENDPOINTS
from tests.hostile.attacks.running import ROLES, Target, status_of

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REFUSED = (400, 401, 403, 404, 405, 413, 421)
INVALID_CALLERS = ("no key", "wrong", "expired", "revoked")
PATH_TRICKS = (
    "//v1/events", "/v1//events", "/v1/events/", "/v1/./events", "/v1/../v1/events", "/static/../v1/events",
    "/static/..%2fv1%2fevents", "/static/%2e%2e/v1/events", "/healthz/../v1/events", "/healthz/..;/v1/events",
    "/healthz;/v1/events", "/v1/events;.css", "/v1/events%00", "/v1/events%00.css", "/v1/events%20",
    "/v1/%65vents", "/V1/EVENTS", "/v1%2fevents", "/%2fv1/events", "/v1\\events", "/v1/events%2f",
    "/v1/events%23/healthz", "/v1/events?x=/healthz", "/%6detrics", "/metrics/", "//metrics", "/metrics%00",
    "/healthz%2f..%2fmetrics", "/readyz/..%2f..%2fmetrics", "/docs/..%2fmetrics", "/sign-in/..%2f",
    "/static/..%2f..%2f..%2fetc%2fpasswd", "/static/....//page.css", "/static/page.css%00.js", "/static/",
    "/static/%2e%2e%5c%2e%2e%5cetc", "/static/C:%5Cwindows", "/v1/events#", "/.git/config", "/%2e/", "/..",
)  # fmt: skip
HOSTS_REFUSED = (
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:80",
    "a b", "evil.example@localhost", "evil.example\\@localhost", "localhost\\.evil.example", "[::1",
    "localhost/evil.example", "localhost?evil.example", "localhost#evil.example", "127.0.0.1:80,evil.example",
    "evil.example/.localhost", "localhost:evil.example", "evil.example%00localhost", "evil\u3002example",
    "localhost:99999999", "localhost, evil.example", "localhost;evil.example", "\"localhost\"", "<localhost>",
)  # fmt: skip


async def roles(target: Target) -> None:
    """Every route with every caller, and with HEAD, OPTIONS and method overrides."""
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{name}", "unknown.css").replace("{date}", "2026-01-31")
        path = path.replace("{id}", "unknown")
        public = endpoint.permission == "nothing"
        # Any key may delete by the table: its handler asks crawlers to, editors for a take-down only.
        needed = "crawler" if endpoint.method == "DELETE" and path == "/v1/articles/unknown" else ""
        permission = needed or endpoint.permission
        for caller in INVALID_CALLERS:
            status = await _status(target, endpoint, path, caller)
            target.findings.check(
                "routes x callers", public or status == 401, f"{endpoint.method} {path} {caller}: {status}"
            )
        for role in (*ROLES, "bound"):
            own = "crawler" if role == "bound" else role
            granted = next(each for name, each in ROLE_PERMISSIONS.items() if name == own)
            status = await _status(target, endpoint, path, role)
            is_right = status not in (401, 403) if permission in granted else status == 403
            target.findings.check("routes x callers", is_right, f"{endpoint.method} {path} {role}: {status}")
        if public:
            continue
        for method in ("HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "CONNECT", "get", "PROPFIND", "X" * 40):
            status, _, body = await target.request(method, path)
            # OPTIONS only names the methods of an address, which the OpenAPI document does too.
            expected = status == 204 and not body if method == "OPTIONS" else status in (0, *REFUSED)
            target.findings.check("methods and overrides", expected, f"{method} {path}: {status}")
        for name in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X-Original-URL"):
            status, _, _ = await target.request(
                endpoint.method, path, headers={name: "GET" if "Method" in name else "/healthz"}
            )
            target.findings.check("methods and overrides", status == 401, f"{name} {path}: {status}")
            status, _, _ = await target.request("GET", "/healthz", headers={name: path})
            target.findings.check("methods and overrides", status == 200, f"{name} /healthz: {status}")


async def _status(target: Target, endpoint: Endpoint, path: str, caller: str) -> int:
    """Status of a request that changes nothing; the headers suffice for an event stream."""
    if path == "/v1/events/stream":
        status, _, _ = await target.request("HEAD", path, caller)
        return status
    body = b"{}" if endpoint.body is not None or endpoint.method == "POST" else None
    status, _, _ = await target.request(endpoint.method, path, caller, data=body)
    return 404 if endpoint.path == "/sign-in" and status == 401 else status  # the form has no key


async def paths(target: Target) -> None:
    """Paths that a router and a proxy may read differently, without a key."""
    for path in PATH_TRICKS:
        answer = await target.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        allowed = status_of(answer) in REFUSED or b"Location: /sign-in" in answer
        target.findings.check("paths without a key", allowed, f"{path}: {answer[:60]!r}")
        for line in (f"GET http://localhost{path} HTTP/1.1", f"GET http://evil.example{path} HTTP/1.1"):
            answer = await target.send(f"{line}\r\nHost: localhost\r\n\r\n".encode())
            target.findings.check(
                "paths without a key", status_of(answer) in REFUSED, f"{line}: {answer[:60]!r}"
            )


async def presentations(target: Target) -> None:
    """Ways to present a key other than the one that is accepted."""
    key, wrong = target.keys["admin"], target.keys["wrong"]
    odd: list[list[tuple[str, str]]] = [
        [("Authorization", key)], [("Authorization", f"Basic {key}")], [("Authorization", f"Bearer{key}")],
        [("Authorization", f"Bearer {key} x")], [("Authorization", f"Bearer {key},{key}")],
        [("Authorization", f"Token {key}")], [("Authorization", f"Bearer {key[:-1]}")],
        [("Authorization", f"Bearer {key.upper()}")], [("Authorization", f"Bearer {key}\x00")],
        [("Authorization", f'Bearer "{key}"')], [("Authorization", "Bearer agg__")],
        [("Authorization", f"Bearer {'_'.join(key.split('_')[:2])}_")], [("Authorization", "Bearer ")],
        [("Authorization", f"Bearer {key}"), ("Authorization", f"Bearer {wrong}")],
        [("Authorization", f"Bearer {wrong}"), ("Authorization", f"Bearer {key}")],
        [("X-Api-Key", key)], [("Cookie", f"aggregator_session={key}")], [("Proxy-Authorization",
        f"Bearer {key}")],
        [("X-Forwarded-User", "admin")], [("X-Forwarded-For", "127.0.0.1")], [("Forwarded", "for=127.0.0.1")],
        [("X-Real-Ip", "127.0.0.1")], [("X-Remote-User", "admin")], [("Cookie", "aggregator_session=")],
        [("Cookie", "aggregator_session=../../../../access}keys")], [("Authorization",
        "Bearer " + "a" * 7000)],
        [("X-Authorization", f"Bearer {key}")], [("Authorization\x20", f"Bearer {key}")],
        [("Authorization", f"Bearer\u00a0{key}")], [("Authorization", "Bearer \x7f")],
    ]  # fmt: skip
    for headers in odd:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        answer = await target.send(
            f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode("latin-1")
        )
        target.findings.check(
            "presentations of a key", status_of(answer) in REFUSED, f"{headers}: {answer[:40]!r}"
        )
    for query in ("key", "access_token", "api_key", "token", "authorization"):
        for method, path in (("GET", "/v1/events"), ("POST", "/v1/articles"), ("GET", "/")):
            status, _, _ = await target.request(method, f"{path}?{urlencode({query: key})}", data=b"")
            target.findings.check("presentations of a key", status == 401, f"{path}?{query}=: {status}")


async def hosts(target: Target) -> None:
    """Unknown and malformed hosts, forwarded headers, and links built from them."""
    key = f"Authorization: Bearer {target.keys['reader']}\r\n"
    for host in HOSTS_REFUSED:
        for path in ("/v1/events.atom", "/", "/sign-in"):
            answer = await target.send(
                f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{key}\r\n".encode("utf-8", "replace")
            )
            refused = status_of(answer) in (400, 421)
            target.findings.check("hosts", refused, f"Host {host!r} {path}: {answer[:40]!r}")
    for lines in ("", "Host: localhost\r\nHost: evil.example\r\n", " Host: evil.example\r\n"):
        answer = await target.send(f"GET /v1/events.atom HTTP/1.1\r\n{lines}{key}\r\n".encode())
        target.findings.check("hosts", status_of(answer) in (400, 421), f"{lines!r}: {answer[:40]!r}")
    forwarded = (
        ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Proto", "evil"), ("X-Host", "evil.example"),
        ("Forwarded", "host=evil.example"), ("X-Forwarded-Server", "evil.example"), ("X-Original-URL",
        "/evil"),
        ("X-Rewrite-URL", "/evil"), ("X-Forwarded-Prefix", "/evil"), ("X-Forwarded-Scheme", "evil"),
    )  # fmt: skip
    for name, value in forwarded:
        for path in ("/v1/events.atom", "/"):
            status, headers, body = await target.request("GET", path, "reader", headers={name: value})
            target.findings.check(
                "hosts",
                status == 200 and b"evil" not in body and "evil" not in str(headers),
                f"{name} {path}",
            )
    for path in (
        "/v1/events.atom",
        "/",
        "/search?q=x",
        "/health",
        "/v1/events",
        "/metrics",
    ):
        status, headers, _ = await target.request("GET", path, "reader")
        control = headers.get("Cache-Control", "")
        target.findings.check("caches", "no-store" in control or "private" in control, f"{path}: {control!r}")
        target.findings.check("caches", "Access-Control-Allow-Origin" not in headers, f"{path}: CORS")


async def disclosure(target: Target) -> None:
    """Keys in logs, metrics and errors; the time of a key check; forged log lines."""
    await target.request(
        "GET", "/v1/%0aforged audit line?x=%0aforged", "wrong", headers={"X-Request-Id": "x\ty"}
    )
    await target.request("POST", "/sign-in", data=urlencode({"key": "secret-of-a-user"}), headers=FORM)
    damaged = f"Authorization: Bearer {target.keys['admin']}\x00\r\n\r\n"
    await target.send(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n" + damaged.encode())
    _, _, metrics = await target.request("GET", "/metrics", "admin")
    log = target.log.read_bytes()
    secrets_ = {name: key.encode() for name, key in target.keys.items()} | {"typed": b"secret-of-a-user"}
    for name, secret in secrets_.items():
        target.findings.check("disclosure", secret not in log, f"the key {name} is in the log")
        target.findings.check("disclosure", secret not in metrics, f"the key {name} is in the metrics")
    for text in (b"\nforged", b"Traceback", b"\x1b"):
        target.findings.check("disclosure", text not in log, f"the log contains {text!r}")
    for path in ("/v1/events/x", "/v1/articles/x", "/nothing", "/v1/webhooks/x", "/static/x"):
        _, headers, body = await target.request("GET", path, "admin")
        leaks = [word for word in (b"Traceback", b"/aggregator/", b"aiohttp", b"Python/") if word in body]
        target.findings.check(
            "disclosure", not leaks and headers.get("Server") == "aggregator", f"{path}: {leaks}"
        )
    known, unknown = target.keys["wrong"], "agg_00000000_" + target.keys["wrong"].split("_", 2)[2]
    times: dict[str, list[float]] = {known: [], unknown: []}
    for _ in range(150):
        for key in random.sample([known, unknown], 2):
            started = time.perf_counter()
            await target.request("GET", "/v1/events", headers={"Authorization": f"Bearer {key}"})
            times[key].append(time.perf_counter() - started)
    first, second = (statistics.quantiles(each, n=5)[0] for each in times.values())
    target.findings.notes["timing of key checks"] = (
        f"known id {first * 1e6:.0f} us, unknown {second * 1e6:.0f} us"
    )
    target.findings.check("disclosure", 0.5 < first / second < 2, "time of a key check")


async def rate_limit(target: Target) -> None:
    """A service with a rate limit of 5: requests and articles beyond it, by any way."""
    lines = b"".join(
        b'{"text": "The lock %d of Estmark is closed for the winter."}\n' % i for i in range(100)
    )
    check = target.findings.check

    async def refused(method: str, path: str, key: str, number: int, **options: object) -> int:
        statuses = [(await target.request(method, path, key, **options))[0] for _ in range(number)]
        return statuses.count(429)

    check("rate limit", await refused("GET", "/v1/events", "reader", 40) >= 20, "40 GETs")
    check("rate limit", await refused("HEAD", "/v1/events", "reader", 40) >= 30, "40 HEADs")
    check("rate limit", await refused("GET", "/nothing", "reader", 3) == 0, "unknown paths cost nothing")
    await target.request("POST", "/v1/articles/batch", "crawler", data=lines)
    check(
        "rate limit", await refused("POST", "/v1/articles", "crawler", 5, data=b"{}") == 5, "after 100 lines"
    )
    _, _, answer = await target.request("POST", "/v1/articles/batch", "bound", data=b"{}\n" * 100)
    limited = answer.count(b"over_limit")
    status, _, _ = await target.request("POST", "/v1/articles/batch", "bound", data=b"{}\n")
    check("rate limit", status == 429 or limited > 0, f"100 invalid lines: {limited}, then {status}")
    for _ in range(12):
        await target.request("POST", "/sign-in", data=urlencode({"key": target.keys["editor"]}), headers=FORM)
    status, _, _ = await target.request(
        "POST", "/sign-in", data=urlencode({"key": target.keys["editor"]}), headers=FORM
    )
    check("rate limit", status == 429, f"sign-ins: {status}")


async def without_keys(target: Target) -> None:
    """A service on loopback that requires no key yet: pages of other sites may neither read nor change."""
    article = b'{"text": "The lock of Estmark is closed for the winter."}'
    for method, path, body in (
        ("POST", "/v1/articles", article), ("POST", "/v1/articles/batch", article), ("DELETE",
        "/v1/articles/x", b""),
        ("POST", "/v1/desks", b'{"name": "x", "terms": ["x"]}'), ("POST", "/v1/webhooks",
        b'{"url": "https://x.example"}'),
        ("POST", "/v1/events/x/actions", b'{"action": "mute", "actor": "x"}'), ("POST", "/v1/related",
        article),
    ):  # fmt: skip
        for headers in (
            {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://localhost:1"},
            {"Origin": "http://evil.example:80"},
        ):  # fmt: skip
            for media_type in ("text/plain", "application/json", "multipart/form-data"):
                sent = {**headers, "Content-Type": media_type}
                status, _, _ = await target.request(method, path, data=body, headers=sent)
                target.findings.check("other sites without keys", status == 403, f"{path} {sent}: {status}")
        status, _, _ = await target.request(method, path, data=body, headers={"Host": "evil.example"})
        target.findings.check("other sites without keys", status == 421, f"DNS rebinding {path}: {status}")
    for path in ("/", "/v1/events", "/v1/articles/x", "/metrics", "/v1/events/stream", "/sign-in"):
        status, headers_, _ = await target.request("GET", path, headers={"Host": "evil.example:80"})
        target.findings.check("other sites without keys", status == 421, f"DNS rebinding {path}: {status}")
        _, headers_, _ = await target.request("HEAD", path, headers={"Origin": "https://evil.example"})
        same = headers_.get("Cross-Origin-Resource-Policy") == "same-origin"
        shared = "Access-Control-Allow-Origin" in headers_
        target.findings.check("other sites without keys", same and not shared, f"{path}: readable by sites")
