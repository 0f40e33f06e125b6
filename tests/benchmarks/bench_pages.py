"""Bytes of every page, and the latency of the front page with many open readers (``scripts/bench pages``).

    scripts/bench pages [--readers 200] [--seconds 40] [--stories 12] [--rate 1]

A new service with its embedded store; STORIES stories of 16 articles each become events. Then READERS
readers behave like an open front page: each holds an event stream and fetches the page every 4 s with its
last ETag, 1/4 of them with another order and filter. Meanwhile RATE articles per second
arrive, so that the page keeps changing. Latency counts from the request to the last byte.

Bytes are those of the body as it is sent and as gzip would make it; the service does not compress, a proxy
may. "first visit" adds scripts, styles and fonts, which are 304 afterwards. Generator, service and store
share the cores of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import re
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import aiohttp
import numpy as np

from tests.benchmarks.bench_service import RunningService, running_service
from tests.support.processes import usage

POLL_S = 4.0
ITEMS = 16
ADDRESSES = 4  # one address may have half of the streams
QUERIES = ("", "", "", "?sort=novelty&min_size=5")
PATHS = (
    "/", "/?kiosk=1", "/events/{id}", "/events/{id}?print=true", "/events/{id}/provenance",
    "/articles/s0-1/provenance", "/search?q={word}", "/sources", "/desks", "/webhooks",
    "/lookup", "/lookup?q=s0-1", "/compare", "/compare?a=s0-0&b=s0-1", "/health", "/docs",
)  # fmt: skip
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en")]


def words(rng: random.Random, count: int) -> str:
    """Made-up words, which two texts hardly share."""
    return " ".join("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(count))


async def make_events(session: aiohttp.ClientSession, stories: int) -> tuple[str, str]:
    """Post the stories; returns the id and a word of an event when there is one of each, or none is added."""
    for number in range(stories):
        name = words(random.Random(f"story {number}"), 4)
        for item in range(ITEMS):
            title = f"{name} {words(random.Random(f'{number} {item}'), 3)}".capitalize()
            body = {"id": f"s{number}-{item}", "title": title, "source": f"paper{item}.example", "lang": "en"}
            async with session.post("/v1/articles", json=body) as response:
                response.raise_for_status()
    deadline_s = time.monotonic() + 60
    while True:
        async with session.get("/v1/events?limit=200") as response:
            events = (await response.json())["events"]
        if len(events) >= stories or (events and time.monotonic() > deadline_s):
            print(f"{len(events)} events of {stories} stories")
            return str(events[0]["id"]), str(events[0]["title"].split()[0])
        await asyncio.sleep(0.5)


async def print_bytes(session: aiohttp.ClientSession, event_id: str, word: str) -> None:
    """Bytes of every page, and of what a first visit of all of them loads in addition."""
    static: dict[str, int] = {}
    print(f"{'page':<26}{'bytes':>9}{'gzip':>9}")
    for path in PATHS:
        async with session.get(path.format(id=event_id, word=word)) as response:
            response.raise_for_status()
            body = await response.read()
        print(f"{path:<26}{len(body):>9}{len(gzip.compress(body)):>9}")
        for asset in re.findall(rb'"(/static/[^"]+\.(?:css|js|svg|woff2))"', body):
            static[asset.decode()] = 0
    async with session.get("/static/app.js") as response:
        queue = re.findall(r'from "\./([^"]+)"', await response.text())
    while queue:
        path = f"/static/{queue.pop()}"
        if path not in static:
            static[path] = 0
            async with session.get(path) as response:
                queue += re.findall(r'(?:from "\./|Worker\("/static/)([^"]+)"', await response.text())
    for path in static:
        async with session.get(path) as response:
            static[path] = len(await response.read())
    for suffix in (".js", ".css", ".woff2"):
        found = {p: n for p, n in static.items() if p.endswith(suffix)}
        print(f"first visit, {suffix:<13}{sum(found.values()):>9}  {len(found)} files")


async def read(session: aiohttp.ClientSession, query: str, until_s: float, found: list[Any]) -> None:
    """One open front page."""

    async def follow() -> None:
        with suppress(aiohttp.ClientError, asyncio.TimeoutError):
            async with session.get(f"/v1/events/stream{query.replace('sort=novelty&', '')}") as response:
                found.append(("stream", response.status, 0.0))
                async for _ in response.content.iter_any():
                    pass

    stream = asyncio.create_task(follow())
    await asyncio.sleep(random.uniform(0, POLL_S))
    tag = ""
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        try:
            async with session.get(f"/{query}", headers={"If-None-Match": tag} if tag else {}) as response:
                await response.read()
                tag = response.headers.get("ETag", tag)
                found.append(("page", response.status, time.monotonic() - began_s))
        except (aiohttp.ClientError, TimeoutError):
            found.append(("page", 0, time.monotonic() - began_s))
        await asyncio.sleep(max(0.0, began_s + POLL_S - time.monotonic()))
    stream.cancel()


async def post_articles(session: aiohttp.ClientSession, rate: float, until_s: float) -> None:
    """Unrelated articles at a constant rate."""
    number = 0
    while rate and time.monotonic() < until_s:
        number += 1
        body = {"id": f"x{number}", "title": words(random.Random(number), 7), "lang": "en"}
        async with session.post("/v1/articles", json=body):
            pass
        await asyncio.sleep(1 / rate)


async def measure(service: RunningService, readers: int, seconds: float, rate: float) -> dict[str, Any]:
    """Latency of the front page in ms, statuses, and CPU seconds per second of the service."""
    found: list[tuple[str, int, float]] = []
    until_s = time.monotonic() + seconds
    connectors = [aiohttp.TCPConnector(limit=0, local_addr=(f"127.0.0.{n + 2}", 0)) for n in range(ADDRESSES)]
    timeout = aiohttp.ClientTimeout(total=None)
    sessions = [aiohttp.ClientSession(service.url, connector=c, timeout=timeout) for c in connectors]
    before, began_s = usage(service.pid), time.monotonic()
    tasks = [
        read(sessions[n % ADDRESSES], QUERIES[n // ADDRESSES % len(QUERIES)], until_s, found)
        for n in range(readers)
    ]
    await asyncio.gather(post_articles(sessions[0], rate, until_s), *tasks)
    cpu = usage(service.pid).since(before)
    elapsed_s = time.monotonic() - began_s
    for session in sessions:
        await session.close()
    pages = [(status, s * 1000) for kind, status, s in found if kind == "page"]
    times = np.array([ms for _, ms in pages])
    return {
        "readers": readers,
        "streams": sum(kind == "stream" and status == 200 for kind, status, _ in found),
        "pages_per_second": round(len(pages) / elapsed_s, 1),
        "statuses": dict(Counter(str(status) for status, _ in pages)),
        **{f"p{q}_ms": round(float(np.percentile(times, q)), 1) for q in (50, 95, 99)},
        "max_ms": round(float(times.max()), 1),
        "cpu_per_second": {role: round(s / elapsed_s, 2) for role, s in cpu.items()},
    }


async def run(args: argparse.Namespace) -> None:
    async with running_service(new_session=True) as service:
        async with aiohttp.ClientSession(service.url) as session:
            await print_bytes(session, *await make_events(session, args.stories))
        if args.readers:
            print(json.dumps(await measure(service, args.readers, args.seconds, args.rate)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readers", type=int, default=200, help="0: only the bytes")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--stories", type=int, default=12)
    parser.add_argument("--rate", type=float, default=1.0, help="articles per second meanwhile")
    asyncio.run(run(parser.parse_args()))
