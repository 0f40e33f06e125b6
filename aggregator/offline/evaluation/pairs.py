"""Do our scores tell the pairs that people call alike from those they do not?

Every row of a pair file has two articles, ``text1`` and ``text2`` (and ``title1``, ``lang1`` ... when known),
and a judgement: ``same`` (true or false), or ``overall`` from 1 (same story) to 4 (unrelated) as in SemEval-2022
task 8. There <= 2 counts as alike, >= 3 as not, and what lies between is left out.

Four scores are compared, each 0..1 and higher for more alike:

* **similarity**  cosine of the stored terms, what ``/related`` ranks by;
* **tf-idf**      cosine of all index terms, idf from the file itself: the plain baseline;
* **overlap**     containment of the stored samples, what makes a copy;
* **bits**        1 - distance / 64.

ROC AUC needs no threshold; the table of thresholds says which one to set for a wanted precision. Beside them: what each
policy would call the same. A row without titles gives ``same-event`` no headline, and then it asks for nearly equal texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.dedup.similarity import cosine
from aggregator.dedup.verdict import Candidate, Policy, decide
from aggregator.domain import Analysis, Article, ArticleRecord
from aggregator.errors import AggregatorError, InvalidInput
from aggregator.offline.evaluation.calibration import SHARE_THRESHOLDS, Curve, Point, build_curve
from aggregator.offline.evaluation.metrics import precision_recall_f1, roc_auc
from aggregator.offline.evaluation.near_duplicates import POLICIES

SCORES = ("similarity", "tf-idf", "overlap", "bits")
COMPARED_POLICIES = {**POLICIES, "same-event": Policy(name="same-event")}
MAX_SAME_RATING = 2.0
MIN_DIFFERENT_RATING = 3.0


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """Two articles and what people said of them."""

    first: Article
    second: Article
    same: bool


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """One pair under every score of ``SCORES``. ``langs``: "en", or "de-en" for two. ``called``: the same by which policy?"""

    languages: str
    same: bool
    scores: Mapping[str, float]
    same_by_policy: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class PairReport:
    """All pairs of a file."""

    pairs: Sequence[ScoredPair]

    @property
    def languages(self) -> list[str]:
        """Those with pairs of both kinds, most pairs first, after "all"."""
        counts = Counter(p.languages for p in self.pairs)
        both = [lang for lang, _ in counts.most_common() if len({p.same for p in self.pairs_in(lang)}) == 2]
        return ["all", *both]

    def pairs_in(self, languages: str) -> list[ScoredPair]:
        return [p for p in self.pairs if languages in ("all", p.languages)]

    def auc(self, languages: str, score: str) -> float:
        """ROC AUC, 0..1."""
        chosen = self.pairs_in(languages)
        return roc_auc([p.same for p in chosen], [p.scores[score] for p in chosen])

    def threshold_points(self, score: str) -> list[Point]:
        """The threshold table."""
        return [_threshold_point(self.pairs, score, threshold) for threshold in SHARE_THRESHOLDS]

    def policy_metrics(self, policy: str) -> tuple[float, float, float]:
        """Precision, recall and F1 of what a policy of ``RULES`` calls the same."""
        return _pair_metrics(self.pairs, [p.same for p in self.pairs if p.same_by_policy[policy]])

    def curves(self) -> list[Curve]:
        """Precision and recall against distance, overlap and similarity."""
        alike = sum(p.same for p in self.pairs)
        named = {"distance": "bits", "overlap": "overlap", "similarity": "similarity"}
        return [
            build_curve(
                name,
                ((64 * (1 - p.scores[s]) if s == "bits" else p.scores[s], p.same) for p in self.pairs),
                alike,
            )
            for name, s in named.items()
        ]

    def best_f1_point(self, score: str) -> Point:
        """The threshold of the highest F1, the lowest such."""
        return max(self.threshold_points(score), key=lambda point: point.f1)

    def as_json(self) -> dict[str, Any]:
        """Every figure of the table."""
        return {
            "pairs": len(self.pairs),
            "alike": sum(p.same for p in self.pairs),
            "roc_auc": {
                lang: {"pairs": len(self.pairs_in(lang))} | {s: round(self.auc(lang, s), 4) for s in SCORES}
                for lang in self.languages
            },
            "thresholds": {
                score: [
                    {"at": p.threshold, "precision": round(p.precision, 4), "recall": round(p.recall, 4),
                     "f1": round(p.f1, 4)}
                    for p in self.threshold_points(score)
                ]
                for score in SCORES
            },
            "best": {score: self.best_f1_point(score).threshold for score in SCORES},
            "policies": {
                name: dict(zip(("precision", "recall", "f1"), (round(v, 4) for v in self.policy_metrics(name)), strict=True))
                for name in COMPARED_POLICIES
            },
        }  # fmt: skip


def parse_pairs(rows: Iterable[Mapping[str, Any]]) -> list[JudgedPair]:
    """The judged pairs of a file, undecided ones left out. Raises BadInput naming the row."""
    found = []
    for at, row in enumerate(rows, 1):
        same = _parse_judgment(row, at)
        if same is not None:
            found.append(JudgedPair(_parse_article(row, at, "1"), _parse_article(row, at, "2"), same))
    if len({pair.same for pair in found}) < 2:
        raise InvalidInput("These pairs are all of one kind: give some that are alike and some that are not.")
    return found


def evaluate(pairs: Sequence[JudgedPair], analyzer: Analyzer) -> PairReport:
    """Score every pair. A pair with an article that has no words is passed over."""
    firsts = analyzer.analyze_many([p.first for p in pairs])
    seconds = analyzer.analyze_many([p.second for p in pairs])
    usable = [
        (pair.same, a, b)
        for pair, a, b in zip(pairs, firsts, seconds, strict=True)
        if not isinstance(a, AggregatorError) and not isinstance(b, AggregatorError)
    ]
    vectors = _tfidf([_term_counts(one) for _, a, b in usable for one in (a, b)])
    scored = []
    for at, (same, a, b) in enumerate(usable):
        tfidf = sum(w * vectors[2 * at + 1].get(term, 0.0) for term, w in vectors[2 * at].items())
        scored.append(
            ScoredPair(_language_pair(a, b), same, _scores(a, b) | {"tf-idf": tfidf}, _same_by_policy(a, b))
        )
    return PairReport(scored)


def format_table(report: PairReport) -> str:
    """For a terminal: AUC per language, then thresholds of the stored similarity, then what to set."""
    lines = [f"ROC AUC {'pairs':>8} {'alike':>6}" + "".join(f"{score:>12}" for score in SCORES)]
    for lang in report.languages:
        chosen = report.pairs_in(lang)
        values = "".join(f"{report.auc(lang, score):12.3f}" for score in SCORES)
        lines.append(f"{lang:7} {len(chosen):8} {sum(p.same for p in chosen):6}{values}")
    lines += ["", f"{'similarity':>10} {'P':>6} {'R':>6} {'F1':>6}"]
    lines += [
        f"{p.threshold:10.2f} {p.precision:6.3f} {p.recall:6.3f} {p.f1:6.3f}"
        for p in report.threshold_points("similarity")
    ]
    best = "; ".join(
        f"{s} from {report.best_f1_point(s).threshold:.2f} (F1 {report.best_f1_point(s).f1:.3f})"
        for s in SCORES
    )
    lines += ["", f"Highest F1: {best}.", "", f"{'policy':12} {'P':>6} {'R':>6} {'F1':>6}"]
    lines += [
        f"{name:12} " + " ".join(f"{value:6.3f}" for value in report.policy_metrics(name))
        for name in COMPARED_POLICIES
    ]
    return "\n".join(lines)


def _parse_judgment(row: Mapping[str, Any], row_number: int) -> bool | None:
    same, overall = row.get("same"), row.get("overall")
    if isinstance(same, bool):
        return same
    if isinstance(overall, int | float) and not isinstance(overall, bool):
        return True if overall <= MAX_SAME_RATING else False if overall >= MIN_DIFFERENT_RATING else None
    raise InvalidInput(f"Pair {row_number} has neither `same` (true or false) nor `overall` (1 to 4).")


def _parse_article(row: Mapping[str, Any], row_number: int, side: str) -> Article:
    title, text, lang = row.get("title" + side) or "", row.get("text" + side) or "", row.get("lang" + side)
    if not isinstance(title, str) or not isinstance(text, str) or not (title or text):
        raise InvalidInput(f"Pair {row_number} has no `text{side}`.")
    return Article(
        id=f"{row_number}.{side}", title=title, text=text, lang=lang if isinstance(lang, str) else None
    )


def _scores(a: Analysis, b: Analysis) -> dict[str, float]:
    comparable = a.space == b.space
    return {
        "similarity": cosine(a.terms, b.terms),
        "overlap": estimate_overlap(a.sketch, b.sketch).containment,
        "bits": 1 - hamming_distance(a.fingerprint, b.fingerprint) / 64 if comparable else 0.0,
    }


def _same_by_policy(a: Analysis, b: Analysis) -> dict[str, bool]:
    """Would the second have been a duplicate of the first?"""
    if a.space != b.space:
        return dict.fromkeys(COMPARED_POLICIES, False)
    record = ArticleRecord(
        1, 1, "first", a.space, a.lang, a.fingerprint, a.text_hash, a.short, a.title, "", "", None,
        a.sketch, a.terms, a.figures,
    )  # fmt: skip
    distance = hamming_distance(a.fingerprint, b.fingerprint)
    overlap, similarity = estimate_overlap(b.sketch, a.sketch), cosine(b.terms, a.terms)
    candidate = Candidate(record, ("first", 1), distance, overlap, similarity)
    return {
        name: decide(b, [candidate], policy).match is not None for name, policy in COMPARED_POLICIES.items()
    }


def _term_counts(analysis: Analysis) -> Counter[str]:
    return Counter(tokenize(f"{analysis.title}\n{analysis.text}", analysis.lang))


def _tfidf(texts: Sequence[Counter[str]]) -> list[dict[str, float]]:
    """Unit vectors: term frequency times log((1 + n) / (1 + df)) + 1 (Salton & Buckley 1988, smoothed)."""
    frequency = Counter(term for counts in texts for term in counts)
    idf = {term: math.log((1 + len(texts)) / (1 + df)) + 1 for term, df in frequency.items()}
    vectors = [{term: count * idf[term] for term, count in counts.items()} for counts in texts]
    norms = [math.sqrt(sum(w * w for w in vector.values())) or 1.0 for vector in vectors]
    return [{t: w / norm for t, w in vector.items()} for vector, norm in zip(vectors, norms, strict=True)]


def _language_pair(a: Analysis, b: Analysis) -> str:
    return a.lang if a.lang == b.lang else "-".join(sorted((a.lang, b.lang)))


def _threshold_point(pairs: Sequence[ScoredPair], score: str, threshold: float) -> Point:
    called = [p.same for p in pairs if p.scores[score] >= threshold]
    return Point(threshold, *_pair_metrics(pairs, called))


def _pair_metrics(pairs: Sequence[ScoredPair], judgments: Sequence[bool]) -> tuple[float, float, float]:
    """Of calls, each right or wrong."""
    return precision_recall_f1(sum(judgments), len(judgments), sum(p.same for p in pairs))
