"""CPU per article while a service fills, for several source trees alternately (``scripts/bench table``).

    scripts/bench table [--trees NAME=DIR ...] [--articles 42000] [--columns 7] [--turns 1]
                        [--lang zh] [--peer]

Real articles of the development data, English ones or with ``--lang zh`` Chinese ones, each with its outlet
and date, shuffled once. They are sent in batches into a new service with its embedded store. Where more are
wanted than there are, the longest ones are sent as two halves. The service runs from each tree in turn
(default: this one), all with the same packages. Per column, a share of the articles:

    articles/s     until the last batch is answered; sustained: until the detector has read all of them
    CPU in ms      per article: serving process, background process, analysis, store and their sum; of the
                   serving process after the last answer, else once the detector has read all articles

then the growth from the first column to the last, and for every tree how many answers differ from those of
the first one. With ``--peer`` datasketch's MinHashLSH, in memory in one process, indexes the same articles
in each turn as its users write it: words of title and text joined in threes, PEER_PERMUTATIONS permutations,
query and insertion of every article.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp
import uvloop

from aggregator_archive.rows import read_rows
from tests.benchmarks.bench_http import BATCH_LINES, PEER_PERMUTATIONS, wait_for_detector
from tests.support.cpu_spinner import add_option, awake
from tests.support.development_data import DATA
from tests.support.processes import Usage, usage
from tests.support.server_fixture import UNHURRIED, ready

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    "en": (
        "reuters21578_dev",
        "allsides_dev",
        "spotsigs_dev",
        "ecbplus_dev",
        "yahoo_finance_dev",
        "lee_background300_dev",
        "lee50_dev",
    ),
    "zh": ("xinwenlianbo_dev",),
}
UNITS = {"en": "words", "zh": "characters"}
PROCESSES = ("serving", "background", "analysis", "store")
# What an answer says of the article; times and the id of an event depend on the run.
IGNORED_FIELDS = ("timings_ms", "event_id")


class Column(NamedTuple):
    """One share of the articles: how many per second, and CPU in ms per article and process.

    ``sustained``: per second until the detector had read them, too, which a longer load cannot exceed.
    """

    per_second: float
    sustained: float
    cpu_ms: dict[str, float]

    @property
    def all_ms(self) -> float:
        """CPU of all processes."""
        return sum(self.cpu_ms.values())


RATES: dict[str, Callable[[Column], float]] = {
    "articles/s": lambda column: column.per_second,
    "articles/s, sustained": lambda column: column.sustained,
}


def real_articles(count: int, lang: str) -> list[dict[str, Any]]:
    """``count`` request bodies, shuffled; the longest articles are parted in halves if there are fewer."""
    rows = [row for name in SOURCES[lang] for row in _rows_of(name)]
    missing = max(0, count - len(rows))
    rows.sort(key=lambda row: -len(row["text"]))
    rows = [half for row in rows[:missing] for half in _halves(row, lang)] + rows[missing:]
    random.Random(20).shuffle(rows)
    return rows[:count]


def _rows_of(name: str) -> Iterator[dict[str, Any]]:
    for row in read_rows([str(DATA / f"{name}.jsonl.gz")]):
        body = {key: row[key] for key in ("text", "url", "source", "published_at") if row.get(key)}
        yield {**body, "id": f"{name}-{row['id']}", "title": (row.get("title") or "")[:500]}


def _units(text: str, lang: str) -> list[str]:
    """The words of a text, or its characters."""
    return text.split() if UNITS[lang] == "words" else list(text)


def _joined(units: Sequence[str], lang: str) -> str:
    return (" " if UNITS[lang] == "words" else "").join(units)


def _halves(row: dict[str, Any], lang: str) -> Iterator[dict[str, Any]]:
    units = _units(row["text"], lang)
    for i, half in enumerate((units[: len(units) // 2], units[len(units) // 2 :])):
        body = {key: value for key, value in row.items() if key != "url"}
        yield {**body, "id": f"{row['id']}-{i}", "text": _joined(half, lang)}


@asynccontextmanager
async def service_of(tree: Path) -> AsyncIterator[tuple[str, int]]:
    """URL and process id of a service that runs from ``tree`` on a new store."""
    packages = sorted((tree / "packages").iterdir())  # the command line loads what they add
    with tempfile.TemporaryDirectory() as directory:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aggregator", "serve", "--port=0"),
            *(f"--data-dir={directory}", "--log-level=WARNING"),
            stdout=asyncio.subprocess.PIPE,
            cwd=tree,
            env={**os.environ, **_unhurried(tree), "PYTHONPATH": ":".join(map(str, (tree, *packages)))},
        )
        try:
            yield await ready(process), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()


def _unhurried(tree: Path) -> dict[str, str]:
    """No deadline of requests, if the tree has that setting."""
    has_deadline = "request_timeout_seconds" in (tree / "aggregator/settings.py").read_text(encoding="utf-8")
    return UNHURRIED if has_deadline else {}


async def measure(tree: Path, columns: Sequence[Sequence[bytes]], answers: list[bytes]) -> list[Column]:
    """Fill a new service; ``answers`` gets the lines that it answers."""
    measured = []
    async with (
        service_of(tree) as (url, pid),
        aiohttp.ClientSession(
            headers={"Content-Type": "application/x-ndjson"}, timeout=aiohttp.ClientTimeout(total=None)
        ) as session,
    ):
        await _post(session, url, [b'{"id": "warm-%d", "text": "warm up"}' % i for i in range(64)])
        await wait_for_detector(session, url)
        for lines in columns:
            before, started = usage(pid), time.perf_counter()
            for start in range(0, len(lines), BATCH_LINES):
                answers += await _post(session, url, lines[start : start + BATCH_LINES])
            seconds, answered = time.perf_counter() - started, usage(pid)
            await wait_for_detector(session, url)
            read_s = time.perf_counter() - started
            cpu_ms = _cpu_ms(before, usage(pid), len(lines))
            cpu_ms["serving"] = _cpu_ms(before, answered, len(lines))["serving"]  # without the waiting
            measured.append(Column(len(lines) / seconds, len(lines) / read_s, cpu_ms))
            print(json.dumps({"tree": tree.name, **measured[-1]._asdict()}), file=sys.stderr, flush=True)
    return measured


def _cpu_ms(before: Usage, after: Usage, articles: int) -> dict[str, float]:
    parts = after.parts_since(before)
    spent = {"serving": parts["requests"], **parts, "store": after.since(before)["store"]}
    return {name: spent.get(name, 0.0) * 1000 / articles for name in PROCESSES}


async def _post(session: aiohttp.ClientSession, url: str, lines: Sequence[bytes]) -> list[bytes]:
    async with session.post(url + "/v1/articles/batch", data=b"\n".join(lines)) as response:
        replies = (await response.read()).splitlines()
    assert response.status == 200 and len(replies) == len(lines), (response.status, replies[:1])
    return replies


def compared(line: bytes) -> dict[str, Any]:
    """What must not depend on the run, of the answer to one article."""
    answer = json.loads(line)
    return {key: value for key, value in answer.items() if key not in IGNORED_FIELDS}


def measure_peer(columns: Sequence[Sequence[bytes]], lang: str) -> list[Column]:
    """Datasketch's MinHashLSH in memory: query and insert each article; Chinese in threes of characters."""
    from datasketch import MinHash, MinHashLSH

    lsh = MinHashLSH(threshold=0.5, num_perm=PEER_PERMUTATIONS)
    measured = []
    for lines in columns:
        started, started_s = time.perf_counter(), time.process_time()
        for line in lines:
            row = json.loads(line)
            text = f"{row['title']} {row['text']}".lower()
            units = re.findall(r"\w+", text) if UNITS[lang] == "words" else list(text)
            signature = MinHash(num_perm=PEER_PERMUTATIONS)
            signature.update_batch(
                [_joined(units[i : i + 3], lang).encode() for i in range(max(1, len(units) - 2))]
            )
            lsh.query(signature)
            lsh.insert(row["id"], signature)
        cpu_ms = {"serving": (time.process_time() - started_s) * 1000 / len(lines)}
        per_second = len(lines) / (time.perf_counter() - started)
        measured.append(Column(per_second, per_second, cpu_ms))
    return measured


def print_table(name: str, turns: Sequence[Sequence[Column]], stored: Sequence[int]) -> None:
    """Medians over the turns, a Markdown table; spread and growth below."""
    print(f"\n| {name}, stored | " + " | ".join(f"{n:,}" for n in stored) + " |")
    print("| --- |" + " --- |" * len(stored))
    columns = list(zip(*turns, strict=True))
    for label, rate_of in RATES.items():
        print(f"| {label} | " + " | ".join(f"{median(map(rate_of, each)):.0f}" for each in columns) + " |")
    for process in turns[0][0].cpu_ms:
        middle = (median(c.cpu_ms[process] for c in each) for each in columns)
        print(f"| {process}, ms | " + " | ".join(f"{ms:.2f}" for ms in middle) + " |")
    print("| all, ms | " + " | ".join(f"{median(c.all_ms for c in each):.2f}" for each in columns) + " |")
    last = [turn[-1].all_ms for turn in turns]
    growth = [turn[-1].all_ms / turn[0].all_ms for turn in turns]
    print(
        f"last column: {min(last):.2f} to {max(last):.2f} ms; growth {min(growth):.2f} to {max(growth):.2f}"
    )


async def run(args: argparse.Namespace) -> None:
    """Measure the trees alternately, print the tables."""
    trees: dict[str, Path] = dict(args.trees)
    rows = real_articles(args.articles, args.lang)
    lines = [json.dumps(row).encode() for row in rows]
    step = -(-len(lines) // args.columns)
    columns = [lines[i : i + step] for i in range(0, len(lines), step)]
    stored = [min(i + step, len(lines)) for i in range(0, len(lines), step)]
    mean = sum(len(_units(row["text"], args.lang)) for row in rows) / len(rows)
    print(f"{len(lines):,} articles of {mean:.0f} {UNITS[args.lang]} on average", flush=True)
    tables: dict[str, list[list[Column]]] = {name: [] for name in trees}
    first_answers: dict[str, list[bytes]] = {}
    for turn in range(args.turns):
        for name in trees if turn % 2 == 0 else reversed(trees):
            answers: list[bytes] = []
            tables[name].append(await measure(trees[name], columns, answers))
            first_answers.setdefault(name, answers)
        if args.peer:
            tables.setdefault("MinHashLSH", []).append(
                await asyncio.to_thread(measure_peer, columns, args.lang)
            )
    for name, turns in tables.items():
        print_table(name, turns, stored)
    print_ratios(tables, next(iter(trees)))
    reference = list(map(compared, first_answers.pop(next(iter(trees)))))
    for name, answers in first_answers.items():
        pairs = list(zip(reference, map(compared, answers), strict=True))
        differing = [own["id"] for own, other in pairs if own != other]
        print(f"answers of {name} that differ: {len(differing)} of {len(pairs):,}", *islice(differing, 5))


def print_ratios(tables: dict[str, list[list[Column]]], first: str) -> None:
    """CPU and rate in the last column against the first tree's, turn by turn."""
    for name, turns in tables.items():
        pairs = [(old[-1], new[-1]) for old, new in zip(tables[first], turns, strict=True)]
        cpu = [old.all_ms / new.all_ms for old, new in pairs]
        print(f"{name} against {first}, last column: CPU 1/{_spread(cpu)}")
        for label, rate_of in RATES.items():
            print(f"    {label} x{_spread([rate_of(new) / rate_of(old) for old, new in pairs])}")


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _tree(argument: str) -> tuple[str, Path]:
    name, _, path = argument.rpartition("=")
    return name or path, Path(path).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", nargs="*", type=_tree, default=[("this", ROOT)], metavar="NAME=DIR")
    parser.add_argument("--articles", type=int, default=42_000)
    parser.add_argument("--columns", type=int, default=7)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--lang", choices=SOURCES, default="en")
    parser.add_argument("--peer", action="store_true", help="datasketch's MinHashLSH in memory as well")
    add_option(parser)
    args = parser.parse_args()
    with awake(args.awake):
        uvloop.run(run(args))


if __name__ == "__main__":
    main()
