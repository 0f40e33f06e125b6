"""One caller against the processor, the memory and the connections of the service, and of other callers."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from tests.hostile.attacks.access import FORM
from tests.hostile.attacks.running import Target

RANDOM = random.Random(16)
WORDS = ["".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(40_000)]
MAX_CPU_S = 3.0
MAX_WAIT_S = 1.0


def _text(characters: int, kind: str) -> str:
    if kind == "distinct words":
        return " ".join(WORDS)[:characters]
    if kind == "distinct Han":
        return "".join(chr(RANDOM.randrange(0x4E00, 0x9FA5)) for _ in range(characters))
    if kind == "ligatures":  # 18 letters each after normalization
        return "\ufdfa" * (characters // 3)
    if kind == "shuffled":
        return " ".join(RANDOM.choices(["gate", "lock", "barge", "river"], k=characters // 5))
    return {"one letter": "a", "figures": "1,2.3 ", "sentences": "A. ", "combining": "a\u0301"}[kind] * (
        characters // 3
    )


KINDS = (
    "distinct words",
    "distinct Han",
    "ligatures",
    "shuffled",
    "one letter",
    "figures",
    "sentences",
    "combining",
)


async def _measured(
    target: Target, call: Callable[[], Awaitable[int]], number: int = 1
) -> tuple[list[int], float, float]:
    """Statuses of ``number`` calls at once, CPU per call in s, and the longest wait of another caller."""
    before, worst = target.cpu_s(), 0.0
    tasks = [asyncio.ensure_future(call()) for _ in range(number)]
    while not all(task.done() for task in tasks):
        worst = max(worst, await target.latency_s("/v1/events?limit=1", "admin"))
        await asyncio.sleep(0.02)
    return [task.result() for task in tasks], (target.cpu_s() - before) / number, worst


async def costly_requests(target: Target) -> None:
    """The dearest requests of each route, alone and eight at once."""
    worst: dict[str, tuple[float, str]] = {}
    waits: dict[str, tuple[float, str]] = {}

    async def attempt(
        route: str, name: str, number: int, make: Callable[[], Coroutine[Any, Any, int]]
    ) -> None:
        statuses, cpu, wait = await _measured(target, make, number)
        worst[route] = max(worst.get(route, (0.0, "")), (cpu, name))
        waits[route] = max(waits.get(route, (0.0, "")), (wait, f"{number} x {name}"))
        ok = (
            all(status < 500 or status == 503 for status in statuses)
            and cpu < MAX_CPU_S
            and wait < MAX_WAIT_S
        )
        target.findings.check(
            "costly requests",
            ok,
            f"{number} x {route} {name}: {sorted(set(statuses))}, {cpu:.2f} s of CPU each, "
            f"another caller waits {wait:.2f} s",
        )

    def call(method: str, path: str, key: str, **options: object) -> Callable[[], Coroutine[Any, Any, int]]:
        async def send() -> int:
            return (await target.request(method, path, key, **options))[0]

        return send

    form = {**FORM, "Sec-Fetch-Site": "same-origin"}
    for kind, size, number in [
        (k, *each) for k in KINDS for each in ((49_000, 1), (49_000, 4), (200_000, 1))
    ]:
        text, name = _text(size, kind), f"{kind}, {size // 1000} k"
        moved = text[len(text) // 3 :] + text[: len(text) // 3]
        body = json.dumps({"text": text}, ensure_ascii=False).encode()
        pair = json.dumps({"a": {"text": text}, "b": {"text": moved}}, ensure_ascii=False).encode()
        pasted, compared = urlencode({"q": text + "\n" + text[:100]}), urlencode({"a": text, "b": moved})
        for route, send in {
            "POST /v1/articles": call("POST", "/v1/articles?dry_run=true", "crawler", data=body),
            "POST /v1/related": call("POST", "/v1/related", "reader", data=body),
            "POST /v1/explain": call("POST", "/v1/explain", "reader", data=pair),
            "POST /compare": call("POST", "/compare", "reader", data=compared, headers=form),
            "POST /search": call("POST", "/search", "reader", data=pasted, headers=form),
        }.items():
            await attempt(route, name, number, send)
    for path in (
        "/docs",
        "/openapi.json",
        "/sign-in",
        "/readyz",
        "/healthz",
        "/static/inter-latin.woff2",
        "/v1/events",
        "/nothing",
    ):
        await attempt(f"GET {path} without a key", "", 50, call("GET", path, "no key"))
    for path in (
        "/metrics",
        "/",
        "/health",
        "/v1/events.atom?limit=200",
        "/v1/events?limit=200&term=x",
        "/v1/desks",
    ):
        await attempt(f"GET {path}", "", 20, call("GET", path, "reader"))
    for route, (cpu, name) in sorted(worst.items(), key=lambda item: -item[1][0]):
        target.findings.notes[f"CPU of {route}"] = (
            f"{cpu * 1000:.0f} ms ({name}); "
            f"another caller waits {waits[route][0] * 1000:.0f} ms ({waits[route][1]})"
        )


async def copies(target: Target, number: int = 3000) -> None:
    """Thousands of copies of one text, and of near-copies, against the requests that list them."""
    text = "The lock keeper of Estmark raised the gates at dawn, because the river had risen. Barges wait."
    title = "\u6c34" * 1900
    lines = b"".join(
        json.dumps(
            {"id": f"copy-{i}", "text": text, "title": title, "url": f"https://x.example/{'a' * 1900}{i}"},
            ensure_ascii=False,
        ).encode()
        + b"\n"
        for i in range(number)
    )
    before = target.resident_mb()
    status, _, answer = await target.request(
        "POST",
        "/v1/articles/batch",
        "crawler",
        data=gzip.compress(lines),
        headers={"Content-Encoding": "gzip"},
    )
    target.findings.check("many copies", status == 200, f"{number} copies: {status}, {len(answer)} bytes")
    for path, key in (
        ("/v1/articles/copy-7/copies", "reader"),
        ("/v1/articles/copy-7/related?limit=100", "reader"),
        ("/search?q=copy-7", "reader"),
        ("/v1/articles/copy-7", "reader"),
        ("/", "reader"),
    ):

        async def send(path: str = path, key: str = key) -> int:
            return (await target.request("GET", path, key))[0]

        _, _, body = await target.request("GET", path, key)
        statuses, cpu, wait = await _measured(target, send, 4)
        ok = cpu < MAX_CPU_S and wait < MAX_WAIT_S and len(body) < 8_000_000
        target.findings.check(
            "many copies",
            ok,
            f"{path}: {statuses}, {len(body)} bytes, {cpu:.2f} s of CPU, another caller waits {wait:.2f} s",
        )
        target.findings.notes[f"many copies {path[:30]}"] = (
            f"{len(body) / 1e6:.1f} MB, {cpu * 1000:.0f} ms of CPU, another caller waits {wait * 1000:.0f} ms"
        )
    target.findings.notes["many copies"] = f"{before:.0f} to {target.resident_mb():.0f} MB"


async def unread_batches(target: Target, batches: int = 4, lines: int = 3000) -> None:
    """Batches whose answers are long and that the client does not read."""
    base = "The lock keeper of Estmark raised the gates at dawn. Barges wait at the mill of {n}."
    for i in range(12):
        await target.request("POST", "/v1/articles", "crawler", json={
            "id": f"long-{i}-" + "\u6c34" * 160, "title": "\u6c34" * 1990,
            "text": base.format(n=WORDS[i]) + " ".join(WORDS[i * 3 : i * 3 + 8]),
            "url": "https://x.example/" + "a" * 1900 + str(i), "source": "\u6c34" * 290,
        })  # fmt: skip
    _, _, answer = await target.request(
        "POST",
        "/v1/articles?dry_run=true",
        "crawler",
        json={"text": base.format(n="Brackwater") + " Nobody knows why yet."},
    )
    target.findings.notes["unread batches, answer of a line"] = f"{len(answer)} bytes"
    body = b"".join(
        json.dumps(
            {"id": f"b{i}", "text": base.format(n="Brackwater") + f" Nobody knows why yet {i}."}
        ).encode()
        + b"\n"
        for i in range(lines)
    )
    head = (
        "POST /v1/articles/batch?dry_run=true HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {target.keys['crawler']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    before, peak = target.resident_mb(), 0.0
    writers = []
    for _ in range(batches):
        _, writer = await asyncio.open_connection(target.host, target.port, limit=1)
        writer.write(head.encode() + body)
        writers.append(writer)
    for _ in range(60):
        await asyncio.sleep(0.5)
        peak = max(peak, target.resident_mb())
    for writer in writers:
        writer.transport.abort()
    growth = peak - before
    target.findings.check("unread batches", growth < 100, f"{batches} batches: {before:.0f} to {peak:.0f} MB")
    target.findings.notes["unread batches"] = f"{batches} of {lines} lines: {before:.0f} to {peak:.0f} MB"


async def connections(target: Target, idle: int = 1000, streams: int = 300) -> None:
    """Idle connections and event streams of one caller; another caller's latency and streams meanwhile."""
    before, writers = target.resident_mb(), []
    for _ in range(idle):
        with contextlib.suppress(OSError):
            writers.append((await asyncio.open_connection(target.host, target.port))[1])
    waits = [await target.latency_s() for _ in range(20)]
    target.findings.check(
        "connections", max(waits) < MAX_WAIT_S, f"{idle} idle connections: {max(waits):.2f} s"
    )
    opened = refused = 0
    key = f"Authorization: Bearer {target.keys['reader']}\r\n\r\n"
    head = b"GET /v1/events/stream HTTP/1.1\r\nHost: localhost\r\n" + key.encode()
    for _ in range(streams):
        reader, writer = await asyncio.open_connection(target.host, target.port)
        writer.write(head)
        writers.append(writer)
        with contextlib.suppress(TimeoutError, ConnectionError):
            line = await asyncio.wait_for(reader.readline(), 5)
            opened, refused = opened + (b" 200 " in line), refused + (b" 503 " in line)
    _, writer = await asyncio.open_connection(target.host, target.port)
    answer = await target.send(
        head.replace(target.keys["reader"].encode(), target.keys["editor"].encode()), timeout_s=3
    )
    target.findings.check(
        "connections", b" 200 " in answer[:20], f"a stream of another caller: {answer[:30]!r}"
    )
    target.findings.check("connections", refused > 0, f"{opened} streams of one key")
    target.findings.notes["connections"] = (
        f"{idle} idle: another caller waits {max(waits) * 1000:.0f} ms; "
        f"{opened} streams of one key open, {refused} refused; "
        f"{before:.0f} to {target.resident_mb():.0f} MB"
    )  # fmt: skip
    for writer in writers:
        writer.transport.abort()


async def session_growth(target: Target, number: int = 2000) -> None:
    """Sign-ins of one key, and sign-outs without any, against the memory and the log of the store."""
    log = target.log.parent / "data"

    def size() -> int:
        return sum(path.stat().st_size for path in log.rglob("*.aof") if path.is_file())

    before = size()
    for i in range(0, number, 20):
        await asyncio.gather(*(
            target.request("POST", "/sign-out",
            headers={"Cookie": f"aggregator_session=made-up-{i + j}"}) for j in range(20)
        ))  # fmt: skip
    growth = size() - before
    logged = b"".join(path.read_bytes() for path in log.rglob("*.aof"))  # leases grow it, too
    is_stored = logged.count(b"session:") > number // 10
    target.findings.check("stored without a key", not is_stored, f"{number} sign-outs write {growth} bytes")
    for _ in range(0, number, 20):
        await asyncio.gather(*(
            target.request("POST", "/sign-in", data=urlencode({"key": target.keys["reader"]}),
            headers=FORM) for _ in range(20)
        ))  # fmt: skip
    target.findings.notes["sessions"] = (
        f"{number} sign-outs without a session write {growth} bytes, "
        f"{number} sign-ins {size() - before - growth}"
    )
