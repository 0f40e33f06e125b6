"""Attacks on a running service from outside, malformed input, and regular expressions against long texts.

    python -m tests.hostile.attack [--workers N] [--costly] [--expressions]

Starts services with their own data on free ports of this machine and attacks them over HTTP: access, sources,
sessions, protocol, content, webhooks, resources (``attacks/``). Prints the number of attempts by kind, those
with an unexpected result, and what was measured. Then it prints the number of requests with malformed input
and the responses. Exit code 1 for an unexpected result, a 5xx or a slow expression. Takes about 3 minutes,
``--costly`` and ``--expressions`` some more. Mutated bytes against decoders: ``fuzz.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from aggregator.app import open_service
from aggregator.http.openapi import FORM_TYPE
from aggregator.settings import Settings
from tests.hostile.attacks import (
    access,
    content,
    ownership,
    protocol,
    resources,
    sessions,
    webhooks,
)
from tests.hostile.attacks.running import Attack, Findings, running
from tests.hostile.expressions import cpu_seconds, expressions, texts
from tests.support.fake_service import serving

TEXT = "The harbour bridge of Brackwater stays closed, since a storm has torn two of its cables. "
ODD_TEXTS = [
    "\x00", "\n", "\r\nX-A: b", "{}", "{en.0}", "a:b", "\u202eevil", "\u2028", "🌪" * 40, "é" * 600,
    "x" * 10_240,
    "../../etc", "%00", "%0d%0a", "*", "\x1b[2J", "<script>alert(1)</script>", "' OR 1=1", "\ufeff",
    "a\u0301" * 300,
]  # fmt: skip
ODD_HEADERS = [
    ("X-Request-Id", "a" * 4000), ("X-Request-Id", "\u00ff{}"), ("Authorization", "Bearer " + "x" * 4000),
    ("Authorization", "Basic ===="), ("Cookie", "aggregator_session=" + "{}" * 900), ("Origin", "null"),
    ("Accept", "*/*," * 900), ("Content-Type", "\u00e9"), ("Host", "a b"), ("X" * 200, "y"),
]  # fmt: skip
PATHS = (
    "/v1/articles/{}", "/v1/articles/{}/related", "/v1/articles/{}/copies", "/v1/events/{}",
    "/v1/webhooks/{}", "/events/{}", "/static/{}", "/{}",
    "/v1/articles/{}/provenance", "/v1/events/{}/provenance", "/v1/sources/{}", "/v1/desks/{}",
    "/articles/{}/provenance", "/events/{}/provenance", "/sources/{}", "/desks/{}", "/webhooks/{}",
)  # fmt: skip
REGEX_CHARACTERS = 1_000_000
REGEX_LIMIT_S = 3.0
WITH_KEYS: tuple[Attack, ...] = (
    access.roles, access.paths, access.presentations, sessions.sessions, access.hosts, ownership.bound_keys,
    ownership.undo, protocol.smuggling, protocol.echoes, protocol.oversized,
    protocol.compressed, content.markup, webhooks.forgery, webhooks.disclosure, access.disclosure,
)  # fmt: skip
FIELDS = ("id", "url", "title", "text", "html", "source", "published_at", "lang")


def article_requests() -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Kind, body and headers of requests to POST /v1/articles."""
    value: object
    for value in [*ODD_TEXTS, None, 1, 1.5, [], {}, True]:
        for field in FIELDS:
            yield f"field {field}", json.dumps({"text": TEXT, field: value}).encode(), {}
    for depth in (100, 10_000, 500_000):
        for opening in (b"[", b'{"a":', b'{"text":['):
            yield "nesting", opening * depth, {}
    for size in (10, 1000, 10_000_000):
        bomb = gzip.compress(b'{"text": "' + b"a" * size + b'"}')
        yield "gzip", bomb, {"Content-Encoding": "gzip"}
        yield "gzip", bomb[:-9], {"Content-Encoding": "gzip"}
        yield "gzip", b"\x1f" + bomb[5:], {"Content-Encoding": "gzip"}
    for encoding in ("br", "zstd", "deflate", "gzip, gzip", "x" * 200, "identity, gzip"):
        yield "encoding", b"{}", {"Content-Encoding": encoding}
    for page in malformed_pages():
        yield "html", json.dumps({"html": page}).encode(), {}
    for name, value in ODD_HEADERS:
        yield "header", json.dumps({"text": TEXT}).encode(), {name: value}


def malformed_pages() -> Iterator[str]:
    """HTML that is hard to parse."""
    for size in (100, 2_000):
        for tag in ("div", "table><tr><td", "b", "a href=x", "svg", "template", "p"):
            yield f"<{tag}>" * size + TEXT
        yield "<p>" + "&amp;" * size + "<!--" * size
        yield "<div " + " ".join(f"a{i}='{i}'" for i in range(size)) + f">{TEXT}</div>"
    yield "<html><title>" + "<" * 100_000
    yield "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><html><body><p>&b;" + TEXT
    yield "<html><body><p>\x00\ud800" + TEXT
    yield "<?xml version='1.0' encoding='utf-7'?><p>+ADw-script+AD4-" + TEXT


def path_requests() -> Iterator[tuple[str, str, str]]:
    """Kind, method and path of requests without a body."""
    for odd in ODD_TEXTS:
        escaped = quote(odd, safe="")
        for path in PATHS:
            yield "id in path", "GET", path.format(escaped)
        yield "id in path", "DELETE", f"/v1/articles/{escaped}"
        for parameter in (
            "term",
            "source",
            "status",
            "cursor",
            "watch",
            "since",
            "limit",
            "lang",
            "min_size",
            "nonsense",
        ):
            yield "query", "GET", f"/v1/events?{parameter}={escaped}"
            yield "query", "GET", f"/?{parameter}={escaped}"
        for page in ("/compare?a=x&b=", "/sign-in?next=", "/search?q=", "/v1/search?q="):
            yield "query", "GET", page + escaped
        for parameter in ("q", "lang", "source", "verdict", "since", "until", "page", "cursor", "limit"):
            yield "query", "GET", f"/v1/search?q=bridge&{parameter}={escaped}"
            yield "query", "GET", f"/search?q=bridge&{parameter}={escaped}"
        for parameter in ("q", "sort", "offset", "limit"):
            yield "query", "GET", f"/v1/sources?{parameter}={escaped}"
            yield "query", "GET", f"/sources?{parameter}={escaped}"
        for page in ("/desks", "/webhooks"):
            yield "query", "GET", f"{page}?done={escaped}&target={escaped}"


def desk_requests() -> Iterator[tuple[str, bytes, str]]:
    """Path, body and media type of requests that make desks, targets and webhooks."""
    fields = {
        "/desks": ("action", "name", "terms", "sources", "min_size", "quiet_from", "time_zone", "address"),
        "/webhooks/unknown": ("action", "delivery", "next"),
    }
    needed = {"action": "add", "name": "Bridges", "kind": "slack", "url": "https://hook.example/"}
    for odd in ODD_TEXTS:
        for path, names in fields.items():
            for name in names:
                form = {key: value for key, value in needed.items() if path != "/desks" or key == "name"}
                yield path, urlencode({**form, name: odd}).encode(), FORM_TYPE
    value: object
    for value in (*ODD_TEXTS, None, 1e308, -1, [], [[]], {}, True):
        for name in ("name", "terms", "languages", "min_size", "quiet_from", "time_zone", "paused"):
            yield "/v1/desks", json.dumps({"name": "Bridges", name: value}).encode(), "application/json"
        for kind in ("mail", "webhook", "sms"):
            body: dict[str, object] = {"kind": kind, "address": value}
            yield "/v1/desks/unknown/targets", json.dumps(body).encode(), "application/json"


async def send_all() -> tuple[collections.Counter[tuple[str, int]], list[str]]:
    """Number of responses by kind and status class (0: connection closed), and the failures."""
    counts: collections.Counter[tuple[str, int]] = collections.Counter()
    failures = []
    async with (
        open_service(Settings(store_url="memory", store_texts=True)) as service,
        serving(service) as client,
    ):

        async def send(kind: str, method: str, path: str, **options: Any) -> None:
            try:
                async with client.request(method, path, allow_redirects=False, **options) as response:
                    await response.read()
                    counts[kind, response.status // 100] += 1
                    if response.status >= 500:
                        failures.append(f"{kind}: {method} {path[:80]} {response.status}")
            except (ConnectionError, OSError, ValueError) as error:
                counts[kind, 0] += 1
                if "refused" in str(error):
                    failures.append(f"{kind}: {error}")

        for kind, body, headers in article_requests():
            await send(kind, "POST", "/v1/articles", data=body, headers=headers)
        for kind, method, path in path_requests():
            await send(kind, method, path)
        for path, body, media_type in desk_requests():
            await send("desks and webhooks", "POST", path, data=body, headers={"Content-Type": media_type})
    return counts, failures


def slow_expressions() -> tuple[int, int, float, list[str]]:
    """Number of expressions and texts, the longest time in s of CPU, and the slow ones.

    A million characters are used only if 20,000 are fast: a quadratic expression would take days.
    """
    tried, longest, slow, found = 0, 0.0, [], list(expressions())
    for name, expression in found:
        for size in (20_000, REGEX_CHARACTERS):
            times_s = {piece: cpu_seconds(expression, text) for piece, text in texts(expression, size)}
            too_slow = {
                piece: s
                for piece, s in times_s.items()
                if s > REGEX_LIMIT_S * max(size / REGEX_CHARACTERS, 0.1)
            }
            slow += [f"{name} on {piece!r} * {size}: {seconds:.2f} s" for piece, seconds in too_slow.items()]
            if too_slow:
                break
            tried, longest = tried + len(times_s), max(longest, *times_s.values())
    return len(found), tried, longest, slow


async def attack_services(workers: int, *, costly: bool) -> Findings:
    """Attack services with keys, with a rate limit and without keys, each with separate data."""
    findings = Findings()
    costs: tuple[Attack, ...] = (resources.copies, resources.unread_batches, resources.costly_requests)
    services: tuple[tuple[bool, tuple[str, ...], tuple[Attack, ...]], ...] = (
        (True, ("--burst-items=3", "--store-texts"), WITH_KEYS),
        (True, (), (protocol.slow, resources.connections, resources.session_growth)),
        (True, ("--rate-limit-per-second=5",), (access.rate_limit,)),
        (False, (), (access.without_keys,)),
        (True, (), costs if costly else ()),
    )
    for with_keys, options, attacks in services:
        if not attacks:
            continue
        with tempfile.TemporaryDirectory() as directory:
            arguments = (*options, f"--workers={workers}")
            async with running(Path(directory), findings, *arguments, with_keys=with_keys) as target:
                for attack in attacks:
                    print(f"{attack.__module__.rpartition('.')[2]}.{attack.__name__} ...", file=sys.stderr)
                    await attack(target)
    return findings


def main() -> int:
    """Print the tables; exit code 1 for failures."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--expressions", action="store_true", help="also time every regular expression (takes minutes)"
    )
    options.add_argument("--workers", type=int, default=1, help="workers of the attacked services")
    options.add_argument("--costly", action="store_true", help="also the dearest requests (takes minutes)")
    args = options.parse_args()
    findings = asyncio.run(attack_services(args.workers, costly=args.costly))
    print(f"{'attacks on a running service':36} {'attempts':>8} {'unexpected':>10}")
    for kind, attempts in findings.attempts.items():
        unexpected = sum(failure.startswith(f"{kind}: ") for failure in findings.failures)
        print(f"{kind:36} {attempts:8} {unexpected:10}")
    print(f"{'all':36} {findings.attempts.total():8} {len(findings.failures):10}")
    for kind, note in findings.notes.items():
        print(f"{kind}: {note}")
    print()
    counts, failures = asyncio.run(send_all())
    print(f"{'malformed input':20} {'sent':>6} {'2xx':>6} {'3xx':>6} {'4xx':>6} {'5xx':>6} {'closed':>8}")
    for kind in sorted({kind for kind, _ in counts}):
        row = [counts[kind, status] for status in (2, 3, 4, 5, 0)]
        print(f"{kind:20} {sum(row):6} {row[0]:6} {row[1]:6} {row[2]:6} {row[3]:6} {row[4]:8}")
    server_errors = sum(n for (_, status), n in counts.items() if status == 5)
    print(f"{'all':20} {counts.total():6}, 5xx: {server_errors}")
    if args.expressions:
        found, tried, longest, slow = slow_expressions()
        print(
            f"regular expressions: {found} on {tried} texts of up to {REGEX_CHARACTERS} characters, "
            f"longest {longest:.2f} s of CPU, slow: {len(slow)}"
        )
        failures += slow
    failures += findings.failures
    for failure in failures:
        print("FAILED", failure)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
