"""Test data and wiring: made-up articles, events, a controllable clock, and a service core over a store.

The core is the production wiring (``wiring.build_core``) with real analysis and a real index.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.text.tokenizer import tokenizer_recipe
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, AnalyzeMany, Answer, Article
from aggregator.errors import AggregatorError
from aggregator.events.changes import EventUnitOfWork
from aggregator.events.detection.model import ChangeKind, EventChange
from aggregator.events.event import Event
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.index.segments import SEGMENT_MAX_ARTICLES
from aggregator.ingest.load_control import ActivityBeacon, BulkThrottle, LoadControl, PriorityGate
from aggregator.ingest.service import BATCH_ARTICLES, IngestService
from aggregator.queries.explain import Explainer
from aggregator.queries.headline_index import HeadlineIndex
from aggregator.queries.related import RelatedArticles
from aggregator.queries.search import ArticleSearch
from aggregator.store.base import Store, Transaction
from aggregator_lab.model_writing import save
from tests.support.wiring import build_core

START_MS = 1_780_000_000_000
EVENT_MS = 1_790_000_000_000
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en")]


def story(seed: int, sentences: int = 30) -> str:
    """A deterministic text of ``10 * sentences`` made-up words; texts of two seeds share hardly a shingle."""
    rng = random.Random(seed)
    return " ".join(
        " ".join("".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3)))) for _ in range(10)).capitalize()
        + "."
        for _ in range(sentences)
    )


def edited(text: str, seed: int, changes: int = 4) -> str:
    """A near-copy of the text: ``changes`` words are replaced."""
    rng, words = random.Random(seed), text.split()
    for position in rng.sample(range(len(words)), changes):
        words[position] = "swapped" + "".join(rng.choices("bdfgklmnprst", k=8))
    return " ".join(words)


def event(id_: str, title: str, items: Sequence[str] = (), **fields: Any) -> Event:
    """An event that broke an hour after its first item; ``fields`` overrides any, ``timeline`` also times."""
    steps = fields.get("timeline", ((EVENT_MS - 3_600_000, len(items[:1])), (EVENT_MS, len(items[1:]))))
    default = Event(
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
        times=tuple(at_ms for at_ms, number in steps for _ in range(number)),
        outlets=tuple(n % 2 for n in range(len(items))),
        terms=("harbour", "bridge"),
        timeline=((EVENT_MS - 3_600_000, 4), (EVENT_MS, 12)),
        voices=((EVENT_MS, 2),),
        reason="16 items within 4 hours, where 0.4 are usual.",
        story_id=id_,
        first=(EVENT_MS - 3_600_000, items[0], "one.example") if items else None,
    )
    return replace(default, **fields)


async def load_all(headlines: HeadlineIndex) -> None:
    """Let a search read all older articles now, without pauses."""
    await headlines.catch_up()
    await headlines._load_older(0.0)


async def commit_event(repository: EventRepository, kind: ChangeKind, changed: Event, at_ms: int) -> None:
    """Commit one version of an event, as the detector does."""
    unit = EventUnitOfWork(repository, await repository.summaries())
    await unit.add_detector_changes([EventChange(kind, at_ms, changed)])
    assert await repository.store.commit(Transaction((), tuple(unit.writes()))) == ()


class Clock:
    """Milliseconds that advance by 1 per reading, and when a test changes ``now_ms``."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms


def in_process(analyzer: Analyzer) -> AnalyzeMany:
    """The analyzer as the service calls its pool."""

    async def analyze_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return analyzer.analyze_many(articles)

    return analyze_many


@dataclass(frozen=True)
class Core:
    """Index, ingest and queries over one store, with the clock they use."""

    index: Index
    ingest: IngestService
    related: RelatedArticles
    explain: Explainer
    search: ArticleSearch
    clock: Clock

    async def post(self, id_: str, text: str, **fields: Any) -> Answer:
        """Submit one English article; ``fields`` are those of ``Article``."""
        return await self.ingest.submit(Article(id=id_, text=text, lang="en", **fields))


def core(
    store: Store,
    *,
    policy: Policy | None = None,
    retention_ms: int | None = None,
    clock: Clock | None = None,
    store_texts: bool = True,
    segment_max_articles: int = SEGMENT_MAX_ARTICLES,
    batch_articles: int = BATCH_ARTICLES,
    throttle: BulkThrottle | None = None,
) -> Core:
    """A core with hashed features; several over one store behave like several processes."""
    analyzer = Analyzer({"xx": HashedModel()})
    clock = clock or Clock()
    built = build_core(
        Index(store, analyzer.spaces, retention_ms=retention_ms, segment_max_articles=segment_max_articles),
        in_process(analyzer),
        policy or Policy(),
        clock=clock,
        store_texts=store_texts,
        load_control=LoadControl(PriorityGate(), ActivityBeacon(store), throttle) if throttle else None,
        batch_articles=batch_articles,
    )
    return Core(built.index, built.ingest, built.related, built.explain, built.search, clock)


def write_model(directory: Path) -> None:
    """A model "xx" to migrate to, with one word; of other texts the fingerprint is that of hashed words."""
    ones, offset = np.ones((1, 64), np.float32), np.zeros(64)
    model = FeatureModel("xx", ("marmoset",), ones[0, :1], ones, offset, tokenizer_recipe("xx"))
    save(model, directory / "xx.model")
