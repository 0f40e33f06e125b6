"""Lists of related articles, compared with brute force.

Articles are stored by the ingest service (``related_store.py``). Questions are the labeled ones whose event
has others, and random ones.

* **recall@k, nDCG@k**  the event's other articles among the first k, of at most k
* **found**      share of the answers of ``exhaustive`` that a ranking has too
* **largest**    share of the random lists that the most frequent article is in
* **distinct**   number of articles in the random lists
* **shown**      mean length of a random list
* **wrong**      first answers judged to be about something else, of those judged

``related`` is the service, ``exhaustive`` with the nearest of all as candidates, ``no minimum`` at any
score, as the others, which rank all by one score (``rankings.py``). Copies of one text count once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator.queries.ranking import RelatedOptions
from aggregator.queries.relatedness import MIN_PROBABILITY
from aggregator.time_units import DAY_MS
from aggregator_lab.evaluation.judgments import Judgment, sample
from aggregator_lab.evaluation.metrics import ndcg_at, recall_at
from aggregator_lab.evaluation.related_store import Progress, StoredArticles, not_shown, store_articles

# Upper bounds, in days, of the age of an answer at the date of the question.
AGES_DAYS = {"newer": 0.0, "1 day": 1.0, "7 days": 7.0, "30 days": 30.0, "older": math.inf}
OPENING_CHARS = 160


@dataclass(slots=True)
class RankingScore:
    """One ranking; shares are 0..1, None without anything to count; ``judged``, ``wrong``: first answers."""

    name: str
    recall: float | None = None
    ndcg: float | None = None
    found: float | None = None
    largest: float = 0.0
    distinct: int = 0
    shown: float = 0.0
    judged: int = 0
    wrong: int = 0


@dataclass(slots=True)
class RelatedReport:
    """The rankings of one file: ``related``, ``exhaustive``, with others to compare ``no minimum`` and these.

    labeled    questions with labels; ``lists``: random questions
    ages       share of the dated answers of ``related`` per age at the question's date
    firsts     question and first answer of each random list of ``related`` that has one
    """

    k: int
    articles: int
    labeled: int
    lists: int
    rankings: list[RankingScore] = field(default_factory=list)
    ages: dict[str, float] = field(default_factory=dict)
    firsts: list[tuple[Article, Article]] = field(default_factory=list)

    def of_brute_force(self, measure: str) -> float:
        """The ``recall`` of labeled articles or ``distinct`` by that of ``exhaustive``; 1 if it is 0."""
        served, brute_force = (getattr(ranking, measure) or 0.0 for ranking in self.rankings[:2])
        return float(served / brute_force) if brute_force else 1.0

    def as_json(self) -> dict[str, Any]:
        """Every value of the table."""
        values = {name: getattr(self, name) for name in ("k", "articles", "labeled", "lists", "ages")}
        values |= {f"{name}_of_brute_force": self.of_brute_force(name) for name in ("recall", "distinct")}
        return values | {"rankings": [asdict(ranking) for ranking in self.rankings]}


async def evaluate(
    articles: Sequence[Article],
    analyzer: Analyzer,
    *,
    labels: Mapping[str, str] | None = None,
    background: Sequence[Article] = (),
    k: int = 10,
    lists: int = 600,
    min_score: float = MIN_PROBABILITY,
    policy: Policy | None = None,
    compare: Sequence[str] = (),
    judgments: Sequence[Judgment] = (),
    seed: int = 0,
    progress: Progress = not_shown,
) -> RelatedReport:
    """Request the related articles of labeled and of ``lists`` random ones; ``labels``: event by id.

    ``progress`` is given the name and the items of each step, and returns these. Raises InvalidInput if
    labels are given and no event has two articles.
    """
    stored, brute_force = await store_articles(
        articles, labels or {}, background, analyzer, policy or Policy(), min_score, progress
    )
    random_ids = sample(sorted(stored.group_by_id), lists, seed)
    questions = list(dict.fromkeys([*stored.relevant_by_id, *random_ids]))
    report = RelatedReport(k, len(stored.articles), len(stored.relevant_by_id), len(random_ids))
    minimums = {"related": None, "exhaustive": None} | ({"no minimum": 0.0} if compare else {})
    answers = {
        name: {
            id_: [item.id for item in await service.of_id(id_, RelatedOptions(limit=k, min_score=least))]
            for id_ in progress(name, questions)
        }
        for name, least in minimums.items()
        for service in [brute_force if name == "exhaustive" else stored.related]
    }
    answers |= {
        name: {id_: stored.ranked(name, id_, k) for id_ in progress(name, questions)} for name in compare
    }
    verdicts = {frozenset((item.a, item.b)): item.verdict for item in judgments}
    report.rankings = [
        _score(stored, name, found, answers["exhaustive"], random_ids, k, verdicts)
        for name, found in answers.items()
    ]
    by_id = {article.id: article for article in stored.articles}
    shown = [(by_id[id_], [by_id[other] for other in answers["related"][id_]]) for id_ in random_ids]
    report.firsts = [(question, found[0]) for question, found in shown if found]
    report.ages = _shares_by_age([(question, other) for question, found in shown for other in found])
    return report


def _score(
    stored: StoredArticles,
    name: str,
    answers: Mapping[str, Sequence[str]],
    exhaustive: Mapping[str, Sequence[str]],
    random_ids: Sequence[str],
    k: int,
    verdicts: Mapping[frozenset[str], str],
) -> RankingScore:
    """The measures of ``answers`` by question; ``verdicts``: of judged pairs of ids."""
    groups = {id_: [stored.group_by_id[other] for other in found] for id_, found in answers.items()}
    score, relevant = RankingScore(name), stored.relevant_by_id
    if relevant:
        score.recall = mean(recall_at(groups[id_], relevant[id_], k) for id_ in relevant)
        score.ndcg = mean(ndcg_at(groups[id_], relevant[id_], k) for id_ in relevant)
    wanted = [
        (id_, {stored.group_by_id[o] for o in exhaustive[id_]}) for id_ in random_ids if exhaustive[id_]
    ]
    score.found = mean(len(w & set(groups[id_])) / len(w) for id_, w in wanted) if wanted else None
    counts = Counter(group for id_ in random_ids for group in groups[id_])
    score.largest = max(counts.values(), default=0) / max(1, len(random_ids))
    score.distinct, score.shown = len(counts), counts.total() / max(1, len(random_ids))
    firsts = Counter(verdicts.get(frozenset((id_, found[0]))) for id_, found in answers.items() if found)
    score.judged, score.wrong = firsts["right"] + firsts["wrong"], firsts["wrong"]
    return score


def format_table(report: RelatedReport, name: str) -> str:
    """Table for a terminal: one line per ranking."""
    k = report.k
    heads = [f"recall@{k}", f"nDCG@{k}", "found", "largest", "distinct", "shown", "wrong"]
    lines = [
        f"{name}: {report.articles:,} articles; {report.labeled:,} labeled, {report.lists:,} random",
        f"{'ranking':11}" + "".join(f"{head:>10}" for head in heads),
    ]
    for r in report.rankings:
        shares = [f"{'-' if v is None else f'{v:.3f}':>10}" for v in (r.recall, r.ndcg, r.found, r.largest)]
        wrong = f"{r.wrong}/{r.judged}"
        lines.append(f"{r.name:11}{''.join(shares)}{r.distinct:10,}{r.shown:10.2f}{wrong:>10}")
    recall, distinct = report.of_brute_force("recall"), report.of_brute_force("distinct")
    lines.append(f"of brute force: recall {recall:.3f}, distinct {distinct:.3f}")
    lines.append("found: share of exhaustive's; largest: share of lists with one article; shown: mean length")
    if report.ages:
        lines.append("age of answers: " + ", ".join(f"{a} {share:.1%}" for a, share in report.ages.items()))
    return "\n".join(lines)


def format_firsts(report: RelatedReport, count: int) -> str:
    """The first ``count`` questions with an answer, and it, to be judged by a reader."""
    pairs = [[(a, f"{a.title} | {a.text[:OPENING_CHARS]}") for a in pair] for pair in report.firsts[:count]]
    return "\n\n".join("\n".join(f"{a.id}  {' '.join(text.split())}" for a, text in pair) for pair in pairs)


def _shares_by_age(answers: Sequence[tuple[Article, Article]]) -> dict[str, float]:
    """Share of (question, answer) per bound of ``AGES_DAYS`` that the days between them do not exceed."""
    dated = [(a.published_at_ms, b.published_at_ms) for a, b in answers]
    days = [(asked - found) / DAY_MS for asked, found in dated if asked is not None and found is not None]
    names = Counter(next(name for name, most in AGES_DAYS.items() if age <= most) for age in days)
    return {name: names[name] / len(days) for name in AGES_DAYS} if days else {}
