"""Attacks below the handlers: request smuggling, slow and oversized requests, encodings."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import time
import zlib

from tests.hostile.attacks.running import Target, responses_in, status_of

NEXT = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENGTHS = (
    "Content-Length: 0\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 0",
    "Content-Length: 5\r\nContent-Length: 0", "Content-Length: 0, 0", "Content-Length: 0,5",
    "Content-Length: +0",
    "Content-Length: -1", "Content-Length: 0x0", "Content-Length: 1_0", "Content-Length: \x0b0",
    "Content-Length: 0 0", "Content-Length: 00000000000000000000000000000000000000000000000000",
    "Content-Length: 99999999999999999999999999", "Content-Length:", "Content-Length: abc",
    "Content-Length : 0", "Content-Length\t: 0", " Content-Length: 0", "X: y\r\n Content-Length: 0",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding : chunked", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: gzip, chunked", "X: y\r\n Transfer-Encoding: chunked",
    "Transfer_Encoding: chunked\r\nX: y",
    "X: y\nContent-Length: 0", "X: y\rContent-Length: 0", "X:\x00y", "X\x00: y", "X y: z", ": x", "X",
    "\x7f: x",
    "X: y\r\n\tz", "Content-Length: 5\r\nTransfer-Encoding:  chunked", "(X): y", "X\xff: y",
)  # fmt: skip
CHUNKED = (
    b"0\r\nX: y\r\n\r\n", b"0;a=b\r\n\r\n", b"0" * 5000 + b"\r\n\r\n", b"0x0\r\n\r\n", b"-0\r\n\r\n",
    b"+0\r\n\r\n", b" 0\r\n\r\n",
    b"0 \r\n\r\n", b"0\n\n", b"0\r\r\n\r\n", b"\r\n0\r\n\r\n", b"2\r\n{}X\r\n0\r\n\r\n",
    b"2\r\n{}\n0\r\n\r\n",
    b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n{}", b"8000000000000000\r\n{}", b"g\r\n",
    b"2;" + b"x" * 9000 + b"\r\n{}\r\n0\r\n\r\n",
    b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\nAuthorization: x\r\n\r\n", b"0;\n\r\n\r\n",
    b"2\r\n{}0\r\n\r\n", b"\xef\xbc\x90\r\n\r\n",
)  # fmt: skip
LINES = (
    b"GET /healthz HTTP/1.1\nHost: localhost\n\n", b"GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1 \r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /healthz http/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\r\n" * 50, b"\x00" * 500,
    b"GET /healthz HTTP/1.0\r\n\r\n", b"GET\t/healthz\tHTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz\r HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http:///healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET ? HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET //[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET http://[/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n\r\n",
)  # fmt: skip

MAX_CPU_S = 2.0  # of one request, with those that measure the latency meanwhile


async def smuggling(target: Target) -> None:
    """Requests whose end is ambiguous: the bytes that follow must not be answered as another request."""
    check = target.findings.check
    for path in ("/v1/articles", "/sign-in", "/v1/articles/batch"):
        key = f"Authorization: Bearer {target.keys['crawler']}\r\n"
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{key}"
        for lines in LENGTHS:
            # The last coding ends the body; the others are not decoded.
            plain = lines == "Transfer-Encoding: gzip, chunked"
            answer = await target.send(
                (head + lines + "\r\n\r\n").encode("latin-1") + b"0\r\n\r\n" + NEXT, timeout_s=1.5
            )
            second = b"/smuggled" in answer
            good = not second or plain
            check("request smuggling", good and b" 500 " not in answer, f"{path} {lines!r}: {answer[:50]!r}")
        for body in CHUNKED:
            answer = await target.send(
                (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + body + NEXT, timeout_s=1.5
            )
            # Well-formed chunks end the request, so the next one is answered; nothing else may be in between.
            check(
                "request smuggling",
                responses_in(answer) <= 2 and b" 500 " not in answer,
                f"{path} {body[:40]!r}: {answer[:50]!r}",
            )
    for line in LINES:
        answer = await target.send(line, timeout_s=1.5)
        check(
            "request lines",
            status_of(answer) in (0, 200, 204, 400, 401, 404, 405, 421, 505),
            f"{line[:40]!r}: {answer[:60]!r}",
        )
    answer = await target.send(
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200, timeout_s=20, pause_s=2
    )
    check("request lines", responses_in(answer) == 200, f"200 pipelined: {responses_in(answer)}")
    for name, value in (
        ("Expect", "100-continue"), ("Expect", "200-ok"), ("Expect", "100-continue, x"), ("Upgrade",
        "websocket"),
        ("Upgrade", "h2c"), ("Range", "bytes=0-1"), ("Range", "bytes=0-,0-,0-" + ",0-" * 500), ("TE",
        "trailers"),
        ("If-Range", "x"), ("If-None-Match", '"' * 4000), ("If-None-Match", '"a",' * 1500),
        ("If-Modified-Since", "(" * 7000),
        ("Connection", "Authorization, close"), ("Connection", "Upgrade, HTTP2-Settings"), ("Max-Forwards",
        "0"),
    ):  # fmt: skip
        for path in ("/healthz", "/static/page.css", "/sign-in"):
            status, _, _ = await target.request("GET", path, headers={name: value})
            check("request lines", status in (200, 417, 400), f"{path} {name}: {value[:30]}: {status}")


async def echoes(target: Target) -> None:
    """Values that come back in headers: no line break of a client may start a header."""
    for crlf in (
        "%0d%0aX-Injected:%20y",
        "%0aX-Injected:%20y",
        "\u560d\u560aX-Injected: y",
        "%E5%98%8A%E5%98%8DX-Injected:y",
    ):
        for path in (
            f"/{crlf}",
            f"/v1/events/{crlf}",
            f"/sign-in?next=/{crlf}",
            f"/events/{crlf}",
            f"/search?q=http://{crlf}",
        ):
            for headers in ("", "Accept: text/html\r\n"):
                answer = await target.send(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()
                )
                head = answer.partition(b"\r\n\r\n")[0]
                target.findings.check(
                    "response splitting", b"\nX-Injected" not in head, f"{path}: {head[:80]!r}"
                )
    for value in ("a\tb", "\u00ff", "{}", "a" * 65, "x y", "<script>", "%0d%0a"):
        _, answered, _ = await target.request("GET", "/healthz", headers={"X-Request-Id": value})
        target.findings.check(
            "response splitting", answered.get("X-Request-Id") != value, f"X-Request-Id {value!r}"
        )


async def oversized(target: Target) -> None:
    """Headers, addresses and bodies beyond the limits; everybody else is answered meanwhile."""
    check, worst = target.findings.check, 0.0
    get, host = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b" HTTP/1.1\r\nHost: localhost\r\n"
    article, form = b"POST /v1/articles" + host, b"POST /sign-in" + host
    chunked, million = b"Transfer-Encoding: chunked\r\n\r\n", b"Content-Length: 1000000\r\n\r\n"
    requests = {
        "header of 1 MB": get + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n",
        "100,000 headers": get + b"X: y\r\n" * 100_000 + b"\r\n",
        "20,000 cookies": get + b"Cookie: a=b\r\n" * 20_000 + b"\r\n",
        "address of 1 MB": b"GET /" + b"a" * 1_000_000 + host + b"\r\n",
        "query of 8,000 pairs": b"GET /v1/events?" + b"&" * 8000 + host + b"\r\n",
        "method of 1 MB": b"A" * 1_000_000 + b" /" + host + b"\r\n",
        "10 GB declared, no key": article + b"Content-Length: 10000000000\r\n\r\n" + b"a" * 3_000_000,
        "chunks without a key": article + chunked + b"1\r\na\r\n" * 500_000,
        "gzip at /sign-in": form + b"Content-Encoding: gzip\r\n" + million + gzip.compress(b"") * 50_000,
        "form of 1 MB at /sign-in": form + million + b"&" * 1_000_000,
        "chunk extensions": form + chunked + (b"1;" + b"x" * 1000 + b"\r\na\r\n") * 2000,
        "trailers": form + chunked + b"0\r\n" + b"X: y\r\n" * 200_000,
        "cookie of backslashes": b"GET /v1/events" + host + b'Cookie: a="' + b"\\" * 8000 + b'"\r\n\r\n',
    }
    for name, data in requests.items():
        before = target.cpu_s()
        task = asyncio.create_task(target.send(data, timeout_s=4))
        while not task.done():
            worst = max(worst, await target.latency_s())
            await asyncio.sleep(0.02)
        answer = await task
        cpu = target.cpu_s() - before
        check(
            "oversized requests",
            status_of(answer) in (0, 400, 401, 413, 415, 431) and cpu < MAX_CPU_S,
            f"{name}: {answer[:50]!r}, {cpu:.2f} s of CPU",
        )
    target.findings.notes["oversized requests"] = f"another caller waits {worst * 1000:.0f} ms at most"


async def slow(target: Target) -> None:
    """Peers that send slowly or do not read: closed in time, and everybody else is answered meanwhile."""
    key = f"Authorization: Bearer {target.keys['crawler']}\r\n"
    post = f"POST /v1/articles HTTP/1.1\r\nHost: localhost\r\n{key}"
    form = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\n"
    openings = {
        "slow head": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),
        "no byte": (b"", b""),
        "slow body": (post.encode() + b"Content-Length: 1000\r\n\r\n", b"a"),
        "slow form": (form + b"Content-Length: 1000\r\n\r\n", b"a"),
        "slow chunks": (form + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    }

    async def hold(opening: bytes, drip: bytes) -> float:
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection(target.host, target.port)
        with contextlib.suppress(ConnectionError, OSError):
            writer.write(opening)
            while time.perf_counter() - started < 45:
                with contextlib.suppress(TimeoutError):
                    if not await asyncio.wait_for(reader.read(65536), 1.0):
                        break
                writer.write(drip)
                await writer.drain()
        writer.close()
        return time.perf_counter() - started

    tasks = [asyncio.create_task(hold(*each)) for each in openings.values() for _ in range(20)]
    worst = 0.0
    while not all(task.done() for task in tasks):
        worst = max(worst, await target.latency_s())
        await asyncio.sleep(0.3)
    for number, task in enumerate(tasks):
        name = list(openings)[number // 20]
        target.findings.check("slow peers", task.result() < 44, f"{name}: open for {task.result():.0f} s")
    held = max(task.result() for task in tasks)
    target.findings.notes["slow peers"] = (
        f"closed after {held:.0f} s at most; another caller waits {worst * 1000:.0f} ms at most"
    )


async def compressed(target: Target) -> None:
    """Gzip bodies that are bombs, damaged, nested or empty."""
    article = json.dumps(
        {"text": "The lock keeper of Estmark raised the gates at dawn, before the water came."}
    ).encode()
    deflated = zlib.compress(article)
    bodies = {
        "bomb": gzip.compress(b'{"text":"' + b"a" * 50_000_000),
        "empty members": gzip.compress(b"") * 100_000,
        "empty members, then an article": gzip.compress(b"") * 20_000 + gzip.compress(article),
        "members of a byte": b"".join(gzip.compress(article[i : i + 1]) for i in range(len(article))),
        "truncated": gzip.compress(article)[:-9], "without a trailer": gzip.compress(article)[:-8],
        "wrong checksum": gzip.compress(article)[:-8] + bytes(8),
        "trailing garbage": gzip.compress(article) + b"garbage",
        "nested": gzip.compress(gzip.compress(article)), "zlib": deflated, "raw deflate": deflated[2:-4],
        "a name of 1 MB": b"\x1f\x8b\x08\x08" + bytes(6) + b"a" * 1_000_000 + b"\0" + deflated[2:-4],
        "header flags": b"\x1f\x8b\x08\xff" + gzip.compress(article)[4:],
        "random": b"\x1f\x8b" + bytes(range(256)) * 100,
        "stored blocks of 0 bytes": b"\x1f\x8b\x08" + bytes(7) + b"\x00\x00\x00\xff\xff" * 150_000,
    }  # fmt: skip
    worst_cpu, worst = 0.0, 0.0
    for path in ("/v1/articles", "/v1/articles/batch"):
        for name, body in bodies.items():
            before = target.cpu_s()
            task = asyncio.create_task(
                target.request("POST", path, "crawler", data=body, headers={"Content-Encoding": "gzip"})
            )
            while not task.done():
                worst = max(worst, await target.latency_s())
                await asyncio.sleep(0.01)
            status, _, _ = task.result()
            cpu = target.cpu_s() - before
            worst_cpu = max(worst_cpu, cpu)
            target.findings.check(
                "gzip",
                status in (200, 201, 400, 413) and cpu < MAX_CPU_S,
                f"{path} {name}: {status}, {cpu:.2f} s of CPU",
            )
    for encoding in (
        "br",
        "zstd",
        "deflate",
        "gzip, gzip",
        "identity, gzip",
        "x-gzip",
        "GZIP",
        "gzip;q=1",
        "compress",
    ):
        status, _, _ = await target.request(
            "POST",
            "/v1/articles",
            "crawler",
            data=gzip.compress(article),
            headers={"Content-Encoding": encoding},
        )
        target.findings.check("gzip", status in (415, 200, 201, 400), f"{encoding}: {status}")
    target.findings.notes["gzip"] = (
        f"{worst_cpu:.2f} s of CPU at most; another caller waits {worst * 1000:.0f} ms at most"
    )
