"""``aggregator reindex``: fill the space of another model or block plan while the present one serves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from aggregator.app import open_service
from aggregator.cli.doctor import with_running_store_url
from aggregator.cli.ingest import strip_labels
from aggregator.cli.progress import ItemProgress
from aggregator.contract.decoding import decode_article
from aggregator.domain import Article
from aggregator.errors import ConfigurationError, InvalidInput
from aggregator.ingest.backfill import BackfillStats, backfill_from_articles, backfill_from_store
from aggregator.offline import jsonl
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK, EXIT_PARTIAL_FAILURE
from aggregator.settings import Settings


def run(args: argparse.Namespace, settings: Settings) -> int:
    """0 when all that is stored stands in the new space, 1 when something could not be brought in."""
    if args.files:
        jsonl.check_readable(args.files)
    if not (settings.migration_models_dir or settings.migration_block_plan):
        raise ConfigurationError(
            "migration_models_dir: say which models, or with migration_block_plan which plan, to change to."
        )
    return run_loop(_run(args, with_running_store_url(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        if service.dual_writer is None:
            print("The spaces are the same: there is nothing to fill.", file=sys.stderr)
            return EXIT_OK
        with ItemProgress("articles", shown=not args.no_progress) as progress:

            def told(filled: BackfillStats) -> None:
                progress.set_count(filled.examined)

            if args.files:
                articles = _read_articles(args.files, settings.max_body_bytes)
                filled = await backfill_from_articles(
                    service.index, service.dual_writer, articles, told, service.throttle
                )
            else:
                filled = await backfill_from_store(service.index, service.dual_writer, told, service.throttle)
    print(_summary(filled, service.index.shadow_spaces), file=sys.stderr)
    return EXIT_PARTIAL_FAILURE if filled.not_copied else EXIT_OK


def _read_articles(files: list[str], max_line_bytes: int) -> Iterator[Article]:
    """Those of the lines that are articles: others were refused when they were posted, too."""
    for line in map(strip_labels, jsonl.read_lines(files, max_line_bytes=max_line_bytes)):
        try:
            if line.error is None:
                yield decode_article(line.data)
        except InvalidInput:
            continue


def _summary(filled: BackfillStats, spaces: tuple[str, ...]) -> str:
    told = f"{', '.join(spaces)}: {filled.examined} articles looked at, {filled.not_copied} could not be brought in"
    if filled.not_copied:
        told += " (their text is not at hand: give a file of it, or let them expire)"
    if filled.not_stored:
        told += f"; {filled.not_stored} lines are not stored and were passed over"
    return told + "."
