"""``aggregator dedupe --load``: put the deduplicated copy into the index of a service."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from aggregator.cli.ingest import format_counts, iter_batches
from aggregator.cli.ingest_targets import open_target
from aggregator.cli.progress import item_progress
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.jsonl import Line
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator_archive import rows
from aggregator_archive.job import Job


def load_into_index(job: Job, args: argparse.Namespace, settings: Settings) -> int:
    """Send all readable rows of the copy; returns the number of rejected ones. Raises StoreUnavailable."""
    file = job.table("deduplicated")
    return run_loop(_load(file, dict(job.encoding.columns), args, settings))


async def _load(file: Path, columns: Mapping[str, str], args: argparse.Namespace, settings: Settings) -> int:
    counts: Counter[str] = Counter()
    args.files = [str(file)]  # open_target counts the input files
    args.backfill = True
    with item_progress("articles loaded", shown=not args.no_progress) as show_count:
        async with open_target(args, settings) as target:
            for batch in iter_batches(iter_lines(file, columns)):
                async for reply in target.send(batch, dry_run=False):
                    counts[reply.verdict or "bad"] += 1  # no verdict: rejected
                show_count(counts.total())
    print(f"loaded {format_counts(counts)}", file=sys.stderr)
    return counts["bad"]


def iter_lines(file: Path, columns: Mapping[str, str]) -> Iterator[Line]:
    """The rows of a table as JSON lines of articles."""
    for name, number, row in rows.numbered_rows([str(file)]):
        if isinstance(row, InvalidInput):
            yield Line(name, number, error=row)
        else:
            yield Line(name, number, _encode(rows.parse_article(row, columns)))


def _encode(article: Article) -> bytes:
    fields = {name: getattr(article, name) for name in rows.ARTICLE_FIELDS if name != "published_at"}
    body = {name: value for name, value in fields.items() if value}
    if article.published_at_ms is not None:
        body["published_at"] = datetime.fromtimestamp(article.published_at_ms / 1000, UTC).isoformat()
    return msgspec.json.encode(body)
