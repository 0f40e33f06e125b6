"""``aggregator serve`` with an accelerated clock that counts its tasks, threads and cache entries.

    instrumented_service.py FILE SPEED serve [options]

Every 0.5 s one JSON line is appended to FILE. Caches are filled before the service starts (words, decoded
records, subjects of ``/related``): they are bounded, but traffic alone would take an hour or more to fill
them. All processes of the service use the clock: its child processes import this module as ``__mp_main__``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aggregator import app, time_units
from aggregator.analysis import term_frequencies, term_profile
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_term_idf
from aggregator.cli import main
from aggregator.dedup import headlines
from aggregator.domain import Article, Match, Outcome, StreamItem, build_record
from aggregator.events.consumer import DetectorRunner
from aggregator.index import keys
from aggregator.index.codec import record_codec
from aggregator.index.upkeep import clock_guard
from aggregator.queries import related
from aggregator.store.redis import RedisStore
from tests.chaos.crawl import VOCABULARY, random_words
from tests.chaos.crawl import WORDS as WORDS_PER_ARTICLE

PERIOD_S = 0.5
CLOCK_VARIABLE = "SOAK_CLOCK"
LEAK_VARIABLE = "SOAK_LEAK"
EXTRA_WORDS = 24_000
FILLER_SEED = 2_000_000_000  # first seed of articles that are not posted
WORD_CACHES = (keys.term_hash, term_profile._hashes)
RECORD_CACHES = (record_codec.decode_record, record_codec.decode_record_summary)
KEY_CACHES = (keys.state, keys.record)
CACHES = (*WORD_CACHES, term_frequencies.TermIdf.idf, headlines._term_counts, *RECORD_CACHES, *KEY_CACHES)


def maxsize(cache: Any) -> int:
    """Largest number of entries of a cache."""
    size: int = cache.cache_parameters()["maxsize"]
    return size


def fill_caches() -> None:
    """Fill the caches of words and headlines to their limits, as after weeks."""
    for cache in WORD_CACHES:
        for number in range(maxsize(cache)):
            cache(f"filler{number:06}")
    frequencies = load_term_idf()
    for number in range(maxsize(term_frequencies.TermIdf.idf)):
        frequencies.idf("eo", f"filler{number:06}")
    for number in range(maxsize(headlines._term_counts)):
        headlines._term_counts(f"filler headline {number:06} of six words", "eo")


def fill_vocabulary(analyzer: Analyzer) -> None:
    """Add the words of all articles and further ones, so that the tables have their final size."""
    _, model = analyzer._group_and_model("eo")
    analyzer._vocabulary_for("eo", model).words.ids_of(
        [*VOCABULARY, *(f"filler{number:06}" for number in range(EXTRA_WORDS))]
    )


def fill_stored(service: app.Service) -> None:
    """Fill the caches of records, their keys, and subjects of ``/related`` with articles like the traffic."""
    for number in range(max(related.CACHE_ENTRIES, *map(maxsize, (*RECORD_CACHES, *KEY_CACHES)))):
        words = random_words(FILLER_SEED + number, WORDS_PER_ARTICLE)
        article = Article(id=f"filler-{number}", title=" ".join(words[:6]), text=" ".join(words), lang="eo")
        analysis = service.analysis.serving.analyzer.analyze(article)
        data = record_codec.encode_record(build_record(article, analysis, number, number))
        record = record_codec.decode_record(data, analysis.space, number)
        record_codec.decode_record_summary(data, analysis.space, number)
        record_codec.decode_candidates([(data, analysis.space, number)])
        keys.record(analysis.space, number)
        keys.state(number)
        copy = Outcome("duplicate", 0, Match(article.id, number, article.id, number, 0, 1.0, "exact"))
        subject = related.Subject(article.id, record, number, (number, copy))
        related._cache_put(service.articles.related._subject_cache, article.id, subject)


def accelerated_clock(start_and_speed: str) -> Callable[[], int]:
    """Clock from "START_MS SPEED" that equals the real one at START_MS and runs SPEED times as fast."""
    start, factor = start_and_speed.split()
    started_ms, speed, real = int(start), float(factor), time_units.wall_clock_ms
    return lambda: int(started_ms + speed * (real() - started_ms))


def accelerate_trusted_time(clock: Callable[[], int]) -> None:
    """Let elapsed time and the clock of the store run as fast as the wall clock."""

    async def time_ms(_: RedisStore) -> int:
        return clock()

    clock_guard.boot_clock_ms = clock
    RedisStore.time_ms = time_ms  # type: ignore[method-assign, assignment]


def leak(size: int) -> None:
    """Leak ``size`` bytes per article that the detector reads."""
    kept: list[bytes] = []
    feed = DetectorRunner._feed

    async def leaking(runner: DetectorRunner, leader: Any, items: Sequence[StreamItem], *rest: Any) -> None:
        kept.extend(bytes(size) for _ in items)
        await feed(runner, leader, items, *rest)

    DetectorRunner._feed = leaking  # type: ignore[assignment, method-assign]


def run() -> int:
    """Serve with the accelerated clock and the counters; the exit code."""
    file, speed = Path(sys.argv.pop(1)), float(sys.argv.pop(1))
    fill_caches()
    lines = file.open("a")
    os.environ[CLOCK_VARIABLE] = f"{time_units.wall_clock_ms()} {speed}"
    open_service, clock = app.open_service, accelerated_clock(os.environ[CLOCK_VARIABLE])
    accelerate_trusted_time(clock)

    async def append_counts() -> None:
        while True:
            counts = {
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "cached": sum(cache.cache_info().currsize for cache in CACHES),
            }
            print(json.dumps(counts), file=lines, flush=True)
            await asyncio.sleep(PERIOD_S)

    @asynccontextmanager
    async def open_instrumented(*args: Any, **options: Any) -> AsyncIterator[app.Service]:
        async with open_service(*args, clock=clock, **options) as service:
            fill_vocabulary(service.analysis.serving.analyzer)
            fill_stored(service)
            counting = asyncio.create_task(append_counts())
            yield service
            counting.cancel()

    app.open_service = open_instrumented
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
elif __name__ == "__mp_main__":  # background and analysis processes
    clock = accelerated_clock(os.environ[CLOCK_VARIABLE])
    accelerate_trusted_time(clock)
    app.wall_clock_ms = clock  # type: ignore[attr-defined]  # imported name
    if LEAK_VARIABLE in os.environ:
        leak(int(os.environ[LEAK_VARIABLE]))
