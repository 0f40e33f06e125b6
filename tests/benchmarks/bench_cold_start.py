"""Events of a fresh service that receives unrelated full texts and the headlines of one story.

    python -m tests.benchmarks.bench_cold_start [--texts 600] [--outlets 24] [--seconds 60] [--draws 3]

A new service with its embedded store receives within SECONDS, in random order, TEXTS articles drawn from two
English corpora of other years and OUTLETS headlines of one story of the labelled stream, each of another
outlet: once without dates, as a crawler sends them that knows none, once the texts with their dates. Expected
is exactly one event, of the planted story. Prints for each draw the number of events, the share of the
planted headlines in the event of the story, and how many of its items are others.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

import aiohttp

from aggregator.offline.jsonl import read_rows
from tests.benchmarks.bench_http import wait_for_detector
from tests.benchmarks.bench_service import running_service
from tests.support.development_data import DATA

CORPORA = ("allsides_dev.jsonl.gz", "reuters21578_dev.jsonl.gz")
STREAM = "uci_stories_dev.jsonl.gz"
# Two passes of the detector, and one of its minutes, in which a story that has grown is examined again.
SETTLE_S = 65.0
PLANTED = "planted-"


def draw(rng: random.Random, texts: int, outlets: int) -> list[dict[str, Any]]:
    """Bodies in the order of posting: texts with their dates, and the headlines of one story."""
    bodies = []
    for name in CORPORA:
        rows = [row for row in read_rows([str(DATA / name)]) if row["published_at"]]
        for row in rng.sample(rows, texts // len(CORPORA)):
            bodies.append({field: row[field] for field in ("id", "title", "text", "source", "published_at")})
    stories: dict[str, dict[str, Any]] = {}
    for row in read_rows([str(DATA / STREAM)]):
        stories.setdefault(row["cluster"], {}).setdefault(row["source"], row)
    sources = rng.choice([found for found in stories.values() if len(found) >= outlets])
    for row in rng.sample(list(sources.values()), outlets):
        bodies.append({"id": PLANTED + row["id"], "title": row["title"], "source": row["source"]})
    rng.shuffle(bodies)
    return bodies


async def events_of(bodies: Sequence[dict[str, Any]], seconds: float) -> list[list[str]]:
    """Ids of the items of each event of a fresh service that receives ``bodies`` within ``seconds``."""
    async with running_service() as running, aiohttp.ClientSession(running.url) as session:
        started = time.monotonic()
        for number, body in enumerate(bodies):
            await asyncio.sleep(started + number * seconds / len(bodies) - time.monotonic())
            async with session.post("/v1/articles", json=body) as response:
                response.raise_for_status()
        await wait_for_detector(session, running.url)
        await asyncio.sleep(SETTLE_S)
        async with session.get("/v1/events?limit=200") as response:
            events = (await response.json())["events"]
        items = []
        for event in events:
            async with session.get(f"/v1/events/{event['id']}") as response:
                items.append((await response.json())["items"])
        return items


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--outlets", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    for seed in range(options.draws):
        dated = draw(random.Random(seed), options.texts, options.outlets)
        undated = [{k: v for k, v in body.items() if k != "published_at"} for body in dated]
        texts = [body for body in dated if not body["id"].startswith(PLANTED)]
        for name, bodies in (("undated, story", undated), ("dated texts", texts)):
            events = asyncio.run(events_of(bodies, options.seconds))
            found = [sum(id_.startswith(PLANTED) for id_ in event) for event in events]
            print(
                f"draw {seed}, {name}: {len(events)} events; planted headlines in them {found}, "
                f"others {[len(event) - own for event, own in zip(events, found, strict=True)]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
