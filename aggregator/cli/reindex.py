"""``aggregator reindex``: fill the space of another model or block plan while the present one serves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from aggregator.app import open_service
from aggregator.cli.doctor import reachable
from aggregator.cli.ingest import without_labels
from aggregator.cli.progress import Counted
from aggregator.contract.decoding import decode_article
from aggregator.domain import Article
from aggregator.errors import BadInput, ConfigurationError
from aggregator.ingest.backfill import Filled, fill_from_articles, fill_from_store
from aggregator.offline import jsonl
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import OK, SOME_BAD
from aggregator.settings import Settings


def run(args: argparse.Namespace, settings: Settings) -> int:
    """0 when all that is stored stands in the new space, 1 when something could not be brought in."""
    if args.files:
        jsonl.check_readable(args.files)
    if not (settings.next_models_dir or settings.next_block_plan):
        raise ConfigurationError(
            "next_models_dir: say which models, or with next_block_plan which plan, to change to."
        )
    return run_loop(_run(args, reachable(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        if service.beside is None:
            print("The spaces are the same: there is nothing to fill.", file=sys.stderr)
            return OK
        with Counted("articles", shown=not args.no_progress) as progress:

            def told(filled: Filled) -> None:
                progress.reach(filled.seen)

            if args.files:
                articles = _articles(args.files, settings.max_body_bytes)
                filled = await fill_from_articles(service.index, service.beside, articles, told, service.pace)
            else:
                filled = await fill_from_store(service.index, service.beside, told, service.pace)
    print(_summary(filled, service.index.beside), file=sys.stderr)
    return SOME_BAD if filled.missing else OK


def _articles(files: list[str], max_line_bytes: int) -> Iterator[Article]:
    """Those of the lines that are articles: others were refused when they were posted, too."""
    for line in map(without_labels, jsonl.lines(files, max_line_bytes=max_line_bytes)):
        try:
            if line.error is None:
                yield decode_article(line.data)
        except BadInput:
            continue


def _summary(filled: Filled, spaces: tuple[str, ...]) -> str:
    told = f"{', '.join(spaces)}: {filled.seen} articles looked at, {filled.missing} could not be brought in"
    if filled.missing:
        told += " (their text is not at hand: give a file of it, or let them expire)"
    if filled.unknown:
        told += f"; {filled.unknown} lines are not stored and were passed over"
    return told + "."
