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
policy would call the same. A row without titles gives ``titled`` no headline, and then it asks for nearly equal texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.analysis.analyzer import Analyser
from aggregator.analysis.shingles import compare
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.dedup.similarity import cosine
from aggregator.dedup.verdict import Candidate, Policy, decide
from aggregator.domain import Analysis, Article, Record
from aggregator.errors import AggregatorError, BadInput
from aggregator.offline.evaluation.calibration import SHARES, Curve, Point, curve
from aggregator.offline.evaluation.metrics import rates, roc_auc
from aggregator.offline.evaluation.near_duplicates import POLICIES

SCORES = ("similarity", "tf-idf", "overlap", "bits")
RULES = {**POLICIES, "titled": Policy(name="titled")}
ALIKE_UP_TO = 2.0
UNLIKE_FROM = 3.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two articles and what people said of them."""

    first: Article
    second: Article
    same: bool


@dataclass(frozen=True, slots=True)
class Scored:
    """One pair under every score of ``SCORES``. ``langs``: "en", or "de-en" for two. ``called``: the same by which policy?"""

    langs: str
    same: bool
    scores: Mapping[str, float]
    called: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Report:
    """All pairs of a file."""

    pairs: Sequence[Scored]

    @property
    def languages(self) -> list[str]:
        """Those with pairs of both kinds, most pairs first, after "all"."""
        counts = Counter(p.langs for p in self.pairs)
        both = [lang for lang, _ in counts.most_common() if len({p.same for p in self.of(lang)}) == 2]
        return ["all", *both]

    def of(self, langs: str) -> list[Scored]:
        return [p for p in self.pairs if langs in ("all", p.langs)]

    def auc(self, langs: str, score: str) -> float:
        """ROC AUC, 0..1."""
        chosen = self.of(langs)
        return roc_auc([p.same for p in chosen], [p.scores[score] for p in chosen])

    def points(self, score: str) -> list[Point]:
        """The threshold table."""
        return [_point(self.pairs, score, threshold) for threshold in SHARES]

    def rule(self, policy: str) -> tuple[float, float, float]:
        """Precision, recall and F1 of what a policy of ``RULES`` calls the same."""
        return _rates(self.pairs, [p.same for p in self.pairs if p.called[policy]])

    def curves(self) -> list[Curve]:
        """Precision and recall against distance, overlap and similarity."""
        alike = sum(p.same for p in self.pairs)
        named = {"distance": "bits", "overlap": "overlap", "similarity": "similarity"}
        return [
            curve(
                name,
                ((64 * (1 - p.scores[s]) if s == "bits" else p.scores[s], p.same) for p in self.pairs),
                alike,
            )
            for name, s in named.items()
        ]

    def best(self, score: str) -> Point:
        """The threshold of the highest F1, the lowest such."""
        return max(self.points(score), key=lambda point: point.f1)

    def as_json(self) -> dict[str, Any]:
        """Every figure of the table."""
        return {
            "pairs": len(self.pairs),
            "alike": sum(p.same for p in self.pairs),
            "roc_auc": {
                lang: {"pairs": len(self.of(lang))} | {s: round(self.auc(lang, s), 4) for s in SCORES}
                for lang in self.languages
            },
            "thresholds": {
                score: [
                    {"at": p.threshold, "precision": round(p.precision, 4), "recall": round(p.recall, 4),
                     "f1": round(p.f1, 4)}
                    for p in self.points(score)
                ]
                for score in SCORES
            },
            "best": {score: self.best(score).threshold for score in SCORES},
            "policies": {
                name: dict(zip(("precision", "recall", "f1"), (round(v, 4) for v in self.rule(name)), strict=True))
                for name in RULES
            },
        }  # fmt: skip


def pairs_of(rows: Iterable[Mapping[str, Any]]) -> list[Pair]:
    """The judged pairs of a file, undecided ones left out. Raises BadInput naming the row."""
    found = []
    for at, row in enumerate(rows, 1):
        same = _judgement(row, at)
        if same is not None:
            found.append(Pair(_side(row, at, "1"), _side(row, at, "2"), same))
    if len({pair.same for pair in found}) < 2:
        raise BadInput("These pairs are all of one kind: give some that are alike and some that are not.")
    return found


def evaluate(pairs: Sequence[Pair], analyser: Analyser) -> Report:
    """Score every pair. A pair with an article that has no words is passed over."""
    firsts = analyser.analyse_many([p.first for p in pairs])
    seconds = analyser.analyse_many([p.second for p in pairs])
    usable = [
        (pair.same, a, b)
        for pair, a, b in zip(pairs, firsts, seconds, strict=True)
        if not isinstance(a, AggregatorError) and not isinstance(b, AggregatorError)
    ]
    vectors = _tfidf([_counts(one) for _, a, b in usable for one in (a, b)])
    scored = []
    for at, (same, a, b) in enumerate(usable):
        tfidf = sum(w * vectors[2 * at + 1].get(term, 0.0) for term, w in vectors[2 * at].items())
        scored.append(Scored(_langs(a, b), same, _scores(a, b) | {"tf-idf": tfidf}, _called(a, b)))
    return Report(scored)


def table(report: Report) -> str:
    """For a terminal: AUC per language, then thresholds of the stored similarity, then what to set."""
    lines = [f"ROC AUC {'pairs':>8} {'alike':>6}" + "".join(f"{score:>12}" for score in SCORES)]
    for lang in report.languages:
        chosen = report.of(lang)
        values = "".join(f"{report.auc(lang, score):12.3f}" for score in SCORES)
        lines.append(f"{lang:7} {len(chosen):8} {sum(p.same for p in chosen):6}{values}")
    lines += ["", f"{'similarity':>10} {'P':>6} {'R':>6} {'F1':>6}"]
    lines += [
        f"{p.threshold:10.2f} {p.precision:6.3f} {p.recall:6.3f} {p.f1:6.3f}"
        for p in report.points("similarity")
    ]
    best = "; ".join(f"{s} from {report.best(s).threshold:.2f} (F1 {report.best(s).f1:.3f})" for s in SCORES)
    lines += ["", f"Highest F1: {best}.", "", f"{'policy':12} {'P':>6} {'R':>6} {'F1':>6}"]
    lines += [f"{name:12} " + " ".join(f"{value:6.3f}" for value in report.rule(name)) for name in RULES]
    return "\n".join(lines)


def _judgement(row: Mapping[str, Any], at: int) -> bool | None:
    same, overall = row.get("same"), row.get("overall")
    if isinstance(same, bool):
        return same
    if isinstance(overall, int | float) and not isinstance(overall, bool):
        return True if overall <= ALIKE_UP_TO else False if overall >= UNLIKE_FROM else None
    raise BadInput(f"Pair {at} has neither `same` (true or false) nor `overall` (1 to 4).")


def _side(row: Mapping[str, Any], at: int, side: str) -> Article:
    title, text, lang = row.get("title" + side) or "", row.get("text" + side) or "", row.get("lang" + side)
    if not isinstance(title, str) or not isinstance(text, str) or not (title or text):
        raise BadInput(f"Pair {at} has no `text{side}`.")
    return Article(id=f"{at}.{side}", title=title, text=text, lang=lang if isinstance(lang, str) else None)


def _scores(a: Analysis, b: Analysis) -> dict[str, float]:
    comparable = a.space == b.space
    return {
        "similarity": cosine(a.terms, b.terms),
        "overlap": compare(a.sketch, b.sketch).containment,
        "bits": 1 - hamming_distance(a.fingerprint, b.fingerprint) / 64 if comparable else 0.0,
    }


def _called(a: Analysis, b: Analysis) -> dict[str, bool]:
    """Would the second have been a duplicate of the first?"""
    if a.space != b.space:
        return dict.fromkeys(RULES, False)
    record = Record(
        1, 1, "first", a.space, a.lang, a.fingerprint, a.text_hash, a.short, a.title, "", "", None,
        a.sketch, a.terms, a.figures,
    )  # fmt: skip
    distance = hamming_distance(a.fingerprint, b.fingerprint)
    overlap, similarity = compare(b.sketch, a.sketch), cosine(b.terms, a.terms)
    candidate = Candidate(record, ("first", 1), distance, overlap, similarity)
    return {name: decide(b, [candidate], policy).match is not None for name, policy in RULES.items()}


def _counts(analysis: Analysis) -> Counter[str]:
    return Counter(tokenize(f"{analysis.title}\n{analysis.text}", analysis.lang))


def _tfidf(texts: Sequence[Counter[str]]) -> list[dict[str, float]]:
    """Unit vectors: term frequency times log((1 + n) / (1 + df)) + 1 (Salton & Buckley 1988, smoothed)."""
    frequency = Counter(term for counts in texts for term in counts)
    idf = {term: math.log((1 + len(texts)) / (1 + df)) + 1 for term, df in frequency.items()}
    vectors = [{term: count * idf[term] for term, count in counts.items()} for counts in texts]
    norms = [math.sqrt(sum(w * w for w in vector.values())) or 1.0 for vector in vectors]
    return [{t: w / norm for t, w in vector.items()} for vector, norm in zip(vectors, norms, strict=True)]


def _langs(a: Analysis, b: Analysis) -> str:
    return a.lang if a.lang == b.lang else "-".join(sorted((a.lang, b.lang)))


def _point(pairs: Sequence[Scored], score: str, threshold: float) -> Point:
    called = [p.same for p in pairs if p.scores[score] >= threshold]
    return Point(threshold, *_rates(pairs, called))


def _rates(pairs: Sequence[Scored], called: Sequence[bool]) -> tuple[float, float, float]:
    """Of calls, each right or wrong."""
    return rates(sum(called), len(called), sum(p.same for p in pairs))
