"""The probability of one subject (``queries/relatedness.py``), fitted to judged pairs.

Pairs are ids of stored articles with a verdict (``judgments.py``), or rows of two texts (``pairs.py``), whose
terms count as rare. Fitted are the scale of the sum of all features but the days, their weight and the bias,
one more for pairs without dates. Each language is left out in turn of a fit in which all weigh the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.term_profile import cosines
from aggregator.dedup.policy import Policy
from aggregator.domain import Article, build_record
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
from aggregator_lab.evaluation.pairs import analyzed, tfidf_cosines
from aggregator_lab.evaluation.related_store import store_articles
from aggregator_lab.evaluation.wrong_pairs import JudgedPair

BINS = 5
FEATURES = ("cosine", "rarity", "terms", "days")  # as ``features`` orders them


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
    usable = [item for item in analyzed(pairs, analyzer) if item[1].lang == item[2].lang]
    found = []
    for (pair, a, b), tfidf in zip(usable, tfidf_cosines([(a, b) for _, a, b in usable]), strict=True):
        cosine = float(cosines(a, [b])[0])
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
    fitted = [*weights[0] * np.array(WEIGHTS[:-1]), weights[1]]  # as in the service
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
        "fitted": {"bias": round(bias, 2), "weights": np.round(fitted, 2).tolist()},
        "shipped": {"bias": BIAS, "weights": list(WEIGHTS)},
    }  # fmt: skip


def format_table(result: Mapping[str, Any]) -> str:
    """Tables for a terminal: AUC per language, reliability, and the weights fitted here and shipped."""
    scores = ("left_out", "shipped", "tfidf")
    lines = [f"ROC AUC {'pairs':>8}" + "".join(f"{name:>10}" for name in scores)]
    for row in result["languages"]:
        lines.append(f"{row['lang']:7} {row['pairs']:8,}" + "".join(f"{row[name]:10.3f}" for name in scores))
    lines += ["", f"{'expected':>8} {'pairs':>7} {'same':>9}"]
    lines += [f"{row['expected']:8.3f} {row['pairs']:7,} {row['same']:9.3f}" for row in result["reliability"]]
    found = [f"{name} {result[f'{name}_at_minimum']}" for name in ("precision", "recall")]
    lines += ["", f"left out, from the minimum, {result['minimum']}: {', '.join(found)}"]
    weights = f"{'weights':8} {'bias':>6}" + "".join(f"{name:>9}" for name in FEATURES)
    fits = [(name, result[name]["bias"], *result[name]["weights"]) for name in ("fitted", "shipped")]
    return "\n".join(
        [*lines, "", weights, *("{:8} {:6.2f}{:9.2f}{:9.2f}{:9.2f}{:9.2f}".format(*fit) for fit in fits)]
    )


def _fit(
    rows: npt.NDArray[np.float64], same: npt.NDArray[np.bool_], langs: npt.NDArray[np.str_]
) -> tuple[npt.NDArray[np.float64], float]:
    """Weights and bias of a logistic regression in which all languages weigh the same."""
    from sklearn.linear_model import LogisticRegression

    counts = Counter(langs.tolist())
    model = LogisticRegression(C=10).fit(rows, same, [100 / counts[lang] for lang in langs.tolist()])
    return model.coef_[0], float(model.intercept_[0])
