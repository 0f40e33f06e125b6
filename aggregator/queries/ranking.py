"""Which related articles are answered, and in which order: conditions, age, diversity, interests. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt

import numpy as np

from aggregator.analysis.term_profile import FloatArray, unit_vectors
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Analysis, ArticleRecord
from aggregator.index.keys import headline_words
from aggregator.queries.reasons import STORY_DAYS
from aggregator.queries.relatedness import ScoredArticle, best_of_groups
from aggregator.time_units import DAY_MS

DEFAULT_HALF_LIFE_MS = 7 * DAY_MS
READING_HALF_LIFE_MS = 7 * DAY_MS  # of what was read
HISTORY_DIVERSITY = 0.3
# Similarity of two articles that were read of one interest (``scripts/bench histories``).
SAME_INTEREST = 0.35
POOL = 3  # articles that compete for a place, shared by the interests
LEVELS = 4  # of the probability, by which articles are equally related
_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class RelatedOptions:
    """What may be answered, and in which order, as the HTTP API has it; sources by their ``source_key``."""

    limit: int = 10
    since_ms: int | None = None
    until_ms: int | None = None
    sources: Sequence[str] = ()
    exclude_sources: Sequence[str] = ()
    exclude_ids: Sequence[str] = ()
    lang: str | None = None
    half_life_ms: int | None = None
    diversity: float | None = None
    min_score: float | None = None

    def matches(self, record: ArticleRecord) -> bool:
        """Whether the article may be answered."""
        source = source_key(record.source) if self.sources or self.exclude_sources else ""
        return (
            (self.since_ms is None or record.publication_ms >= self.since_ms)
            and (self.until_ms is None or record.publication_ms < self.until_ms)
            and (self.lang is None or record.lang == self.lang)
            and (not self.sources or source in self.sources)
            and source not in self.exclude_sources
        )

    def log_weight(self, found: ScoredArticle, question_ms: int, now_ms: int) -> float:
        """Logarithm to base 2 of the probability, less one for each half-life of age.

        By default it is that of the root of the odds, which tell likely ones apart, and only age before
        the article that was asked about counts (its date; 0: unknown): reports of the same days. With a
        half-life articles are equally related within a quarter of the probability, and the newer one leads.
        """
        probability, from_ms, half_life_ms = found.probability, question_ms, DEFAULT_HALF_LIFE_MS
        if self.half_life_ms is not None:
            from_ms, half_life_ms = now_ms, self.half_life_ms
            probability = ceil(LEVELS * probability) / LEVELS if half_life_ms else probability
        elif not self.diversity:
            probability = sqrt(probability / max(_SMALLEST, 1 - probability))
        age = max(0, from_ms - found.record.publication_ms) / half_life_ms if half_life_ms else 0.0
        return log2(max(probability, _SMALLEST)) - age

    def needed(self, found: ScoredArticle, minimum: float) -> float:
        """The least probability at which it is listed.

        ``min_score`` if it is given; by default of an event any, else more with its age.
        """
        if self.min_score is not None or found.in_event:
            return self.min_score or 0.0
        is_timeless = self.half_life_ms is not None or self.since_ms is not None or self.until_ms is not None
        stories = 1.0 if is_timeless else max(1.0, found.evidence.days / STORY_DAYS)
        return stories * minimum / (1 + (stories - 1) * minimum)

    def listed(self, scored: Sequence[ScoredArticle], minimum: float) -> list[ScoredArticle]:
        """One article of each group in which one is likely enough, the likeliest first."""
        groups = {each.group for each in scored if each.probability >= self.needed(each, minimum)}
        return [each for each in best_of_groups(scored) if each.group in groups]


DEFAULT_OPTIONS = RelatedOptions()
Ranked = list[tuple[float, ScoredArticle]]  # of one interest, with ``log_weight``


def shown_once(group: int | None, article: Analysis | ArticleRecord) -> frozenset[object]:
    """Duplicate group and headline: of articles that share one, a list has one."""
    return frozenset((group, headline_words(article.title, article.lang))) - {None, ""}


def distinct(ranked: Ranked) -> Ranked:
    """Of articles of one group or headline the heaviest (ties: the latest), heaviest first."""
    found, seen = Ranked(), set[object]()
    for each in sorted(ranked, key=lambda r: (-r[0], -r[1].record.publication_ms)):
        if seen.isdisjoint(once := shown_once(each[1].group, each[1].record)):
            found.append(each)
            seen |= once
    return found


def choose(
    interests: Sequence[Ranked], weights: Sequence[float], limit: int, diversity: float
) -> list[ScoredArticle]:
    """Up to ``limit`` articles of different groups and headlines.

    Every interest gets a place, the heaviest first, and then further ones by its weight (D'Hondt). A place
    goes to the article of the largest weight, which shrinks by ``diversity`` times its similarity to the most
    similar one chosen before (maximal marginal relevance); ties: the latest.
    """
    most = max(limit, POOL * limit // max(1, len(interests)))
    pool = [(*each, interest) for interest, own in enumerate(interests) for each in distinct(own)[:most]]
    once = [shown_once(found.group, found.record) for _, found, _ in pool]
    vectors = unit_vectors([found.record for _, found, _ in pool if diversity])
    near, places = np.zeros(len(pool)), Counter[int]()
    chosen, left = list[ScoredArticle](), list(range(len(pool)))
    while left and len(chosen) < limit:
        shrunk = np.log2(np.maximum(1 - diversity * near, _SMALLEST))
        open_ = {pool[i][2] for i in left}
        turn = max(open_, key=lambda k: (not places[k], weights[k] / (places[k] + 1), -k))
        best = max((i for i in left if pool[i][2] == turn), key=lambda i: (pool[i][0] + shrunk[i], -i))
        places[turn] += 1
        chosen.append(pool[best][1])
        left = [i for i in left if once[i].isdisjoint(once[best])]
        if diversity:
            near = np.maximum(near, vectors[:, at := vectors[best] > 0] @ vectors[best, at])  # 9 -> 0.3 ms
    return chosen


def interests_of(vectors: FloatArray, read_ms: Sequence[int]) -> list[tuple[Sequence[int], float]]:
    """The interests of a reader, the heaviest first: articles, typical ones first, and weight.

    Greedy facility location: each covers what it resembles of what was read (``vectors``: unit, (n, m)) and
    no earlier one does; what one covers by ``SAME_INTEREST`` is no interest of its own. What was read last
    weighs 1, half of it a half-life before.
    """
    weights = 0.5 ** ((max(read_ms, default=0) - np.array(read_ms, np.float64)) / READING_HALF_LIFE_MS)
    matrix = np.array([vectors @ row for row in vectors])
    covered, found = np.zeros(len(vectors)), list[tuple[Sequence[int], float]]()
    while (covered < SAME_INTEREST).any():
        gains = np.maximum(matrix - covered, 0.0) @ weights
        best = int(np.where(covered < SAME_INTEREST, gains, -1.0).argmax())
        near = np.where(matrix[best] > covered, matrix[best], 0.0)
        near[best] = 2.0
        own = np.flatnonzero(near >= SAME_INTEREST)
        found.append((own[np.argsort(-near[own], kind="stable")].tolist(), float(gains[best])))
        covered = np.maximum(covered, matrix[best])
        covered[best] = 1.0  # also without terms
    return found
