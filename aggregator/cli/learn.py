"""``aggregator learn``: teach the event detector by dated articles, which are not stored and fire nothing.

The files are replayed in this process. What the replay learned is put into the store; the leading background
process takes it within seconds, or when the service starts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aggregator.background.scheduler import DETECTOR_LEASE_KEY
from aggregator.background.wiring import build_burst_rule
from aggregator.cli.embedded_store import with_running_store_url
from aggregator.cli.progress import ByteProgress
from aggregator.errors import ConfigurationError, InvalidInput
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import LearningStatus, Lesson
from aggregator.events.repository import EventRepository
from aggregator.index import format_version
from aggregator.offline import jsonl
from aggregator.offline.lesson import ArchiveReader, build_lesson
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK, EXIT_PARTIAL_FAILURE
from aggregator.settings import Settings
from aggregator.store.factory import open_store
from aggregator.time_units import wall_clock_ms

# The leader reads the store every ``detector_interval_seconds`` (2 s); a busy one takes longer.
TAKEN_TIMEOUT_S = 60.0
# A background process that is being replaced leads again within this time.
NO_LEADER_TIMEOUT_S = 6.0
POLL_INTERVAL_S = 0.2
# What the counts of ``ArchiveReader`` mean, in the order of the report.
USES = {
    "usual": "teach what is usual",
    "series": "are older than 7 days and teach only what returns after weeks",
    "recent": "are younger than the window and teach nothing yet: ingest them",
    "old": "are older than 400 days and teach nothing",
    "undated": "have no published_at and teach nothing",
    "refused": "are refused",
}


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Exit code 1 if lines were refused. Raises InvalidInput if no article can be used."""
    if settings.in_memory:
        raise ConfigurationError(
            "store: a memory store ends with its service; name the store of the service."
        )
    if not (args.files or args.forget):
        raise ConfigurationError("FILE: name the files of dated articles, or give --forget.")
    jsonl.check_readable(args.files)
    run_loop(_check_store(settings))  # before the replay, which may take minutes
    rule = build_burst_rule(settings)
    reader = ArchiveReader(wall_clock_ms(), rule, settings.max_body_bytes)
    with ByteProgress(jsonl.total_bytes(args.files), shown=not args.no_progress) as progress:
        lesson = build_lesson(reader.rows(args.files, progress.advance), rule, reader.now_ms)
    if args.files:
        _report(reader)
        if not (lesson.hours or lesson.bursts):
            raise InvalidInput("Nothing was learned.")
        print(f"learned: {len(lesson.hours)} hours and {len(lesson.bursts)} bursts", file=sys.stderr)
    run_loop(_teach(Lesson(lesson.hours, lesson.bursts, args.forget), settings))
    return EXIT_PARTIAL_FAILURE if reader.counts["refused"] else EXIT_OK


def _report(reader: ArchiveReader) -> None:
    """What the articles are used for, and the first refused lines, on standard error."""
    for location, reason in reader.refusals:
        print(f"{location}: {reason}", file=sys.stderr)
    if (more := reader.counts["refused"] - len(reader.refusals)) > 0:
        print(f"... and {more} more lines", file=sys.stderr)
    print(f"{reader.counts.total()} articles:", file=sys.stderr)
    for use, meaning in USES.items():
        if count := reader.counts[use]:
            print(f"{count:>9} {meaning}", file=sys.stderr)
    if reader.disordered:
        print(
            f"{reader.disordered} articles are not in order of time and teach nothing that returns after "
            "weeks; sort the files by published_at.",
            file=sys.stderr,
        )
    if not reader.counts["usual"]:
        print("No article of the last 7 days: what is usual is not learned.", file=sys.stderr)


@asynccontextmanager
async def _open_detector(settings: Settings) -> AsyncIterator[DetectorRunner]:
    """Reader of the saved detector; it never leads."""
    async with open_store(with_running_store_url(settings), format_version.write) as store:
        yield DetectorRunner(EventRepository(store), build_burst_rule(settings))


async def _check_store(settings: Settings) -> None:
    """Raise if the store cannot be opened, or its detector learns nothing."""
    async with _open_detector(settings) as detector:
        mode, _ = await detector.saved_lessons()
        if "literal" in (mode, settings.event_rule):
            raise ConfigurationError(
                "event_rule: the literal rule compares with nothing that could be learned."
            )


async def _teach(lesson: Lesson, settings: Settings) -> None:
    """Store the lesson and print the learning status, once the leader has taken it."""
    # An embedded store that another process has open belongs to a service that runs or starts.
    is_running = not settings.store_url and with_running_store_url(settings) != settings
    async with _open_detector(settings) as detector:
        await detector.lessons.add(lesson)
        if await _wait_until_taken(detector, TAKEN_TIMEOUT_S if is_running else NO_LEADER_TIMEOUT_S):
            print(await detector.repository.learning(wall_clock_ms()) or LearningStatus(0.0))
        elif is_running or await _has_leader(detector):
            print("The service has not taken this yet, but will; see `aggregator doctor`.")
        else:
            print("No service is running: it takes this when it starts; see `aggregator doctor` then.")


async def _wait_until_taken(detector: DetectorRunner, without_leader_s: float) -> bool:
    """Wait for the checkpoint that contains the lesson; False after ``TAKEN_TIMEOUT_S``.

    ``without_leader_s``: limit in seconds while no process leads the detector.
    """
    last = _order(await detector.lessons.last_position())
    started_s = time.monotonic()
    while _order((await detector.saved_lessons())[1]) < last:
        limit_s = TAKEN_TIMEOUT_S if await _has_leader(detector) else without_leader_s
        if time.monotonic() - started_s > limit_s:
            return False
        await asyncio.sleep(POLL_INTERVAL_S)
    return True


async def _has_leader(detector: DetectorRunner) -> bool:
    return (await detector.repository.store.read([DETECTOR_LEASE_KEY]))[0] is not None


def _order(position: bytes) -> tuple[int, ...]:
    """A stream position ("ms-sequence") in a form that can be compared."""
    return tuple(map(int, position.split(b"-"))) if position else ()
