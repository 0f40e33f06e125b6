"""Fit of the pair model of ``same-event``, and its figures on topics that were left out.

    scripts/bench event [FILE] [--orders N]

FILE has a ``cluster`` of the form TOPIC_EVENT per article (ecbplus_dev). Each topic in turn is left out of
the fit, its pairs are scored, and the decisions about its articles are counted in the online protocol against
all articles, whose candidates are all earlier ones. The last line is the model fitted on everything.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from random import Random

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import estimate_overlaps
from aggregator.cli.labeled_articles import load_labeled
from aggregator.dedup import event_model
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.similarity import cosine_to
from aggregator.domain import Analysis
from tests.support.development_data import DATA

REGULARIZATION = 0.3  # C of scikit-learn, of standardized features
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def pair_features(analyses: Sequence[Analysis]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows a > b of all candidate pairs, (n,) each, and their features, (n, k)."""
    a, b, values = [], [], []
    for at in range(1, len(analyses)):
        similarity_to = cosine_to(analyses[at].terms)
        similarities = [similarity_to(other.terms) for other in analyses[:at]]
        near = [i for i, value in enumerate(similarities) if value >= event_model.MIN_TERM_COSINE]
        overlaps = estimate_overlaps(analyses[at].sketch, [analyses[i].sketch for i in near]) if near else []
        for i, overlap in zip(near, overlaps, strict=True):
            a.append(at)
            b.append(i)
            evidence = Evidence(overlap, similarities[i])
            values.append(event_model.features(analyses[at], analyses[i], evidence))
    return np.array(a), np.array(b), np.array(values)


def fit(values: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and bias for unscaled features."""
    scaler = StandardScaler().fit(values)
    model = LogisticRegression(C=REGULARIZATION, max_iter=500).fit(scaler.transform(values), same)
    weights = model.coef_[0] / scaler.scale_
    return weights, float(model.intercept_[0] - weights @ scaler.mean_)


def probabilities(values: np.ndarray, weights: np.ndarray, bias: float) -> np.ndarray:
    """(n,) of the logistic function."""
    probability: np.ndarray = 1 / (1 + np.exp(-(values @ weights + bias)))
    return probability


def score(
    labels: Sequence[str],
    a: np.ndarray,
    b: np.ndarray,
    probability: np.ndarray,
    rank: np.ndarray,
    threshold: float,
    orders: int,
) -> tuple[float, float]:
    """Precision and recall of the best earlier match by ``rank``, over the counts of all orders."""
    near: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for at in np.flatnonzero(probability >= threshold).tolist():
        near[int(a[at])].append((float(rank[at]), int(b[at])))
        near[int(b[at])].append((float(rank[at]), int(a[at])))
    correct = called = relevant = 0
    for seed in range(orders):
        order = list(range(len(labels)))
        Random(seed).shuffle(order)
        position = {article: at for at, article in enumerate(order)}
        seen: set[str] = set()
        for article in order:
            earlier = [(r, other) for r, other in near[article] if position[other] < position[article]]
            if earlier:
                called += 1
                correct += labels[max(earlier)[1]] == labels[article]
            relevant += labels[article] in seen and not (
                earlier and labels[max(earlier)[1]] != labels[article]
            )
            seen.add(labels[article])
    return correct / max(1, called), correct / max(1, relevant)


def main() -> None:
    """Print the left-out figures per threshold and the fitted model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", default=str(DATA / "ecbplus_dev.jsonl.gz"))
    parser.add_argument("--orders", type=int, default=5)
    args = parser.parse_args()
    gold = load_labeled([args.file])
    analyzer = Analyzer(load_models(None))
    results = analyzer.analyze_many([item.article for item in gold])
    usable = [
        (result, item.label)
        for result, item in zip(results, gold, strict=True)
        if isinstance(result, Analysis)
    ]
    labels = [label for _, label in usable]
    a, b, values = pair_features([analysis for analysis, _ in usable])
    topic = np.array([label.split("_")[0] for label in labels])
    same = np.array(labels)[a] == np.array(labels)[b]
    left_out = np.zeros(len(a))
    for name in sorted(set(topic)):
        inside = (topic[a] == name) | (topic[b] == name)
        scored = probabilities(values[inside], *fit(values[~inside], same[~inside]))
        left_out[inside] = np.maximum(left_out[inside], scored)
    print(f"{len(labels)} articles, {len(set(topic))} topics, {len(a)} pairs; left-out topics:")
    terms = values[:, event_model.FEATURES.index("terms")]
    for threshold in THRESHOLDS:
        precision, recall = score(labels, a, b, left_out, terms, threshold, args.orders)
        print(f"probability >= {threshold:.1f}: P {precision:.3f}  R {recall:.3f}")
    weights, bias = fit(values, same)
    print(f"WEIGHTS = ({', '.join(f'{weight:.3f}' for weight in weights)})\nBIAS = {bias:.3f}")


if __name__ == "__main__":
    main()
