"""The probability of one subject (``queries/relatedness.py``), fitted to judged pairs.

Pairs are ids of stored articles with a verdict (``judgments.py``), or rows of two texts (``pairs.py``), whose
terms count as rare. Fitted are the scale of the sum of all features but the days, their weight and the bias,
one more for pairs without dates. Each language is left out in turn of a fit in which all weigh the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.term_profile import cosines
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article, build_record
from aggregator.errors import InvalidInput
from aggregator.queries.relatedness import (
    BIAS,
    MIN_PROBABILITY,
    WEIGHTS,
    RelatedEvidence,
    features,
    probability,
    related_evidence,
)
from aggregator.time_units import HOUR_MS
from aggregator_lab.evaluation.judgments import Judgment
from aggregator_lab.evaluation.metrics import roc_auc
from aggregator_lab.evaluation.pairs import JudgedPair, tfidf_cosines
from aggregator_lab.evaluation.related_store import store_articles

BINS = 5


@dataclass(frozen=True, slots=True)
class JudgedEvidence:
    """Two articles of one language, whether people judged them alike, and their plain TF-IDF cosine.

    ``dated``: the days between them are known.
    """

    lang: str
    same: bool
    evidence: RelatedEvidence
    tfidf: float
    dated: bool = True


async def evidence_of_ids(
    articles: Sequence[Article], judgments: Sequence[Judgment], analyzer: Analyzer
) -> list[JudgedEvidence]:
    """Evidence about the pairs judged right or wrong whose articles are among these, in an index of all."""
    stored, _ = await store_articles(articles, {}, (), analyzer, Policy(), 0.0)
    judged = [j for j in judgments if j.verdict != "unsure" and {j.a, j.b} <= stored.positions.keys()]
    found = []
    for item in judged:
        record = (await stored.index.articles.get(item.a)).record
        other = (await stored.index.articles.get(item.b)).record
        near = await stored.index.related.find(record, item.a)
        (candidate,) = await stored.index.related.load_candidates(replace(near, numbers=(other.number,)))
        hours = (record.publication_ms - other.publication_ms) / HOUR_MS
        evidence = related_evidence(
            record, other, candidate.evidence.similarity, candidate.evidence.distance, near.rarity, hours
        )
        tfidf = float(stored.scorer("tf-idf")(stored.positions[item.a])[stored.positions[item.b]])
        dated = None not in (record.published_at_ms, other.published_at_ms)
        found.append(JudgedEvidence(record.lang, item.verdict == "right", evidence, tfidf, dated))
    ((lang, _),) = Counter(each.lang for each in found).most_common(1) or [("", 0)]
    return [replace(each, lang=lang) for each in found]


def evidence_of_rows(pairs: Sequence[JudgedPair], analyzer: Analyzer) -> list[JudgedEvidence]:
    """Evidence about those pairs whose articles are in one language."""
    firsts = analyzer.analyze_many([pair.first for pair in pairs])
    seconds = analyzer.analyze_many([pair.second for pair in pairs])
    usable = [
        (pair, a, b)
        for pair, a, b in zip(pairs, firsts, seconds, strict=True)
        if isinstance(a, Analysis) and isinstance(b, Analysis) and a.lang == b.lang
    ]
    found = []
    for (pair, a, b), tfidf in zip(usable, tfidf_cosines([(a, b) for _, a, b in usable]), strict=True):
        cosine = float(cosines((a.terms, a.minor_terms), [(b.terms, b.minor_terms)])[0])
        distance = hamming_distance(a.fingerprint, b.fingerprint)
        evidence = related_evidence(a, build_record(pair.second, b), cosine, distance)
        found.append(JudgedEvidence(a.lang, pair.same, evidence, tfidf, dated=False))
    return found


def evaluate(pairs: Sequence[JudgedEvidence]) -> dict[str, Any]:
    """AUC per language left out, reliability, precision at the minimum, and the weights of a fit to all."""
    langs = np.array([pair.lang for pair in pairs])
    same = np.array([pair.same for pair in pairs])
    judged = [lang for lang in dict.fromkeys(langs.tolist()) if len(set(same[langs == lang].tolist())) == 2]
    if len(judged) < 2:
        raise InvalidInput("A language is left out in turn: give pairs of both verdicts in two languages.")
    known = np.array([features(pair.evidence) for pair in pairs])
    rows = np.column_stack((known[:, :-1] @ WEIGHTS[:-1], known[:, -1], [not pair.dated for pair in pairs]))
    likely = np.zeros(len(pairs))
    for lang in judged:
        left = langs == lang
        weights, bias = _fit(rows[~left], same[~left], langs[~left])
        likely[left] = 1 / (1 + np.exp(-bias - rows[left] @ weights))
    weights, bias = _fit(rows, same, langs)
    shipped = np.array([probability(pair.evidence) for pair in pairs])
    tfidf = np.array([pair.tfidf for pair in pairs])
    bins = np.minimum((likely * BINS).astype(int), BINS - 1)
    listed = likely >= MIN_PROBABILITY
    return {
        "languages": [
            {"lang": lang, "pairs": int(of.sum()), **{
                name: round(roc_auc(same[of].tolist(), scores[of].tolist()), 3)
                for name, scores in (("left_out", likely), ("shipped", shipped), ("tfidf", tfidf))
            }} for lang in judged for of in [langs == lang]
        ],
        "reliability": [
            {"pairs": int(of.sum()), "expected": round(float(likely[of].mean()), 3),
             "same": round(float(same[of].mean()), 3)} for at in range(BINS) if (of := bins == at).any()
        ],
        "minimum": MIN_PROBABILITY,
        "precision_at_minimum": round(float(same[listed].mean()), 3) if listed.any() else None,
        "recall_at_minimum": round(float(listed[same].mean()), 3),
        "fitted": {"bias": round(bias, 2), "weights": np.round(weights[:-1], 2).tolist()},
        "shipped": {"bias": BIAS, "weights": list(WEIGHTS)},
    }  # fmt: skip


def _fit(
    rows: npt.NDArray[np.float64], same: npt.NDArray[np.bool_], langs: npt.NDArray[np.str_]
) -> tuple[npt.NDArray[np.float64], float]:
    """Weights and bias of a logistic regression in which all languages weigh the same."""
    from sklearn.linear_model import LogisticRegression

    counts = Counter(langs.tolist())
    model = LogisticRegression(C=10).fit(rows, same, [100 / counts[lang] for lang in langs.tolist()])
    return model.coef_[0], float(model.intercept_[0])
