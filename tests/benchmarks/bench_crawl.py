"""Scrapy crawls of a local site in parallel with busy processes: items that pass unchecked, duplicates, time.

The site serves the texts of development data files as pages; the crawl runs the pipeline with its default
settings against a real service with an empty embedded store. ``--client DIR`` runs the pipeline of another
checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import html
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.development_data import DATA
from tests.support.server_fixture import serving

CRAWL = Path(__file__).parents[1] / "clients" / "crawl.py"
FILES = ("spotsigs_dev", "yahoo_finance_dev")
SPIN = "while True: pass"


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that use all the time they get."""
    with ExitStack() as stack:
        for _ in range(count):
            spinner = subprocess.Popen([sys.executable, "-S", "-c", SPIN])
            stack.callback(spinner.wait)
            stack.callback(spinner.kill)
        yield


def read_pages(name: str, count: int) -> list[str]:
    """The first articles of a development data file as HTML pages."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        articles = [json.loads(line) for line in islice(file, count)]
    return [
        f"<h1>{html.escape(article['title'])}</h1>"
        + "".join(f"<p>{html.escape(part)}</p>" for part in article["text"].split("\n"))
        for article in articles
    ]


async def crawl(
    pages: list[str], requests: int, busy_processes: int, client: Path | None
) -> tuple[dict[str, int], float]:
    """Stats of the pipeline, and the time of the crawl in s; the busy processes start after the service."""

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=pages[int(request.match_info["number"])], content_type="text/html")

    app = web.Application()
    app.router.add_get("/page/{number}", page)
    with tempfile.TemporaryDirectory() as folder:
        async with TestServer(app) as site, serving(data_dir=Path(folder) / "var") as url:
            database = Path(folder) / "database"
            environment = {**os.environ} | ({"PYTHONPATH": str(client)} if client else {})
            arguments = [
                str(site.make_url("")).rstrip("/"),
                "0",
                str(len(pages)),
                str(database),
                f"NEWSDEDUP_URL={url}",
                f"CONCURRENT_REQUESTS_PER_DOMAIN={requests}",
            ]
            with busy(busy_processes):
                started_s = time.monotonic()
                process = await asyncio.create_subprocess_exec(
                    sys.executable, str(CRAWL), *arguments, env=environment, cwd=folder
                )
                if await process.wait():
                    raise RuntimeError("the crawl failed")
                took_s = time.monotonic() - started_s
            stats: dict[str, int] = json.loads((Path(folder) / "database.stats").read_text())
    return stats, took_s


async def main() -> None:
    """Print one row per file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages", type=int, default=120, help="pages of each file (default %(default)s)")
    parser.add_argument("--busy", type=int, default=2, help="busy processes (default %(default)s)")
    parser.add_argument("--requests", type=int, default=16, help="pages at once (default %(default)s)")
    parser.add_argument("--client", type=Path, help="checkout whose pipeline is used (default: this one)")
    args = parser.parse_args()
    print("| file | pages | checked | duplicates | unchecked | s |\n| --- | --- | --- | --- | --- | --- |")
    for name in FILES:
        if not (DATA / f"{name}.jsonl.gz").exists():
            print(f"{name}: not in {DATA}", file=sys.stderr)
            continue
        pages = read_pages(name, args.pages)
        stats, took_s = await crawl(pages, args.requests, args.busy, args.client)
        unchecked = stats.get("newsdedup/unchecked", 0) + stats.get("newsdedup/unknown", 0)
        duplicates = stats.get("newsdedup/duplicate", 0)
        checked = len(pages) - unchecked
        print(
            f"| {name} | {len(pages)} | {checked} | {duplicates} | {unchecked} | {took_s:.1f} |", flush=True
        )


if __name__ == "__main__":
    asyncio.run(main())
