"""ROC AUC and policies on pairs of articles that people judged alike or not.

Every row of a pair file has two articles, ``text1`` and ``text2`` (optionally ``title1``, ``lang1``,
``source1``, ``published_at1``, ...),
and a judgment: ``same`` (``labeled.two_valued``), or ``overall`` from 1 (same story) to 4 (unrelated) as in
SemEval-2022 task 8, where <= 2 counts as alike, >= 3 as different, and pairs between are left out.

Four scores are compared, each 0..1 and higher for more alike:

* **similarity**  cosine of the term profiles, by which ``/related`` ranks;
* **tf-idf**      cosine of all index terms, with the idf of the file itself: the plain baseline;
* **overlap**     containment of the stored shingle samples, which decides about duplicates;
* **bits**        1 - Hamming distance / 64.

The pairs that each policy calls duplicates are scored as well.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.simhash import FINGERPRINT_BITS, hamming_distance
from aggregator.analysis.term_profile import cosines
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.dedup.grouping import stored_evidence
from aggregator.dedup.verdict import Candidate, compare_with_readers_versions, decide
from aggregator.domain import Analysis, Article, build_record
from aggregator.errors import InvalidInput
from aggregator_archive.dates import DateCounts
from aggregator_archive.input_check import require_columns
from aggregator_archive.rows import Columns, column_hint, parse_article, parse_rows
from aggregator_lab.evaluation.metrics import precision_recall_f1, roc_auc
from aggregator_lab.evaluation.near_duplicates import POLICIES
from aggregator_lab.evaluation.wrong_pairs import JudgedPair
from aggregator_lab.labeled import two_valued

RULES = (*POLICIES, "dropped")
SCORES = ("similarity", "tf-idf", "overlap", "bits")
MEASURES = ("precision", "recall", "f1")
MAX_SAME_RATING = 2.0
MIN_DIFFERENT_RATING = 3.0


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """One pair under every score of ``SCORES`` and every rule of ``RULES``.

    ``languages``: "en", or "de-en" if the articles differ.
    """

    pair: JudgedPair
    languages: str
    scores: Mapping[str, float]
    same_by_policy: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class PairReport:
    """All pairs of a file."""

    pairs: Sequence[ScoredPair]

    @property
    def languages(self) -> list[str]:
        """The word "all", then the languages that have pairs of both judgments, most pairs first."""
        counts = Counter(p.languages for p in self.pairs)
        both = [
            lang for lang, _ in counts.most_common() if len({p.pair.same for p in self.pairs_in(lang)}) == 2
        ]
        return ["all", *both]

    @property
    def same_count(self) -> int:
        """Number of pairs judged alike."""
        return sum(p.pair.same for p in self.pairs)

    def pairs_in(self, languages: str) -> list[ScoredPair]:
        """The pairs of a value of ``languages``."""
        return [p for p in self.pairs if languages in ("all", p.languages)]

    def auc(self, languages: str, score: str) -> float:
        """ROC AUC, 0..1."""
        chosen = self.pairs_in(languages)
        return roc_auc([p.pair.same for p in chosen], [p.scores[score] for p in chosen])

    def policy_metrics(self, policy: str) -> tuple[float, float, float]:
        """Precision, recall and F1 of the pairs that a policy calls duplicates."""
        called = [p.pair.same for p in self.pairs if p.same_by_policy[policy]]
        return precision_recall_f1(sum(called), len(called), self.same_count)

    def wrong(self, policy: str) -> list[JudgedPair]:
        """The pairs that a policy decides otherwise than people."""
        return [p.pair for p in self.pairs if p.same_by_policy[policy] != p.pair.same]

    def as_json(self) -> dict[str, Any]:
        """Every value of the table."""
        return {
            "pairs": len(self.pairs),
            "alike": self.same_count,
            "roc_auc": {
                lang: {"pairs": len(self.pairs_in(lang))} | {s: round(self.auc(lang, s), 4) for s in SCORES}
                for lang in self.languages
            },
            "policies": {
                name: {key: round(v, 4) for key, v in zip(MEASURES, self.policy_metrics(name), strict=True)}
                for name in RULES
            },
        }  # fmt: skip


def load_pairs(files: Sequence[str], columns: Columns = ()) -> list[JudgedPair]:
    """The judged pairs of all rows (``parse_rows``) without the undecided ones. Raises InvalidInput."""
    require_columns(files, columns)
    dates = DateCounts()

    def parse(number: int, row: dict[str, Any]) -> JudgedPair | None:
        if (same := _parse_judgment(row)) is None:
            return None
        first, second = (_parse_article(row, number, side) for side in "12")
        for side, article in (("1", first), ("2", second)):
            column = {"published_at": f"published_at{side}"}
            dates.add(row, column, is_read=article.published_at_ms is not None)
        return JudgedPair(first, second, same)

    judged = [pair for pair in parse_rows(files, columns, parse) if pair]
    dates.report()
    if len({pair.same for pair in judged}) < 2:
        raise InvalidInput("These pairs are all of one kind: give some that are alike and some that are not.")
    return judged


def analyzed(pairs: Sequence[JudgedPair], analyzer: Analyzer) -> list[tuple[JudgedPair, Analysis, Analysis]]:
    """The pairs whose articles can both be analyzed, with the analyses; others are reported on stderr."""
    firsts = analyzer.analyze_many([pair.first for pair in pairs])
    seconds = analyzer.analyze_many([pair.second for pair in pairs])
    usable = [
        (pair, a, b)
        for pair, a, b in zip(pairs, firsts, seconds, strict=True)
        if isinstance(a, Analysis) and isinstance(b, Analysis)
    ]
    if errors := [result for result in (*firsts, *seconds) if not isinstance(result, Analysis)]:
        print(f"{len(pairs) - len(usable):,} pairs left out, the first: {errors[0]}", file=sys.stderr)
    return usable


def evaluate(pairs: Sequence[JudgedPair], analyzer: Analyzer) -> PairReport:
    """Score every pair. A pair with an article that cannot be analyzed is left out."""
    usable = analyzed(pairs, analyzer)
    cosines = tfidf_cosines([(a, b) for _, a, b in usable])
    return PairReport(
        [
            ScoredPair(
                pair,
                a.lang if a.lang == b.lang else "-".join(sorted((a.lang, b.lang))),
                _scores(a, b) | {"tf-idf": tfidf_cosine},
                _same_by_policy(pair, a, b),
            )
            for (pair, a, b), tfidf_cosine in zip(usable, cosines, strict=True)
        ]
    )


def format_table(report: PairReport) -> str:
    """Tables for a terminal: AUC per language, policies."""
    lines = [f"ROC AUC {'pairs':>8} {'alike':>6}" + "".join(f"{score:>12}" for score in SCORES)]
    for lang in report.languages:
        chosen = report.pairs_in(lang)
        values = "".join(f"{report.auc(lang, score):12.3f}" for score in SCORES)
        lines.append(f"{lang:7} {len(chosen):8} {sum(p.pair.same for p in chosen):6}{values}")
    lines += ["", f"{'policy':12} {'P':>6} {'R':>6} {'F1':>6}"]
    lines += [
        f"{name:12} " + " ".join(f"{value:6.3f}" for value in report.policy_metrics(name)) for name in RULES
    ]
    return "\n".join(lines)


def _parse_judgment(row: Mapping[str, Any]) -> bool | None:
    given = row.get("same")
    if (same := two_valued(given)) is not None:
        return same
    with contextlib.suppress(TypeError, ValueError):
        overall = float(row.get("overall", ""))
        return True if overall <= MAX_SAME_RATING else False if overall >= MIN_DIFFERENT_RATING else None
    if given is not None:
        raise InvalidInput(f"`same` is {given!r}; expected true or false, 1 or 0, yes or no.")
    need = "neither `same` (true or false, 1 or 0, yes or no) nor `overall` (1 to 4)"
    raise InvalidInput(need + column_hint(row, "same"))


def _parse_article(row: Mapping[str, Any], row_number: int, side: str) -> Article:
    given = {name: row.get(name + side) for name in ("title", "text", "lang", "source", "published_at")}
    if not str(given["text"] or "").strip():  # headlines alone would be compared
        raise InvalidInput(f"no `text{side}`{column_hint(row, f'text{side}')}")
    try:
        return parse_article({**given, "id": f"{row_number}.{side}"}, {})
    except InvalidInput as error:
        raise InvalidInput(f"text{side}: {error}") from None


def _scores(a: Analysis, b: Analysis) -> dict[str, float]:
    comparable = a.space == b.space
    return {
        "similarity": float(cosines(a, [b])[0]),
        "overlap": estimate_overlap(a.sketch, b.sketch).containment,
        "bits": 1 - hamming_distance(a.fingerprint, b.fingerprint) / FINGERPRINT_BITS if comparable else 0.0,
    }


def _same_by_policy(pair: JudgedPair, a: Analysis, b: Analysis) -> dict[str, bool]:
    """Whether each policy calls the second article a duplicate of the first; "dropped": one not to keep."""
    if a.space != b.space:
        return dict.fromkeys(RULES, False)
    first, second = build_record(pair.first, a, 1, 1), build_record(pair.second, b)
    evidence = stored_evidence(second, first)
    outcomes = {n: decide(b, [Candidate(first, (first.id, 1), evidence)], p) for n, p in POLICIES.items()}
    found, outlet = outcomes["verified"], evidence.same_outlet
    if found.match is not None:
        found = compare_with_readers_versions(found, b, first, [], POLICIES["verified"], outlet, outlet)
    matched = {name: outcome.match is not None for name, outcome in outcomes.items()}
    return matched | {"dropped": not found.keep}


def tfidf_cosines(pairs: Sequence[tuple[Analysis, Analysis]]) -> list[float]:
    """Cosine of each pair's TF-IDF vectors (Salton & Buckley 1988), with smoothed idf over all articles."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms = [tokenize(f"{article.title}\n{article.text}", article.lang) for pair in pairs for article in pair]
    if not any(terms):
        return [0.0] * len(pairs)
    vectors = TfidfVectorizer(analyzer=list).fit_transform(terms)
    cosines: list[float] = np.asarray(vectors[0::2].multiply(vectors[1::2]).sum(axis=1)).ravel().tolist()
    return cosines
