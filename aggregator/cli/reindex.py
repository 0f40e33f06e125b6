"""``aggregator reindex``: build the index for another model or block plan while the current one serves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from aggregator.app import open_service
from aggregator.cli.embedded_store import with_running_store_url
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
    """Exit code 0 if all stored articles are in the new index, 1 if some could not be copied."""
    if args.files:
        jsonl.check_readable(args.files)
    if not (settings.migration_models_dir or settings.migration_block_plan):
        raise ConfigurationError(
            "migration_models_dir: set it to the models, or migration_block_plan to the plan, to migrate to."
        )
    return run_loop(_run(args, with_running_store_url(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        if service.dual_writer is None:
            print("The migration settings equal the current ones: nothing to do.", file=sys.stderr)
            return EXIT_OK
        with ItemProgress("articles", shown=not args.no_progress) as progress:

            def on_progress(stats: BackfillStats) -> None:
                progress.set_count(stats.examined)

            if args.files:
                articles = _read_articles(args.files, settings.max_body_bytes)
                stats = await backfill_from_articles(
                    service.index, service.dual_writer, articles, on_progress, service.load_control.throttle
                )
            else:
                stats = await backfill_from_store(
                    service.index, service.dual_writer, on_progress, service.load_control.throttle
                )
    print(_summary(stats, service.index.shadow_spaces), file=sys.stderr)
    return EXIT_PARTIAL_FAILURE if stats.not_copied else EXIT_OK


def _read_articles(files: list[str], max_line_bytes: int) -> Iterator[Article]:
    """The articles of all valid lines; invalid ones cannot be stored, since posting rejects them too."""
    for line in map(strip_labels, jsonl.read_lines(files, max_line_bytes=max_line_bytes)):
        try:
            if line.error is None:
                yield decode_article(line.data)
        except InvalidInput:
            continue


def _summary(stats: BackfillStats, spaces: tuple[str, ...]) -> str:
    text = f"{', '.join(spaces)}: {stats.examined} articles examined, {stats.not_copied} could not be copied"
    if stats.not_copied:
        text += " (their text is not stored: pass a file that contains them, or wait until they expire)"
    if stats.not_stored:
        text += f"; {stats.not_stored} lines skipped, since their articles are not stored"
    return text + "."
