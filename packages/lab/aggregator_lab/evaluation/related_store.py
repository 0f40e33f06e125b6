"""Articles that the ingest service stored in memory, and who answers which of them are related.

Labeled articles are mixed with background articles evenly over a window of time.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Analysis, Answer, Article, ArticleRecord
from aggregator.errors import AggregatorError, InvalidInput
from aggregator.index import Index
from aggregator.index.candidates import RelatedCandidates, RelatedLookup
from aggregator.ingest.service import IngestService
from aggregator.queries.related import RelatedArticles
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from aggregator_lab.evaluation.online_protocol import (
    CLOCK_START_MS,
    analyze_by_id,
    duplicate_group,
    precomputed,
)
from aggregator_lab.evaluation.rankings import Scorer, build_scorer, nearest

ARRIVAL_HOURS = 48.0
EXHAUSTIVE = 500  # candidates per question
Progress = Callable[[str, Sequence[Any]], Iterable[Any]]


def not_shown(_: str, items: Sequence[Any]) -> Iterable[Any]:
    """The items: no progress is shown."""
    return items


@dataclass(frozen=True, slots=True)
class StoredArticles:
    """Articles that the ingest service stored, in order; ``relevant_by_id``: the other groups of its event.

    ``scorer``: of a name of ``RANKINGS``.
    """

    articles: Sequence[Article]
    index: Index
    related: RelatedArticles
    group_by_id: Mapping[str, str]
    relevant_by_id: Mapping[str, set[str]]
    positions: Mapping[str, int]
    scorer: Callable[[str], Scorer]

    def nearest(self, ranking: str, id_: str, count: int) -> list[str]:
        """Ids of the ``count`` articles that score highest."""
        own = self.positions[id_]
        return [self.articles[at].id for at in nearest(self.scorer(ranking)(own), own, count)]

    def ranked(self, ranking: str, id_: str, k: int) -> list[str]:
        """The nearest article of each of the ``k`` nearest duplicate groups, without the question's own."""
        by_group = {self.group_by_id[id_]: id_}
        for other in self.nearest(ranking, id_, 10 * k):
            by_group.setdefault(self.group_by_id[other], other)
        return list(by_group.values())[1 : k + 1]


class ExhaustiveLookup(RelatedLookup):
    """Returns given articles as candidates; ``numbers_near``: their numbers by the id of the question."""

    numbers_near: Callable[[str], Sequence[int]]

    async def find(self, article: Analysis | ArticleRecord, id_: str) -> RelatedCandidates:
        """Return what the index found, with other candidates."""
        return replace(await super().find(article, id_), numbers=tuple(self.numbers_near(id_)))


async def store_articles(
    labeled: Sequence[Article],
    labels: Mapping[str, str],
    background: Sequence[Article],
    analyzer: Analyzer,
    policy: Policy,
    min_score: float,
    progress: Progress = not_shown,
) -> tuple[StoredArticles, RelatedArticles]:
    """Mix the articles, store them as arriving within ``ARRIVAL_HOURS``, the first after every date.

    Returns them and the service of ``exhaustive``.
    """
    random.seed(0)  # article numbers end in random bits, by which the index samples those it counts
    stream = _mix(labeled, background) if background else labeled
    analyses = analyze_by_id(analyzer, stream)
    now_ms = start_ms = max(CLOCK_START_MS, *(article.published_at_ms or 0 for article in stream))

    def clock() -> int:
        return now_ms

    async def analyze_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return analyzer.analyze_many(articles)

    store = MemoryStore()
    index, exhaustive = Index(store, analyzer.spaces), Index(store, analyzer.spaces)
    ingest = IngestService(index, precomputed(analyses), PolicyProfiles(policy), clock=clock)
    group_by_id: dict[str, str] = {}
    for position, article in enumerate(progress("articles", stream)):
        now_ms = start_ms + int(position * ARRIVAL_HOURS * HOUR_MS / len(stream))
        answer = (await ingest.submit_many([article]))[0]
        if isinstance(answer, Answer):
            group_by_id[article.id] = duplicate_group(article.id, answer)
    relevant_by_id = _relevant_groups(labels, group_by_id)
    if labels and not relevant_by_id:
        raise InvalidInput(
            "No two of these articles are about one event: give each a `cluster`, equal for an event."
        )
    kept = [article for article in stream if article.id in group_by_id]
    usable = {a.id: analysis for a in kept if isinstance(analysis := analyses[a.id], Analysis)}
    service, brute_force = (
        RelatedArticles(of, analyze_many, clock=clock, min_score=min_score) for of in (index, exhaustive)
    )
    langs = [analysis.lang for analysis in usable.values()]
    stored = StoredArticles(
        kept,
        index,
        service,
        group_by_id,
        relevant_by_id,
        {id_: position for position, id_ in enumerate(usable)},
        cache(lambda ranking: build_scorer(ranking, kept, langs)),
    )
    bindings = await index.bindings.find_many(list(usable))

    def numbers_near(id_: str) -> list[int]:
        near = stored.nearest("tf-idf", id_, EXHAUSTIVE)
        return [bindings[o].binding.number for o in near if usable[o].space == usable[id_].space]

    exhaustive.related = lookup = ExhaustiveLookup(exhaustive.lookup, exhaustive.segments, exhaustive.spaces)
    lookup.numbers_near = numbers_near
    return stored, brute_force


def _mix(labeled: Sequence[Article], background: Sequence[Article]) -> list[Article]:
    """Labeled articles in random order at random positions among the background, which keeps its order."""
    rng = random.Random(0)
    order = rng.sample(labeled, len(labeled))
    positioned = [(rng.random(), 0, article) for article in order]
    positioned += [((at + 0.5) / len(background), 1, article) for at, article in enumerate(background)]
    return [article for _, _, article in sorted(positioned, key=lambda item: item[:2])]


def _relevant_groups(labels: Mapping[str, str], group_by_id: Mapping[str, str]) -> dict[str, set[str]]:
    """Article id -> the other duplicate groups of its event; only articles with at least one."""
    groups_by_event: dict[str, set[str]] = defaultdict(set)
    stored = {id_: label for id_, label in labels.items() if id_ in group_by_id}
    for id_, label in stored.items():
        groups_by_event[label].add(group_by_id[id_])
    others = {id_: groups_by_event[label] - {group_by_id[id_]} for id_, label in stored.items()}
    return {id_: groups for id_, groups in others.items() if groups}
