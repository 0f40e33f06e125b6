"""Self-made news for tests: texts of any length whose wording differs as unrelated articles do.

Plus a service core over a given store: real analysis, real index, a clock that the test moves.
"""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.concurrency.yielding import spawn_task, yield_control
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.events.detection import ChangeKind, Event, EventChange
from aggregator.events.repository import EventRepository
from aggregator.events.unit_of_work import EventUnitOfWork
from aggregator.index import Index
from aggregator.index.segments import SEGMENT_MAX_ARTICLES
from aggregator.ingest.service import BATCH_ARTICLES, IngestService
from aggregator.ingest.throttle import BulkThrottle
from aggregator.store.base import Store, Transaction

START_MS = 1_780_000_000_000
EVENT_MS = 1_790_000_000_000
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en")]


def story(seed: int, sentences: int = 30) -> str:
    """A deterministic text of about ``10 * sentences`` made-up words; two seeds share hardly a shingle."""
    rng = random.Random(seed)
    return " ".join(
        " ".join("".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3)))) for _ in range(10)).capitalize()
        + "."
        for _ in range(sentences)
    )


def edited(text: str, seed: int, changes: int = 4) -> str:
    """A near-copy: a few words replaced."""
    rng = random.Random(seed)
    words = text.split()
    for place in rng.sample(range(len(words)), changes):
        words[place] = "swapped" + "".join(rng.choices("bdfgklmnprst", k=8))
    return " ".join(words)


def event(id_: str, title: str, items: Sequence[str] = (), **given: Any) -> Event:
    """An event that broke an hour after its first item; ``given`` overrides any field."""
    usual = Event(
        id=id_,
        title=title,
        status="breaking",
        detected_at_ms=EVENT_MS,
        first_seen_ms=EVENT_MS - 3_600_000,
        last_seen_ms=EVENT_MS,
        size=len(items),
        sightings=3,
        peak=16,
        rate=12,
        expected=0.4,
        sources=("one.example", "two.example"),
        items=tuple(items),
        cosines=(1.0,) * len(items),
        terms=("harbour", "bridge"),
        timeline=((EVENT_MS - 3_600_000, 4), (EVENT_MS, 12)),
        reason="16 items within 4 hours, where 0.4 are usual.",
    )
    return replace(usual, **given)


async def tell(log: EventRepository, kind: ChangeKind, changed: Event, at_ms: int) -> None:
    """The detector commits one version of an event."""
    draft = EventUnitOfWork(log, await log.summaries())
    await draft.add_detector_changes([EventChange(kind, at_ms, changed)])
    assert await log.store.commit(Transaction((), tuple(draft.writes()))) == ()


class Clock:
    """Milliseconds that pass only when told."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms


def in_process(
    analyser: Analyzer,
) -> Callable[[Sequence[Article]], Awaitable[Sequence[Analysis | AggregatorError]]]:
    """``analyser`` as the service asks its pool, without one."""

    async def analyse_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return analyser.analyze_many(articles)

    return analyse_many


@dataclass
class Core:
    """The inner service over one store."""

    index: Index
    ingest: IngestService
    analyser: Analyzer
    clock: Clock

    async def post(self, id_: str, text: str, **more: object):  # type: ignore[no-untyped-def]
        """Submit one English article."""
        return await self.ingest.submit(Article(id=id_, text=text, lang="en", **more))  # type: ignore[arg-type]


def core(
    store: Store,
    *,
    policy: Policy | None = None,
    retention_ms: int | None = None,
    clock: Clock | None = None,
    store_texts: bool = True,
    fingerprints_only: bool = False,
    segment_max_articles: int = SEGMENT_MAX_ARTICLES,
    chunk: int = BATCH_ARTICLES,
    pace: BulkThrottle | None = None,
) -> Core:
    """A service core; several over one store behave like several processes."""
    analyser = Analyzer({"xx": HashedModel()})
    clock = clock or Clock()
    index = Index(
        store, analyser.spaces, retention_ms=retention_ms, segment_max_articles=segment_max_articles
    )

    ingest = IngestService(
        index,
        in_process(analyser),
        policy or Policy(),
        clock=clock,
        store_texts=store_texts,
        fingerprints_only=fingerprints_only,
        yield_control=yield_control,
        spawn=spawn_task,
        batch_articles=chunk,
        throttle=pace,
    )
    return Core(index, ingest, analyser, clock)
