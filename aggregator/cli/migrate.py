"""``aggregator migrate``: the steps to the index of another model or version, with what they need done here.

It copies stored articles into the index that the settings migrate to, or else read, and deletes one that they
do not read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from aggregator import jsonl
from aggregator.analysis.analyzer import group_of
from aggregator.app import Service, build_index, open_service
from aggregator.cli.ingest import strip_labels
from aggregator.cli.ingest_targets import RETRYABLE
from aggregator.cli.progress import item_progress
from aggregator.contract.decoding import decode_article
from aggregator.domain import Article, IndexLayout
from aggregator.errors import EXIT_OK, EXIT_PARTIAL_FAILURE, ConfigurationError, InvalidInput
from aggregator.index import Index
from aggregator.index.upkeep import spaces
from aggregator.ingest.backfill import Backfill, BackfillStats, remove_deleted
from aggregator.ingest.dual_write import DualWriter
from aggregator.jsonl import Line
from aggregator.runtime.addresses import with_options
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator.store.factory import with_running_store_url
from aggregator.time_units import format_minute
from aggregator_client.decision import JsonDates

STEPS = (
    "set migration_models_dir = {directory} and restart every process: articles are written to both indexes",
    "`aggregator migrate` with the same settings copies the older articles",
    "stop every process of the service, set migration_serve = true as well, and start them",
    "when no return is wanted: set models_dir = {directory}, unset the other two, and restart",
    "`aggregator migrate --delete {former}` frees memory" + spaces.STREAM_READ,
)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Exit code 0 if all stored articles are in the new index, 1 if some are not or lines are invalid."""
    if not args.delete and args.files:
        jsonl.check_readable(args.files)
    return run_loop(_delete(args, settings) if args.delete else _run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    is_migrating = bool(settings.migration_models_dir)
    async with open_service(with_running_store_url(settings, creates=False)) as service:
        unread = [found.space for found in await service.articles.foreign_index.find()]
        if not unread and not is_migrating:
            if used := ", ".join(await service.articles.foreign_index.used_elsewhere()):
                raise ConfigurationError(f"models_dir: {spaces.OTHER_SETTINGS.format(used)}.")
            former = await service.articles.foreign_index.leftovers()
            print("Nothing to copy. A change of model has these steps:", file=sys.stderr)
            _print_steps(4 if former else 0, settings, *former)
            return EXIT_OK
        complete, rejected = True, dict[str, Line]()
        if unread:
            index, writer = await _unread_migration(service, unread)
            versions = {space: await spaces.space_version(service.store, space) for space in unread}
            complete = await _copy(args, service, index, writer, rejected)
            await remove_deleted(index, writer)
            if complete:
                await spaces.set_copied(service.store, versions, service.articles.index.spaces)
        if service.articles.dual_writer is not None:
            complete &= await _copy_to_shadow(args, service, service.articles.dual_writer, rejected)
    for line in rejected.values():
        print(f"aggregator: {line.location}: {line.error}", file=sys.stderr)
    if service.articles.dual_writer is None and is_migrating:
        print("The migration settings equal the current ones: nothing to do.", file=sys.stderr)
    elif is_migrating:
        _print_steps((3 if settings.migration_serve else 2) if complete else 1, settings)
    return EXIT_OK if complete and not rejected else EXIT_PARTIAL_FAILURE


def _print_steps(done: int, settings: Settings, former: str = "INDEX", *_: str) -> None:
    directory = settings.migration_models_dir or "DIR"
    for number, step in enumerate(STEPS, 1):
        mark = "done" if number <= done else "next" if number == done + 1 else "    "
        mark = "not checked:" if number == done == 3 else mark  # of 1 and 2 the store has records
        text = with_options(step.format(directory=directory, former=former), settings)
        print(f"{mark} {number}. {text}.", file=sys.stderr)


async def _unread_migration(service: Service, unread: Sequence[str]) -> tuple[Index, DualWriter]:
    """The index of the ``unread`` spaces and the writer that copies it to the others; newer articles stay."""
    analyzer, registry = service.analysis.serving.analyzer, await spaces.registry_of(service.store).read()
    own, stored = analyzer.space_parts, {space: registry.get(space, spaces.StoredSpace()) for space in unread}
    recipes = {(group_of(space), parts.recipe) for space, parts in own.items()}
    index = build_index(service.settings, service.store, IndexLayout(tuple(unread), analyzer.spaces))
    writer = DualWriter(
        index,
        service.analysis.serving.analyze_many,
        analyzer.space_of,
        newer_stays=True,
        other_recipe=any((group_of(space), entry.recipe) not in recipes for space, entry in stored.items()),
    )
    return index, writer


async def _copy_to_shadow(
    args: argparse.Namespace, service: Service, writer: DualWriter, rejected: dict[str, Line]
) -> bool:
    """Copy each serving space to the shadow space of its language group, which each write must go to too."""
    index, registry = service.articles.index, await spaces.registry_of(service.store).read()
    if unwritten := [s for s in index.all_spaces if s not in registry or not registry[s].written]:
        variable = f"AGGREGATOR_MIGRATION_MODELS_DIR={service.settings.migration_models_dir}"
        raise ConfigurationError(
            f"not done 1. The service that runs, or ran last, does not write to {', '.join(unwritten)}. "
            f"Start it with {variable} first; nothing was copied there."
        )
    if not await _copy(args, service, index, writer, rejected):
        return False
    for target in index.shadow_spaces:
        sources = [space for space in index.spaces if group_of(space) == group_of(target)]
        await spaces.set_copied(index.store, dict.fromkeys(sources, b""), [target])
    return True


async def _copy(
    args: argparse.Namespace, service: Service, index: Index, writer: DualWriter, rejected: dict[str, Line]
) -> bool:
    """Copy from the files, then whatever is missing; True if nothing is. Adds to ``rejected``."""
    throttle, not_stored = service.articles.load_control.throttle, 0
    with item_progress("articles", shown=not args.no_progress) as show_count:
        backfill = Backfill(index, writer, lambda stats: show_count(stats.examined), throttle, RETRYABLE)
        if args.files:
            articles = _read_articles(args.files, service.settings.max_body_bytes, rejected)
            not_stored = (await backfill.from_articles(articles)).not_stored
        stats = await backfill.from_store()
    stats.not_stored = not_stored
    print(_summary(stats, index.spaces, index.shadow_spaces, args.leave_out), file=sys.stderr)
    return args.leave_out or not stats.not_copied


def _read_articles(files: list[str], max_line_bytes: int, rejected: dict[str, Line]) -> Iterator[Article]:
    dates = JsonDates()
    for line in map(strip_labels, jsonl.read_lines(files, max_line_bytes=max_line_bytes)):
        if line.error is not None:
            rejected[line.location] = line
            continue
        try:
            yield decode_article(dates.convert(line.data))
        except InvalidInput as error:
            rejected[line.location] = Line(line.file, line.number, error=error)


def _summary(stats: BackfillStats, sources: Sequence[str], targets: Sequence[str], leave_out: bool) -> str:
    text = (
        f"{', '.join(sources)} to {', '.join(targets)}: {stats.examined} articles examined, "
        f"{stats.not_copied} could not be copied"
    )
    if stats.not_copied:
        remedy = "pass a FILE that contains them, or add `--leave-out` to continue without them"
        ids = ", ".join(stats.left_ids) + ", ..." * (stats.not_copied > len(stats.left_ids))
        text += f" ({ids}): their text is not stored; {'they are unknown there' if leave_out else remedy}"
    if stats.not_stored:
        text += f"; {stats.not_stored} lines skipped, since their articles are not stored"
    return text + "."


async def _delete(args: argparse.Namespace, settings: Settings) -> int:
    """Exit code 1 if the user does not confirm. Raises ConfigurationError for an index that is in use."""
    async with open_service(with_running_store_url(settings, creates=False)) as service:
        registry, foreign = await spaces.registry_of(service.store).read(), service.articles.foreign_index
        used = {*service.articles.index.all_spaces, *await foreign.used_elsewhere()}
        if args.delete in used:
            users = "these settings, or by a service that runs or ended in the last minute"
            raise ConfigurationError(f"index: {args.delete} is used by {users}; nothing was deleted.")
        if args.delete not in registry:
            others = ", ".join(sorted(registry.keys() - used))
            stored = f"those not in use are {others}" if others else "every index is in use"
            raise ConfigurationError(f"index: the store holds no index {args.delete}; {stored}.")
        found = await spaces.count_articles(service.store, args.delete, registry[args.delete])
        span = f", arrived {format_minute(found.oldest_ms)} to {format_minute(found.newest_ms)} UTC"
        question = f"{args.delete}: about {found.articles} articles{span if found.articles else ''}"
        question += spaces.STREAM_READ if args.delete in await foreign.leftovers() else ""
        if not args.yes:
            print(f"{question}. Type {args.delete} to delete them:", end=" ", flush=True)
            if sys.stdin.readline().strip() != args.delete:
                print("Nothing was deleted.", file=sys.stderr)
                return EXIT_PARTIAL_FAILURE
        deleted = await spaces.delete_space(service.store, args.delete)
        print(f"{args.delete} is deleted ({deleted} keys).", file=sys.stderr)
    return EXIT_OK
