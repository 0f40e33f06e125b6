"""Online protocol of near-duplicate detection (Rodier & Carter, LREC 2020, section 5).

The labeled articles are decided in a random order, each against those before it. An article

* called a duplicate is a true positive if the matched article has the same label, else a false positive;
* not called a duplicate is a false negative if an earlier article has the same label, else a true negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import NamedTuple

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Analysis, AnalyzeMany, Answer, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.ingest.service import IngestService
from aggregator.store.memory import MemoryStore
from aggregator_lab.evaluation.metrics import precision_recall_f1
from aggregator_lab.labeled import LabeledArticle

CLOCK_START_MS = 1_600_000_000_000  # virtual time, so that two runs agree

Analyses = Mapping[str, Analysis | AggregatorError]  # by article id


class DecisionCounts(NamedTuple):
    """Decisions of one order under one labeling."""

    true_positive: int
    false_positive: int
    false_negative: int

    @property
    def precision_recall_f1(self) -> tuple[float, float, float]:
        """Each 0..1; 1 without anything to count."""
        correct, false, missed = self
        return precision_recall_f1(correct, correct + false, correct + missed)


def mean_scores(orders: Iterable[DecisionCounts]) -> tuple[float, float, float, float]:
    """Mean precision, recall and F1, and the lowest F1."""
    precision, recall, f1 = zip(*(counts.precision_recall_f1 for counts in orders), strict=True)
    return mean(precision), mean(recall), mean(f1), min(f1)


def count_decisions(
    decisions: Iterable[tuple[str, str | None]], label_by_id: Mapping[str, str]
) -> DecisionCounts:
    """Count (article id, id of the matched article or None) in order. A match without a label is false."""
    made = list(decisions)
    wrong = wrong_decisions(made, label_by_id)
    missed = sum(same for *_, same in wrong)
    false = len(wrong) - missed
    return DecisionCounts(sum(matched is not None for _, matched in made) - false, false, missed)


def wrong_decisions(
    decisions: Iterable[tuple[str, str | None]], label_by_id: Mapping[str, str]
) -> list[tuple[str, str, bool]]:
    """What ``count_decisions`` counts as false or missed.

    Each with the id of the other article (the match, or the first of its label), of the article, and whether
    the two have one label.
    """
    first: dict[str, str] = {}
    wrong = []
    for id_, matched_id in decisions:
        label = label_by_id[id_]
        if matched_id is not None and label_by_id.get(matched_id) != label:
            wrong.append((matched_id, id_, False))
        elif matched_id is None and label in first:
            wrong.append((first[label], id_, True))
        first.setdefault(label, id_)
    return wrong


def analyze_by_id(analyzer: Analyzer, articles: Sequence[Article]) -> Analyses:
    """Analyze each article once, for any number of orders; of several with one id the last counts."""
    return dict(zip((a.id for a in articles), analyzer.analyze_many(articles), strict=True))


def precomputed(analyses: Analyses) -> AnalyzeMany:
    """The ``analyze_many`` of a service over articles that are analyzed already."""

    async def analyze_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [analyses[article.id] for article in articles]

    return analyze_many


async def decide_in_order(
    gold: Sequence[LabeledArticle],
    background: Sequence[Article],
    analyses: Analyses,
    policy: Policy,
    spaces: Sequence[str],
) -> list[Answer | AggregatorError]:
    """The answers to ``gold`` in its order, after all of ``background``, by the ingest service in memory.

    ``analyses``: of the articles of both.
    """
    clock = iter(range(CLOCK_START_MS, CLOCK_START_MS + 10**12))
    ingest = IngestService(
        Index(MemoryStore(), spaces), precomputed(analyses), PolicyProfiles(policy), clock=lambda: next(clock)
    )
    await ingest.submit_many(background)
    # A decision does not need the text, which would be stored once more.
    return await ingest.submit_many([replace(item.article, text="") for item in gold])


def duplicate_group(article_id: str, answer: Answer | AggregatorError) -> str:
    """Id of the canonical article of the article's duplicate group; its own id if it matched nothing."""
    match = answer.outcome.match if isinstance(answer, Answer) else None
    return article_id if match is None else match.canonical_id
