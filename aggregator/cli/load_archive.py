"""``aggregator dedupe --load``: what is left of an archive becomes the back-file of a running index.

The rows of the deduplicated copy go the way of ``aggregator ingest``: same decisions, same ids, so loading twice
changes nothing, and an interrupted load is simply run again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from aggregator.cli.ingest import iter_batches, open_target, summary_line
from aggregator.cli.progress import ItemProgress
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.offline.archive import rows
from aggregator.offline.jsonl import Line
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings


def load(file: Path, columns: Mapping[str, str], args: argparse.Namespace, settings: Settings) -> int:
    """Send every row of ``file``; how many could not be used. Raises StoreUnavailable."""
    return run_loop(_load(file, columns, args, settings))


async def _load(file: Path, columns: Mapping[str, str], args: argparse.Namespace, settings: Settings) -> int:
    counts: Counter[str] = Counter()
    args.files = [str(file)]
    with ItemProgress("articles loaded", shown=not args.no_progress) as progress:
        async with open_target(args, settings) as target:
            for batch in iter_batches(iter_lines(file, columns)):
                for reply in await target.send(batch, dry_run=False):
                    counts[reply.verdict or "bad"] += 1
                progress.set_count(counts.total())
    print(f"loaded {summary_line(counts, 0.0).partition(';')[0]}", file=sys.stderr)
    return counts["bad"]


def iter_lines(file: Path, columns: Mapping[str, str]) -> Iterator[Line]:
    """The rows of a table as the service takes them."""
    for block in rows.read_blocks([str(file)]):
        for number, row in block.rows:
            if not isinstance(row, InvalidInput):
                yield Line(block.file, number, _encode(rows.parse_article(row, columns)))


def _encode(article: Article) -> bytes:
    when = article.published_at_ms
    stamp = None if when is None else datetime.fromtimestamp(when / 1000, UTC).isoformat()
    given = {name: getattr(article, name) for name in rows.ARTICLE_FIELDS if name != "published_at"}
    return msgspec.json.encode(
        {name: value for name, value in given.items() if value} | {"published_at": stamp}
    )
