"""Idempotency-Key from outside: simultaneous requests with one key, keys of others, malformed keys."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.hostile.attacks.running import Target

ROUNDS, REQUESTS = 15, 12
MALFORMED = (
    "", '""', '"', "x" * 256, "x" * 4000, "a b\tc", "\u00e9", "a,b", '"a", "b"', "*", "idempotency:", "\x7f",
)  # fmt: skip


async def idempotency(target: Target) -> None:
    """One of simultaneous requests acts, whatever their bodies; nobody reads another key's answer."""
    check, kind = target.findings.check, "repeated requests"
    for number in range(ROUNDS):
        answers = await asyncio.gather(
            *(_watch(target, f"round-{number}", f"watch {number}-{n % 3}") for n in range(REQUESTS))
        )
        statuses = Counter(status for status, _, _ in answers)
        created = {body for status, _, body in answers if status == 201}
        is_right = len(created) == 1 and set(statuses) <= {201, 409, 422}
        check(kind, is_right, f"simultaneous: {dict(statuses)}, {len(created)} bodies")
    _, _, stored = await target.request("GET", "/v1/watches", "admin")
    check(kind, stored.count(b'"name":"watch ') == ROUNDS, f"{stored.count(b'watch ')} watches are stored")

    hook = {"url": "https://hook.example/repeated"}
    for name in ("editor", "admin", "reader", "bound", "no key"):
        headers = {"Idempotency-Key": "shared"}
        status, sent, body = await target.request("POST", "/v1/webhooks", name, json=hook, headers=headers)
        expected = {"editor": 201, "admin": 200, "no key": 401}.get(name, 403)
        is_right = status == expected and "Idempotency-Replayed" not in sent
        check(kind, is_right, f"the key of another as {name}: {status}")
        check(kind, name == "editor" or b"whsec_" not in body, f"the secret of another, read as {name}")
    for key in MALFORMED:
        status, _, _ = await _watch(target, key, "malformed")
        check(kind, status < 500, f"key {key[:20]!r}: {status}")


async def _watch(target: Target, key: str, name: str) -> tuple[int, object, bytes]:
    watch = {"name": name, "query": "term=flood"}
    return await target.request("POST", "/v1/watches", "admin", json=watch, headers={"Idempotency-Key": key})
