"""``aggregator serve`` whose clock runs fast and which counts its own tasks: observed.py FILE SPEED serve [options].

Every half second one line is appended to FILE: tasks of the event loop, threads, entries in caches. The caches are filled
before it serves: those of words, of records kept decoded, of articles whose neighbours were asked for. They are bounded,
but what fills them comes so slowly that it would take them an hour or more.
All processes of the service have that clock: those that it starts import this module as its main module, by another name.
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
from aggregator.analysis import shingles
from aggregator.analysis.analyzer import Analyzer
from aggregator.cli import main
from aggregator.dedup import title_rule
from aggregator.domain import Article, Match, Outcome, StreamItem
from aggregator.events.consumer import DetectorRunner
from aggregator.index import StoredArticle, term_index
from aggregator.index.codec import records
from aggregator.ingest.pending import PendingArticle, build_record
from aggregator.queries import related
from aggregator.runtime import background_main as process
from tests.chaos.crawl import LANGUAGE, wording
from tests.chaos.crawl import WORDS as WORDS_OF_ONE

PERIOD_S = 0.5
CLOCK = "SOAK_CLOCK"
LEAK = "SOAK_LEAK"
WORDS = 24_000
FILLING = 2_000_000_000  # seeds of articles that nobody posts
OF_WORDS = (shingles.word_hash, term_index.term_hash)
CACHES = (*OF_WORDS, title_rule._term_counts, records.decode_record)


def fill_caches() -> None:
    """As after weeks: as many words and headlines as are kept, of the length that words have."""
    for cache in OF_WORDS:
        for number in range(cache.cache_parameters()["maxsize"]):
            cache(f"filling{number:06}")
    for number in range(title_rule._term_counts.cache_parameters()["maxsize"]):
        title_rule._term_counts(f"filling headline {number:06} of six words", "eo")


def fill_vocabulary(analyser: Analyzer) -> None:
    """The language of the articles to come and further words: its tables have their last size, and room for half an hour."""
    _, model = analyser._group_and_model("eo")
    analyser._vocabulary_for("eo", model).word_ids(
        [*LANGUAGE, *(f"filling{number:06}" for number in range(WORDS))]
    )


def fill_stored(service: app.Service) -> None:
    """Records and subjects like those of the articles to come, as many as are kept."""
    kept = records.decode_record.cache_parameters()["maxsize"]
    for number in range(max(kept, related.CACHE_ENTRIES)):
        words = wording(FILLING + number, WORDS_OF_ONE)
        article = Article(id=f"filling-{number}", title=" ".join(words[:6]), text=" ".join(words), lang="eo")
        analysis = service.analyzer.analyze(article)
        data = records.encode_record(
            build_record(PendingArticle(0, article, analysis, number=number, first_version=number))
        )
        record = records.decode_record(data, analysis.space, number)
        copy = Outcome("duplicate", 0, Match(article.id, number, article.id, number, 0, 1.0, "exact"))
        related._cache_put(
            service.related._subject_cache, article.id, related._build_subject(StoredArticle(record, copy))
        )


def fast(since: str) -> Callable[[], int]:
    """The clock that began at a time, in milliseconds, and runs so many times as fast."""
    started_ms, speed, real = int(since.split()[0]), float(since.split()[1]), time_units.wall_clock_ms
    return lambda: int(started_ms + speed * (real() - started_ms))


def leak(size: int) -> None:
    """Keep so many bytes of each article that the detector reads."""
    kept: list[bytes] = []
    feed = DetectorRunner._feed

    async def keeping(events: DetectorRunner, lead: Any, items: Sequence[StreamItem], *more: Any) -> None:
        kept.extend(bytes(size) for _ in items)
        await feed(events, lead, items, *more)

    DetectorRunner._feed = keeping  # type: ignore[assignment, method-assign]


def run() -> int:
    """Serve."""
    file, speed = Path(sys.argv.pop(1)), float(sys.argv.pop(1))
    fill_caches()
    lines = file.open("a")
    os.environ[CLOCK] = f"{time_units.wall_clock_ms()} {speed}"
    opened, clock = app.open_service, fast(os.environ[CLOCK])

    async def count() -> None:
        while True:
            seen = {
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "cached": sum(cache.cache_info().currsize for cache in CACHES),
            }
            print(json.dumps(seen), file=lines, flush=True)
            await asyncio.sleep(PERIOD_S)

    @asynccontextmanager
    async def open_observed(*given: Any, **more: Any) -> AsyncIterator[app.Service]:
        async with opened(*given, clock=clock, **more) as service:
            fill_vocabulary(service.analyzer)
            fill_stored(service)
            counting = asyncio.create_task(count())
            yield service
            counting.cancel()

    app.open_service = open_observed  # type: ignore[assignment]
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
elif __name__ == "__mp_main__":  # the scheduler, and where analyses are done
    process.wall_clock_ms = fast(os.environ[CLOCK])  # type: ignore[attr-defined]
    if LEAK in os.environ:
        leak(int(os.environ[LEAK]))
