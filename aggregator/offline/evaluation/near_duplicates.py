"""How well are near-duplicates found, one article at a time?

The online protocol of Rodier & Carter ("Online Near-Duplicate Detection of News Articles", LREC 2020,
section 5): the labelled articles are shown in a random order, each is decided against those shown
before it. For an article

* called duplicate: true positive when the matched article has the same label, else false positive;
* not called duplicate: false negative when an earlier article has the same label, else true negative.

Articles go through the real ingest over an in-memory store. Orders are seeded, so two runs agree.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import mean

from aggregator.analysis.analyzer import Analyzer
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError, InvalidInput
from aggregator.index import Index
from aggregator.ingest.service import IngestService
from aggregator.offline.evaluation.metrics import adjusted_rand, b_cubed, precision_recall_f1
from aggregator.store.memory import MemoryStore

# Labels of the SpotSigs gold set that share page texts (some pages are identical): a right answer
# across them counts as false "as labelled", so results are given with each group merged as well.
SPOTSIGS_LABEL_MERGES: Mapping[str, str] = {
    "Subpoena": "Legal_Summons",
    "Lindsay": "Legal_Summons",
    "Pelosi": "Headlines",
    "Snuff": "Headlines",
    "Drink": "Caffeine",
    "Planned": "Florida",
    "Plea": "Paparazzi",
}
_CLOCK_START_MS = 1_600_000_000_000


@dataclass(frozen=True, slots=True)
class LabeledArticle:
    """One article of a gold set."""

    article: Article
    label: str


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one order under one labelling, and what follows from them (0..1)."""

    true_positive: int
    false_positive: int
    false_negative: int
    b_cubed_f1: float
    adjusted_rand: float

    @property
    def precision(self) -> float:
        return self._precision_recall_f1[0]

    @property
    def recall(self) -> float:
        return self._precision_recall_f1[1]

    @property
    def f1(self) -> float:
        return self._precision_recall_f1[2]

    @property
    def _precision_recall_f1(self) -> tuple[float, float, float]:
        right = self.true_positive
        return precision_recall_f1(right, right + self.false_positive, right + self.false_negative)


@dataclass(slots=True)
class PolicyResult:
    """One policy under one labelling over all orders."""

    policy: str
    labels: str
    scores: list[Score] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Means and the lowest F1; counts of each order."""
        return {
            "policy": self.policy,
            "labels": self.labels,
            "precision": round(mean(s.precision for s in self.scores), 4),
            "recall": round(mean(s.recall for s in self.scores), 4),
            "f1": round(mean(s.f1 for s in self.scores), 4),
            "f1_lowest": round(min(s.f1 for s in self.scores), 4),
            "b_cubed_f1": round(mean(s.b_cubed_f1 for s in self.scores), 4),
            "b_cubed_f1_lowest": round(min(s.b_cubed_f1 for s in self.scores), 4),
            "adjusted_rand": round(mean(s.adjusted_rand for s in self.scores), 4),
            "orders": [asdict(s) for s in self.scores],
        }


POLICIES: Mapping[str, Policy] = {
    "hamming <= 3": Policy(name="hamming", duplicate_bits=3),
    "hamming <= 7": Policy(name="hamming", duplicate_bits=7),
    "verified": Policy(),
}


async def evaluate(
    gold: Sequence[LabeledArticle],
    analyzer: Analyzer,
    *,
    orders: int = 1,
    policies: Mapping[str, Policy] = POLICIES,
    label_merges: Mapping[str, str] = SPOTSIGS_LABEL_MERGES,
    background: Sequence[Article] = (),
) -> list[PolicyResult]:
    """Rows per policy and labelling. ``background`` articles are ingested before the labelled ones.

    Raises BadInput when no label occurs twice: then nothing can be found.
    """
    labels = [g.label for g in gold]
    if len(set(labels)) == len(labels):
        raise InvalidInput(
            "No label occurs twice in this file: give every article a `cluster`, equal for copies."
        )
    analysed = dict(
        zip((g.article.id for g in gold), analyzer.analyze_many([g.article for g in gold]), strict=True)
    )
    before = analyzer.analyze_many(background)
    rows: list[PolicyResult] = []
    labellings = (
        {"as labelled": {}, "groups merged": label_merges}
        if set(label_merges) & set(labels)
        else {"as labelled": {}}
    )
    for name, policy in policies.items():
        fresh = {key: PolicyResult(name, key) for key in labellings}
        for seed in range(orders):
            shuffled = list(gold)
            random.Random(seed).shuffle(shuffled)
            answers = await decide_in_order(shuffled, analysed, policy, background, before, analyzer.spaces)
            for key, merge in labellings.items():
                relabelled = [merge.get(g.label, g.label) for g in shuffled]
                fresh[key].scores.append(_score_order(relabelled, shuffled, answers))
        rows += fresh.values()
    return rows


async def decide_in_order(
    gold: Sequence[LabeledArticle],
    analyses_by_id: Mapping[str, Analysis | AggregatorError],
    policy: Policy,
    background: Sequence[Article],
    background_analyses: Sequence[Analysis | AggregatorError],
    spaces: Sequence[str],
) -> list[Answer | AggregatorError]:
    """The answers to the labelled articles in their order, after all of the background.

    ``analysed`` by id, ``before`` in the order of ``background``: analysed once for many orders.
    """
    ready = {a.id: r for a, r in zip(background, background_analyses, strict=True)} | dict(analyses_by_id)

    async def look_up(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [ready[a.id] for a in articles]

    clock = iter(range(_CLOCK_START_MS, _CLOCK_START_MS + 10**12))
    ingest = IngestService(Index(MemoryStore(), spaces), look_up, policy, clock=lambda: next(clock))
    await ingest.submit_many(background)
    # Texts are not needed to decide, and would only be stored again.
    return await ingest.submit_many([replace(g.article, text="") for g in gold])


def _score_order(
    labels: Sequence[str], gold: Sequence[LabeledArticle], answers: Sequence[Answer | AggregatorError]
) -> Score:
    label_of = {g.article.id: label for g, label in zip(gold, labels, strict=True)}
    seen: set[str] = set()
    counts = {"tp": 0, "fp": 0, "fn": 0}
    groups: list[str] = []
    for one, label, answer in zip(gold, labels, answers, strict=True):
        match = answer.outcome.match if isinstance(answer, Answer) else None
        if match is not None:
            counts["tp" if label_of.get(match.id) == label else "fp"] += 1
        elif label in seen:
            counts["fn"] += 1
        seen.add(label)
        groups.append(match.canonical_id if match is not None else one.article.id)
    return Score(
        counts["tp"], counts["fp"], counts["fn"], b_cubed(labels, groups)[2], adjusted_rand(labels, groups)
    )


def format_table(rows: Sequence[PolicyResult]) -> str:
    """The report for a terminal."""
    lines = [
        f"{'policy':14} {'labels':14} {'P':>6} {'R':>6} {'F1':>6} {'lowest':>6} {'B3 F1':>6} {'lowest':>6} {'ARI':>6}"
    ]
    for row in rows:
        values = row.as_json()
        shown = ("precision", "recall", "f1", "f1_lowest", "b_cubed_f1", "b_cubed_f1_lowest", "adjusted_rand")
        lines.append(f"{row.policy:14} {row.labels:14} " + " ".join(f"{values[k]:6.3f}" for k in shown))
    return "\n".join(lines)
