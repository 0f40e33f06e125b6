"""Does ``/related`` show the other articles about the same event?

Labelled articles (``cluster`` = event) are mixed among background articles, evenly over a window of time, and all
go through the real ingest. Then each is asked for its ``k`` related articles. Two figures, each the mean over the
labelled articles that have others of their event:

* **recall@k**  share of the event's other articles among the first k (k of them are all one can ask for);
* **nDCG@k**    the same, and earlier is better.

Beside them stands brute force: the cosine of the full TF-IDF vectors (the model's weights, not only the stored
heaviest terms) with every stored article. Copies of one text count once on either side, as in an answer.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError, InvalidInput
from aggregator.index import Index
from aggregator.ingest.service import IngestService
from aggregator.offline.evaluation.metrics import ndcg_at, recall_at
from aggregator.offline.evaluation.near_duplicates import LabeledArticle
from aggregator.queries.related import RelatedArticles
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS

CLOCK_START_MS = 1_600_000_000_000


@dataclass(frozen=True, slots=True)
class RankingScore:
    """How well one way of ranking did, 0..1. ``shown``: related articles per question."""

    name: str
    recall: float
    ndcg: float
    mean_shown: float


@dataclass(frozen=True, slots=True)
class RelatedReport:
    """Our answers and brute force, over ``asked`` questions."""

    k: int
    question_count: int
    rankings: tuple[RankingScore, ...]

    @property
    def recall_of_brute_force(self) -> float:
        """Our recall as a share of brute force's."""
        ours, brute = self.rankings
        return ours.recall / brute.recall if brute.recall else 1.0

    def as_json(self) -> dict[str, Any]:
        """Every figure of the table."""
        return {"k": self.k, "asked": self.question_count, "recall_of_brute_force": round(self.recall_of_brute_force, 4),
                "rankings": [{"name": r.name, "recall": round(r.recall, 4), "ndcg": round(r.ndcg, 4),
                              "shown": round(r.mean_shown, 2)} for r in self.rankings]}  # fmt: skip


async def evaluate(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    background: Sequence[Article] = (),
    hours: float = 48.0,
    k: int = 10,
    policy: Policy | None = None,
    seed: int = 0,
) -> RelatedReport:
    """Ask for every labelled article whose event has others. Raises BadInput when none has."""
    policy = policy or Policy()
    stream = _mix([g.article for g in gold], background, seed)
    analysed = dict(zip((a.id for a in stream), analyzer.analyze_many(stream), strict=True))
    now_ms = [CLOCK_START_MS]

    async def look_up(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [analysed[a.id] for a in articles]

    index = Index(MemoryStore(), analyzer.spaces)
    ingest = IngestService(index, look_up, policy, clock=lambda: now_ms[0])
    groups: dict[str, str] = {}
    for at, article in enumerate(stream):
        now_ms[0] = CLOCK_START_MS + int(at * hours * HOUR_MS / len(stream))
        answer = (await ingest.submit_many([article]))[0]
        if isinstance(answer, Answer):
            match = answer.outcome.match
            groups[article.id] = match.canonical_id if match else article.id
    related = RelatedArticles(index, look_up, clock=lambda: now_ms[0], related_bits=policy.related_bits)
    wanted = _relevant_groups(gold, groups)
    if not wanted:
        raise InvalidInput(
            "No two of these articles are about one event: give each a `cluster`, equal for an event."
        )
    ours = {id_: [groups[item.id] for item in await related.of_id(id_, limit=k)] for id_ in wanted}
    brute = _brute_force(
        analyzer, {i: a for i, a in analysed.items() if isinstance(a, Analysis)}, groups, wanted, k
    )
    rankings = (_score_ranking("related", ours, wanted, k), _score_ranking("brute force", brute, wanted, k))
    return RelatedReport(k, len(wanted), rankings)


def format_table(report: RelatedReport) -> str:
    """For a terminal."""
    k = report.k
    head = f"{'ranking':14} {f'recall@{k}':>10} {f'nDCG@{k}':>10} {'shown':>7}"
    lines = [f"{r.name:14} {r.recall:10.3f} {r.ndcg:10.3f} {r.mean_shown:7.1f}" for r in report.rankings]
    return "\n".join(
        [
            f"{report.question_count} articles asked for",
            head,
            *lines,
            f"share of brute force: {report.recall_of_brute_force:.3f}",
        ]
    )


def _mix(gold: Sequence[Article], background: Sequence[Article], seed: int) -> list[Article]:
    """Labelled articles in random order, spread evenly among the background, which keeps its own."""
    shuffled = list(gold)
    rng = random.Random(seed)
    rng.shuffle(shuffled)
    places = [(rng.random(), 0, a) for a in shuffled]
    places += [((at + 0.5) / len(background), 1, a) for at, a in enumerate(background)]
    return [article for _, _, article in sorted(places, key=lambda place: place[:2])]


def _relevant_groups(gold: Sequence[LabeledArticle], groups: Mapping[str, str]) -> dict[str, set[str]]:
    """For each labelled article the copy groups of its event, its own left out; only those that have any."""
    events: dict[str, set[str]] = defaultdict(set)
    stored = [g for g in gold if g.article.id in groups]
    for one in stored:
        events[one.label].add(groups[one.article.id])
    others = {one.article.id: events[one.label] - {groups[one.article.id]} for one in stored}
    return {id_: found for id_, found in others.items() if found}


def _score_ranking(
    name: str, answers: Mapping[str, Sequence[str]], relevant_by_id: Mapping[str, set[str]], k: int
) -> RankingScore:
    return RankingScore(
        name,
        mean(recall_at(answers[id_], relevant, k) for id_, relevant in relevant_by_id.items()),
        mean(ndcg_at(answers[id_], relevant, k) for id_, relevant in relevant_by_id.items()),
        mean(len(answers[id_]) for id_ in relevant_by_id),
    )


def _brute_force(
    analyzer: Analyzer,
    analyses: Mapping[str, Analysis],
    groups: Mapping[str, str],
    relevant_by_id: Mapping[str, set[str]],
    k: int,
) -> dict[str, list[str]]:
    """The ``k`` nearest copy groups by the cosine of all weights, through an inverted index of exact sums."""
    vectors = {id_: analyzer.term_weights(one) for id_, one in analyses.items()}
    postings: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for id_, vector in vectors.items():
        for term, weight in vector.items():
            postings[analyses[id_].space, term].append((id_, weight))
    answers = {}
    for id_ in relevant_by_id:
        sums: dict[str, float] = defaultdict(float)
        for term, weight in vectors[id_].items():
            for other, its in postings[analyses[id_].space, term]:
                sums[other] += weight * its
        ranked = dict.fromkeys(groups[o] for o in sorted(sums, key=lambda o: -sums[o]) if o in groups)
        ranked.pop(groups[id_], None)
        answers[id_] = list(ranked)[:k]
    return answers
