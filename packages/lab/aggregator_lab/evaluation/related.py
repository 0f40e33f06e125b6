"""Recall and nDCG of related articles about labeled events, compared with brute force.

Labeled articles (``cluster`` = event) are mixed with background articles, evenly over a window of time, and
stored by the ingest service. Means over the labeled articles whose event has other articles:

* **recall@k**  share of the event's other articles among the first k, of at most k;
* **nDCG@k**    the same, weighted towards the first ranks.

Brute force ranks every article by the cosine of the full TF-IDF vectors. Copies of one text count once.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import FeatureModel, HashedModel, tf_weights
from aggregator.analysis.simhash import l2_normalize
from aggregator.analysis.text import tokenizer
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import InvalidInput
from aggregator.index import Index
from aggregator.ingest.service import IngestService
from aggregator.queries.ranking import RelatedOptions
from aggregator.queries.related import RelatedArticles
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from aggregator_lab.evaluation.metrics import ndcg_at, recall_at
from aggregator_lab.evaluation.online_protocol import (
    CLOCK_START_MS,
    Analyses,
    analyze_by_id,
    duplicate_group,
    precomputed,
)
from aggregator_lab.labeled import LabeledArticle

ARRIVAL_HOURS = 48.0


@dataclass(frozen=True, slots=True)
class RankingScore:
    """Quality of one ranking, 0..1. ``mean_shown``: related articles per question."""

    name: str
    recall: float
    ndcg: float
    mean_shown: float


@dataclass(frozen=True, slots=True)
class RelatedReport:
    """The rankings of the service and of brute force over ``question_count`` questions."""

    k: int
    question_count: int
    rankings: tuple[RankingScore, ...]

    @property
    def recall_of_brute_force(self) -> float:
        """Recall of the service divided by that of brute force."""
        served, brute_force = self.rankings
        return served.recall / brute_force.recall if brute_force.recall else 1.0

    def as_json(self) -> dict[str, Any]:
        """Every value of the table."""
        return {"k": self.k, "asked": self.question_count,
                "recall_of_brute_force": round(self.recall_of_brute_force, 4),
                "rankings": [{"name": r.name, "recall": round(r.recall, 4), "ndcg": round(r.ndcg, 4),
                              "shown": round(r.mean_shown, 2)} for r in self.rankings]}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredArticles:
    """Articles that the ingest service stored, and what is relevant to each labeled one.

    ``relevant_by_id``: the other duplicate groups of its event.
    """

    analyzer: Analyzer
    analyses: Analyses
    related: RelatedArticles
    group_by_id: Mapping[str, str]
    relevant_by_id: Mapping[str, set[str]]

    async def served(self, k: int) -> RankingScore:
        """The ``k`` related articles of each labeled one, as the service answers them."""
        answers = {
            id_: [
                self.group_by_id[item.id] for item in await self.related.of_id(id_, RelatedOptions(limit=k))
            ]
            for id_ in self.relevant_by_id
        }
        return _score_ranking("related", answers, self.relevant_by_id, k)

    def brute_force(self, k: int) -> RankingScore:
        """The ``k`` nearest duplicate groups by all weights."""
        answers = _rank_by_brute_force(self.analyzer, self.analyses, self.group_by_id, self.relevant_by_id, k)
        return _score_ranking("brute force", answers, self.relevant_by_id, k)


async def evaluate(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    background: Sequence[Article] = (),
    k: int = 10,
    policy: Policy | None = None,
) -> RelatedReport:
    """Request the related articles of every labeled article whose event has others.

    Raises InvalidInput if no event has two articles.
    """
    stored = await _store_articles(gold, analyzer, background, policy or Policy())
    return RelatedReport(k, len(stored.relevant_by_id), (await stored.served(k), stored.brute_force(k)))


async def _store_articles(
    gold: Sequence[LabeledArticle], analyzer: Analyzer, background: Sequence[Article], policy: Policy
) -> StoredArticles:
    """Mix the articles and store them as arriving within ``ARRIVAL_HOURS``."""
    stream = _mix(gold, background)
    analyses = analyze_by_id(analyzer, stream)
    now_ms = CLOCK_START_MS

    def clock() -> int:
        return now_ms

    index = Index(MemoryStore(), analyzer.spaces)
    ingest = IngestService(index, precomputed(analyses), PolicyProfiles(policy), clock=clock)
    group_by_id: dict[str, str] = {}
    for position, article in enumerate(stream):
        now_ms = CLOCK_START_MS + int(position * ARRIVAL_HOURS * HOUR_MS / len(stream))
        answer = (await ingest.submit_many([article]))[0]
        if isinstance(answer, Answer):
            group_by_id[article.id] = duplicate_group(article.id, answer)
    relevant_by_id = _relevant_groups(gold, group_by_id)
    if not relevant_by_id:
        raise InvalidInput(
            "No two of these articles are about one event: give each a `cluster`, equal for an event."
        )
    related = RelatedArticles(index, precomputed(analyses), clock=clock)
    return StoredArticles(analyzer, analyses, related, group_by_id, relevant_by_id)


def format_table(report: RelatedReport) -> str:
    """Table for a terminal: one line per ranking."""
    k = report.k
    return "\n".join(
        [
            f"{report.question_count} articles asked for",
            f"{'ranking':14} {f'recall@{k}':>10} {f'nDCG@{k}':>10} {'shown':>7}",
            *(f"{r.name:14} {r.recall:10.3f} {r.ndcg:10.3f} {r.mean_shown:7.1f}" for r in report.rankings),
            f"share of brute force: {report.recall_of_brute_force:.3f}",
        ]
    )


def _mix(gold: Sequence[LabeledArticle], background: Sequence[Article]) -> list[Article]:
    """Labeled articles in random order at random positions among the background, which keeps its order."""
    rng = random.Random(0)
    order = [item.article for item in gold]
    rng.shuffle(order)
    positioned = [(rng.random(), 0, article) for article in order]
    positioned += [((at + 0.5) / len(background), 1, article) for at, article in enumerate(background)]
    return [article for _, _, article in sorted(positioned, key=lambda item: item[:2])]


def _relevant_groups(gold: Sequence[LabeledArticle], group_by_id: Mapping[str, str]) -> dict[str, set[str]]:
    """Article id -> the other duplicate groups of its event; only articles with at least one."""
    stored = [item for item in gold if item.article.id in group_by_id]
    groups_by_event: dict[str, set[str]] = defaultdict(set)
    for item in stored:
        groups_by_event[item.label].add(group_by_id[item.article.id])
    others = {i.article.id: groups_by_event[i.label] - {group_by_id[i.article.id]} for i in stored}
    return {id_: groups for id_, groups in others.items() if groups}


def _score_ranking(
    name: str, answers: Mapping[str, Sequence[str]], relevant_by_id: Mapping[str, set[str]], k: int
) -> RankingScore:
    return RankingScore(
        name,
        mean(recall_at(answers[id_], relevant, k) for id_, relevant in relevant_by_id.items()),
        mean(ndcg_at(answers[id_], relevant, k) for id_, relevant in relevant_by_id.items()),
        mean(len(answers[id_]) for id_ in relevant_by_id),
    )


def term_weights(
    model: FeatureModel | HashedModel, terms: Sequence[str] | Mapping[str, int]
) -> dict[str, float]:
    """Term -> TF-IDF weight in order of first occurrence, L2 norm 1; ``Vocabulary`` is faster."""
    counts = Counter(terms)
    if not counts:
        return {}
    idf = np.array([model.row_and_idf(term)[1] for term in counts])
    weights = l2_normalize(tf_weights(np.array(list(counts.values()))) * idf)
    return dict(zip(counts, weights.tolist(), strict=True))


def _term_weights(analyzer: Analyzer, analysis: Analysis) -> dict[str, float]:
    """All term weights of an analyzed article, L2 norm 1; ``analysis.terms`` has the top ones."""
    _, model = analyzer._group_and_model(analysis.lang)
    terms = tokenizer.tokenize(f"{analysis.title}\n{analysis.text}", analysis.lang)
    return term_weights(model.for_language(analysis.lang), terms)


def _rank_by_brute_force(
    analyzer: Analyzer,
    analyses: Analyses,
    group_by_id: Mapping[str, str],
    relevant_by_id: Mapping[str, set[str]],
    k: int,
) -> dict[str, list[str]]:
    """The ``k`` nearest duplicate groups by the cosine of all weights, computed with an inverted index."""
    usable = {id_: analysis for id_, analysis in analyses.items() if isinstance(analysis, Analysis)}
    vectors = {id_: _term_weights(analyzer, analysis) for id_, analysis in usable.items()}
    postings: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for id_, vector in vectors.items():
        for term, weight in vector.items():
            postings[usable[id_].space, term].append((id_, weight))
    rankings = {}
    for id_ in relevant_by_id:
        cosines: dict[str, float] = defaultdict(float)
        for term, weight in vectors[id_].items():
            for other, other_weight in postings[usable[id_].space, term]:
                cosines[other] += weight * other_weight
        nearest = sorted(cosines, key=lambda other: -cosines[other])
        groups = dict.fromkeys(group_by_id[other] for other in nearest if other in group_by_id)
        groups.pop(group_by_id[id_], None)
        rankings[id_] = list(groups)[:k]
    return rankings
