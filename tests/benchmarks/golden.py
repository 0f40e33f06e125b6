"""Golden runs: the answers of two source trees on the same real articles (``scripts/golden OLD NEW``).

Parts: ``batch`` and ``single`` (verdicts of 20,000 articles in English, Chinese, Russian and German, sent as
files and as single requests), ``events`` (replays of six windows), ``evaluate`` (four protocols), ``dedupe``,
and ``contract`` (OpenAPI document, metric names, ``--help`` of every command). Each tree runs in processes of
its own, with the packages installed in this environment; the results stay in DIR as files to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from aiohttp import ClientSession

from tests.support.development_data import DATA

# File -> number of articles.
ARTICLES = {
    "allsides_dev": 4000,
    "reuters21578_dev": 4000,
    "xinwenlianbo_dev": 4000,
    "ru_telegram_dev": 6000,
    "gnad10k_dev": 500,
    "headlines_de_2023_dev": 1500,
}
WINDOWS = (
    "reuters_window_20070416",
    "reuters_window_20081126",
    "window_20081227_gaza-strikes",
    "window_20101128_wikileaks-cables",
    "window_20160714_nice-truck-attack",
    "window_20160722_munich-shooting",
)
EVALUATIONS: dict[str, Sequence[str]] = {
    "near-duplicates": ("spotsigs_dev.jsonl.gz",),
    "related": ("ecbplus_dev.jsonl.gz", "--background", "{lee}"),
    "events": ("{data}", "events_dev.json", "--json"),
    "duplicates": ("short_texts_en_2020_dev.jsonl.gz", "--max", "3000"),
}
COMMANDS = (
    *("serve", "ingest", "check", "work", "explain", "reindex", "delete-index", "replay", "fit"),
    *("dedupe", "evaluate", "backup", "restore", "config", "keys", "doctor"),
)
PARTS = ("contract", "batch", "single", "events", "evaluate", "dedupe")
TIMES = re.compile(r"\d+(\.\d+)? ?(s|ms|GB|MB|articles/s)\b|\d+/s\b")


class Tree:
    """One checkout, whose package is imported by the processes that it starts."""

    def __init__(self, root: Path) -> None:
        paths = [root, *sorted(path for path in (root / "packages").glob("*") if path.is_dir())]
        # No column limit of a terminal; no configuration of this machine.
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "COLUMNS": "100",
            "AGGREGATOR_CONFIG": "",
        }

    def command(self, *arguments: str, check: bool = True) -> str:
        """Standard output of one ``aggregator`` command, run in an empty directory."""
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run(
                [sys.executable, "-m", "aggregator", *arguments],
                capture_output=True, text=True, env=self.environment, cwd=directory, check=False,
            )  # fmt: skip
        if check and done.returncode:
            raise SystemExit(
                f"aggregator {' '.join(arguments)}: exit {done.returncode}\n{done.stderr[-2000:]}"
            )
        return done.stdout

    @contextmanager
    def service(self) -> Iterator[str]:
        """URL of a running service with a memory store."""
        with tempfile.TemporaryDirectory() as directory, open(Path(directory) / "log", "w+") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "aggregator", "serve", "--store-url", "memory", "--port", "0"],
                stdout=log, stderr=log, env=self.environment, cwd=directory,
            )  # fmt: skip
            try:
                yield wait_for_url(process, log)
            finally:
                process.terminate()
                process.wait()


def wait_for_url(process: subprocess.Popen[bytes], log: IO[str]) -> str:
    """The address that the service logs once it serves."""
    while process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:\d+", Path(log.name).read_text()):
            return found.group()
    raise SystemExit(f"the service ended:\n{Path(log.name).read_text()[-2000:]}")


def sample(name: str, count: int) -> list[dict[str, object]]:
    """The first articles of a development file."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in itertools.islice(file, count)]


def record_contract(tree: Tree, out: Path) -> None:
    """OpenAPI document, names and labels of metrics, help texts."""
    with tree.service() as url:
        asyncio.run(_record_documents(url, out))
    for command in ("", *COMMANDS):
        arguments = (command, "--help") if command else ("--help",)
        (out / f"help-{command or 'all'}.txt").write_text(tree.command(*arguments))


async def _record_documents(url: str, out: Path) -> None:
    async with ClientSession(url) as session:
        for path, name in (("/openapi.json", "openapi.json"), ("/metrics", "metrics.txt")):
            async with session.get(path) as response:
                text = await response.text()
            if name == "openapi.json":
                text = json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False)
            else:
                text = "\n".join(sorted(line for line in text.splitlines() if line.startswith("# TYPE")))
            (out / name).write_text(text + "\n")


def record_batch(tree: Tree, out: Path) -> None:
    """Verdict lines of whole files."""
    for name, count in ARTICLES.items():
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(row) + "\n" for row in sample(name, count))
            file.flush()
            target = str((out / f"batch-{name}.jsonl").absolute())
            tree.command("ingest", file.name, "--store", "memory", "--no-progress", "--out", target)


def record_single(tree: Tree, out: Path) -> None:
    """Verdicts of single requests, without timings."""
    with tree.service() as url:
        for name, count in ARTICLES.items():
            answers = asyncio.run(_post_all(url, sample(name, count)))
            (out / f"single-{name}.jsonl").write_text("".join(answers))


async def _post_all(url: str, rows: list[dict[str, object]]) -> list[str]:
    answers = []
    fields = ("id", "title", "text", "url", "lang", "published_at", "source")
    async with ClientSession(url) as session:
        for row in rows:
            async with session.post(
                "/v1/articles", json={k: row[k] for k in fields if row.get(k)}
            ) as response:
                body = await response.json(content_type=None)
                for key in ("timings_ms", "request_id"):
                    body.pop(key, None)
                answers.append(json.dumps([response.status, body], sort_keys=True) + "\n")
    return answers


def record_events(tree: Tree, out: Path) -> None:
    """All events of six windows, with items, similarities, timelines and reasons."""
    for name in WINDOWS:
        target = str((out / f"events-{name}.jsonl").absolute())
        tree.command("replay", str(DATA / f"{name}.jsonl.gz"), "--no-progress", "--out", target)


def record_evaluate(tree: Tree, out: Path) -> None:
    """Figures of four protocols."""
    for protocol, arguments in EVALUATIONS.items():
        known = {"{data}": str(DATA), "{lee}": str(DATA / "lee_background300_dev.jsonl.gz")}
        paths = [known.get(a, str(DATA / a) if "_dev" in a else a) for a in arguments]
        (out / f"evaluate-{protocol}.txt").write_text(tree.command("evaluate", protocol, *paths))


def record_dedupe(tree: Tree, out: Path) -> None:
    """Groups of an archive."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "archive.jsonl"
        rows = sample("reuters21578_dev", 4000) + sample("xinwenlianbo_dev", 1000)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        text = tree.command("dedupe", str(file), "--no-progress", "--out", str(Path(directory) / "out"))
        (out / "dedupe.txt").write_text(text.replace(directory, ""))
        for path in sorted((Path(directory) / "out").glob("*.jsonl")):
            (out / f"dedupe-{path.name}").write_text(path.read_text())


def record(root: Path, out: Path, parts: Sequence[str]) -> None:
    """Write the results of a tree below ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    for part in parts:
        print(f"{root}: {part}", file=sys.stderr)
        globals()[f"record_{part}"](Tree(root), out)


def compare(old: Path, new: Path) -> int:
    """Print every file that differs, with its first differing lines; return their number."""
    different = 0
    for name in sorted({p.name for p in old.iterdir()} | {p.name for p in new.iterdir()}):
        before, after = (
            [TIMES.sub("#", line) for line in (path / name).read_text().splitlines()]
            if (path / name).exists()
            else ["(missing)"]
            for path in (old, new)
        )
        changed = (
            [line[:300] for line in difflib.unified_diff(before, after, lineterm="", n=0)]
            if before != after
            else []
        )
        different += bool(changed)
        print(
            f"{name}: {'equal' if not changed else f'{len(changed)} lines of the difference'} ({len(before)})"
        )
        print(*(f"    {line}" for line in changed[2:12]), sep="\n", end="\n" if changed else "")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/golden", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="checkout of the older state")
    parser.add_argument("new", type=Path, help="checkout of the newer state")
    parser.add_argument("--dir", type=Path, default=Path("reports/golden"), help="where the results are kept")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--keep-old", action="store_true", help="reuse the results of OLD that are in DIR")
    args = parser.parse_args()
    if not args.keep_old:
        record(args.old.absolute(), args.dir / "old", args.parts)
    record(args.new.absolute(), args.dir / "new", args.parts)
    sys.exit(1 if compare(args.dir / "old", args.dir / "new") else 0)


if __name__ == "__main__":
    main()
