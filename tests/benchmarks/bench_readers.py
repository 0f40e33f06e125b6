"""Latency of the editors' pages with many readers (``scripts/bench readers [--events N] [--largest N]``).

Headlines of invented words are posted to ``aggregator serve``: a story of ``--largest`` items, and
``--events`` others of 18, by 60 outlets over the last three hours. When the events are open, each page is
requested by ``--readers`` callers at random times, each on average once in ``--every`` seconds, as many
readers with an open page do. Printed per page: bytes, and those after gzip; CPU time of the web process for a
request, latency at the 50th and 99th percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import numpy as np
import uvloop

from aggregator.time_units import HOUR_MS, wall_clock_ms
from tests.benchmarks.bench_search import word
from tests.benchmarks.bench_service import RunningService, running_service

STORY_ITEMS, OUTLETS, BATCH, STORY_WORDS = 18, 60, 500, 5
MAX_LISTED = 200
WAIT_S = 600


def headlines(events: int, largest: int, now_ms: int) -> Iterator[dict[str, Any]]:
    """Articles of the stories, oldest first."""
    rng = random.Random(5)
    made = []
    for story, size in enumerate([largest, *[STORY_ITEMS] * events]):
        own = [word(5_000 + STORY_WORDS * story + place) for place in range(STORY_WORDS)]
        start_ms, taken_ms = now_ms - 3 * HOUR_MS, (3 if size == largest else 1) * HOUR_MS
        start_ms += rng.randrange(3 * HOUR_MS - taken_ms + 1)
        for position in range(size):
            told = [*rng.sample(own, 4), word(rng.randrange(40_000, 90_000))]
            outlet = f"paper{(7 * story + position) % OUTLETS}.example"
            made.append((start_ms + taken_ms * position // size, story, position, outlet, told))
    for at_ms, story, position, outlet, told in sorted(made):
        yield {
            "id": f"s{story}-{position}", "title": " ".join(told).capitalize(), "text": "", "source": outlet,
            "url": f"https://{outlet}/s{story}-{position}", "lang": "en",
            "published_at": datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(),
        }  # fmt: skip


async def post_all(session: aiohttp.ClientSession, rows: list[dict[str, Any]]) -> None:
    """Store the articles in batches."""
    for start in range(0, len(rows), BATCH):
        lines = b"\n".join(map(msgspec.json.encode, rows[start : start + BATCH]))
        kind = {"Content-Type": "application/x-ndjson"}
        async with session.post("/v1/articles/batch", data=lines, headers=kind) as response:
            assert response.status == 200, await response.text()
            await response.read()


async def largest_event(session: aiohttp.ClientSession, count: int, items: int) -> str:
    """Wait until ``count`` events are open and the largest has ``items``; returns its id."""
    found: list[dict[str, Any]] = [{"size": 0}]
    started = time.monotonic()
    while len(found) <= min(count, MAX_LISTED - 1) or found[0]["size"] < items:
        if time.monotonic() - started > WAIT_S:
            break
        await asyncio.sleep(1)
        async with session.get("/v1/events", params={"limit": str(MAX_LISTED)}) as response:
            body = await response.json()
            found = [*body["events"], {"size": 0}] if response.status == 200 else sys.exit(f"events: {body}")
        found.sort(key=lambda event: -int(event["size"]))
    print(f"{len(found) - 1} events after {time.monotonic() - started:.0f} s, the largest {found[0]['size']}")
    return str(found[0]["id"])


async def read_page(
    running: RunningService, sessions: list[aiohttp.ClientSession], path: str, every_s: float, seconds: float
) -> str:
    """One line of results: all readers request the page at random times."""
    taken: list[float] = []
    body = b""
    ends_s = time.monotonic() + seconds

    async def reader(session: aiohttp.ClientSession, rng: random.Random) -> None:
        nonlocal body
        await asyncio.sleep(rng.random() * every_s)
        while time.monotonic() < ends_s:
            started = time.perf_counter()
            async with session.get(path) as response:
                body = await response.read()
                assert response.status == 200, f"{path}: {response.status} {body[:200]!r}"
            taken.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(2 * every_s * rng.random())

    before = running.usage()
    await asyncio.gather(*(reader(each, random.Random(n)) for n, each in enumerate(sessions)))
    cpu_ms = running.usage().parts_since(before).get("requests", 0.0) * 1000 / len(taken)
    p50, p99 = np.percentile(taken, [50, 99])
    sizes = f"{len(body):,} | {len(gzip.compress(body)):,}"
    return f"| {path} | {sizes} | {cpu_ms:.1f} | {p50:.1f} | {p99:.1f} | {len(taken):,} |"


async def run(args: argparse.Namespace) -> None:
    """Everything."""
    async with running_service(*args.serve) as running, contextlib.AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(aiohttp.ClientSession(running.url)) for _ in range(args.readers)
        ]
        async with aiohttp.ClientSession(running.url) as session:
            await post_all(session, list(headlines(args.events, args.largest, wall_clock_ms())))
            event = await largest_event(session, args.events + 1, args.largest)
        date = datetime.now(UTC).date()
        pages = ["/", "/?kiosk=true", f"/events/{event}", f"/events/{event}/provenance"]
        pages += [
            f"/stories/{event}",
            f"/days/{date}",
            "/search?q=paper",
            "/sources",
            "/health",
            "/v1/events",
            f"/v1/days/{date}",
        ]
        pages += [
            "/v1/events.atom",
            "/v1/top-stories",
            f"/v1/events/{event}/items.csv",
            "/desks",
            "/webhooks",
        ]
        print("| page | bytes | gzip | CPU, ms | p50, ms | p99, ms | requests |\n|" + 7 * " --- |")
        for path in args.pages or pages:
            print(await read_page(running, sessions, path, args.every, args.seconds), flush=True)


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=300)
    parser.add_argument("--largest", type=int, default=2_000, help="items of the largest event")
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between requests of a reader")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each page")
    parser.add_argument("--pages", nargs="*", help="paths instead of all")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=(), help="options of aggregator serve")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
