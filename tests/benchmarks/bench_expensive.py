"""Expensive single posts: processor time on the event loop, and the latency of another caller.

    scripts/bench expensive [--posts 8] [--ordinary 300] [--json FILE]

A service with a memory store and one analysis worker runs in this process; a client thread posts to it.

    event loop   processor time of the service's thread per post, alone: does not depend on other processes
    other        posts of another address, one at a time, while ``--posts`` expensive ones run at once:
                 number, median and maximum in ms; depends on what else runs on the machine

Exit code 1 if a post uses more than ``MAX_LOOP_MS`` of the event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import random
import statistics
import string
import sys
import threading
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.runtime.web_process import warm_up
from aggregator.settings import Settings
from tests.support.factories import story

MAX_LOOP_MS = 50.0
OTHER_ADDRESS = "127.0.0.2"
_random = random.Random(2)


def _word(letters: str, length: int) -> str:
    return "".join(_random.choice(letters) for _ in range(length))


def expensive_bodies() -> dict[str, dict[str, str]]:
    """Article fields by name; all are below the limits of size."""
    ideographs = "".join(chr(number) for number in range(0x4E00, 0x9FD5))
    cyrillic = "".join(chr(number) for number in range(0x430, 0x450))
    return {
        "U+FDFA x 49,900": {"text": "\ufdfa" * 49_900},
        "random ideographs x 49,900": {"text": _word(ideographs, 49_900)},
        "5,000 distinct words": {"text": " ".join(_word(string.ascii_lowercase, 8) for _ in range(5_000))},
        "U+FDFA x 900": {"text": "\ufdfa" * 900},
        "random ideographs x 2,400": {"text": _word(ideographs, 2_400)},
        "1,000 distinct Russian words": {"text": " ".join(_word(cyrillic, 8) for _ in range(1_000))},
        "marks x 40,000": {"text": "a" + "\u0301\u0327" * 20_000},
        "ASCII x 50,000, repeated": {"text": "the ferry runs again on monday " * 1_612},
        "Russian x 1,000,000": {"text": "паром снова ходит по понедельникам " * 28_500},
        "ASCII x 1,900,000": {"text": "the ferry runs again on monday " * 61_290},
        "page of 1.8 MB": {"html": "<html><body>" + f"<p>{story(1, 40)}</p>" * 500 + "</body></html>"},
    }


class Poster:
    """Posts articles with new ids."""

    def __init__(self, session: aiohttp.ClientSession, url: str, loop_clock: int) -> None:
        self._session, self._url, self._loop_clock = session, url, loop_clock
        self._number = 0

    async def post(self, fields: dict[str, str]) -> tuple[int, float, float]:
        """Status, time in ms, and processor time of the event loop meanwhile in ms."""
        self._number += 1
        # A different article each time: one paragraph more.
        name, content = next(iter(fields.items()))
        extra = f" x{self._number} " if name == "text" else f"<p>Number {self._number}.</p></body>"
        body = {"id": f"{id(self)}-{self._number}", name: (
            content + extra if name == "text" else content.replace("</body>", extra)
        )}  # fmt: skip
        data = json.dumps(body, ensure_ascii=False).encode()
        used_s, started_s = time.clock_gettime(self._loop_clock), time.perf_counter()
        async with self._session.post(self._url, data=data) as response:
            await response.read()
        return (
            response.status,
            (time.perf_counter() - started_s) * 1e3,
            (time.clock_gettime(self._loop_clock) - used_s) * 1e3,
        )


async def measure(url: str, loop_clock: int, posts: int, ordinary: int) -> dict[str, Any]:
    """The figures of all articles, in the client thread."""
    connector = aiohttp.TCPConnector(local_addr=(OTHER_ADDRESS, 0))
    async with aiohttp.ClientSession() as session, aiohttp.ClientSession(connector=connector) as session_2:
        caller, other = Poster(session, url, loop_clock), Poster(session_2, url, loop_clock)
        for number in range(200):  # vocabulary of ordinary articles
            await other.post({"text": story(number, 6)})
        figures: dict[str, Any] = {}
        calm = [await other.post({"text": story(1000 + number, 6)}) for number in range(ordinary)]
        figures["ordinary"] = _line([loop_ms for _, _, loop_ms in calm], [ms for _, ms, _ in calm], [])
        print(f"{'ordinary article':30} {_text(figures['ordinary'])}", flush=True)
        for name, fields in expensive_bodies().items():
            alone = [await caller.post(fields) for _ in range(posts)]
            together = [asyncio.create_task(caller.post(fields)) for _ in range(posts)]
            latencies: list[float] = []
            while not all(task.done() for task in together):
                latencies.append((await other.post({"text": story(2000 + len(latencies), 6)}))[1])
            statuses = [status for status, _, _ in alone + [task.result() for task in together]]
            figures[name] = _line([loop_ms for _, _, loop_ms in alone], latencies, statuses)
            print(f"{name:30} {_text(figures[name])}", flush=True)
    return figures


def _line(loop_ms: list[float], other_ms: list[float], statuses: list[int]) -> dict[str, Any]:
    return {
        "loop_ms_median": round(statistics.median(loop_ms), 2),
        "loop_ms_max": round(max(loop_ms), 2),
        "other_posts": len(other_ms),
        "other_ms_median": round(statistics.median(other_ms), 1),
        "other_ms_max": round(max(other_ms), 1),
        "failed": sum(status not in (200, 201) for status in statuses),
    }


def _text(line: dict[str, Any]) -> str:
    return (
        f"event loop {line['loop_ms_median']:7.2f} ms, at most {line['loop_ms_max']:7.2f}; other: "
        f"{line['other_posts']:4} posts, median {line['other_ms_median']:7.1f} ms, "
        f"at most {line['other_ms_max']:7.1f}; {line['failed']} failed"
    )


async def run(posts: int, ordinary: int) -> dict[str, Any]:
    """Serve in this thread and measure in another."""
    settings = Settings(store_url="memory")
    if "request_timeout_seconds" in {field.name for field in dataclasses.fields(Settings)}:
        settings = dataclasses.replace(settings, request_timeout_seconds=600.0)
    async with open_service(settings, processes=1) as service:
        await warm_up(service)
        runner = web.AppRunner(make_app(service), auto_decompress=False)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        loop_clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            return await asyncio.to_thread(
                lambda: asyncio.run(measure(f"http://{host}:{port}/v1/articles", loop_clock, posts, ordinary))
            )
        finally:
            await runner.cleanup()


def main() -> int:
    """Measure and compare with the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--posts", type=int, default=8, help="expensive posts of each kind, alone and at once"
    )
    parser.add_argument("--ordinary", type=int, default=300, help="ordinary articles")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures = asyncio.run(run(options.posts, options.ordinary))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    worst = max(line["loop_ms_max"] for line in figures.values())
    print(f"event loop at most {worst:.1f} ms per post; the bound is {MAX_LOOP_MS:g} ms")
    return int(worst > MAX_LOOP_MS)


if __name__ == "__main__":
    sys.exit(main())
