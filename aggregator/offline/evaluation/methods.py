"""Every method side by side: on labelled articles, clean and as a scanner would have read them.

For each method and each clustering the threshold is tuned on the clusters with even numbers (by B-cubed F1) and
scored on the odd ones, and the reverse; the figures are the means of both. Labels that share texts are merged
first (``near_duplicates.SPOTSIGS_MERGED``); ARI is given for the labels as they are too.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from math import comb
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.errors import InvalidInput
from aggregator.offline.archive.cluster import Links, cluster
from aggregator.offline.evaluation.metrics import adjusted_rand, b_cubed, precision_recall_f1
from aggregator.offline.evaluation.near_duplicates import SPOTSIGS_LABEL_MERGES, LabeledArticle
from aggregator.offline.evaluation.ocr_noise import CLEAN, NOISE_LEVELS, NoiseLevel, add_ocr_noise
from aggregator.offline.evaluation.proposers import METHODS, NEURAL_METHODS, ScoredPairs

CLUSTERINGS = ("union-find", "average", "leiden")
# Cosines and distances need high thresholds, overlaps low ones: evenly spaced in log odds, .005 to .99.
THRESHOLDS = tuple(float(t) for t in 1 / (1 + np.exp(-np.linspace(-5.3, 4.6, 41))))
MAX_LINKS = 200_000  # of the strongest pairs: of a thousand articles more are near nothing

# Figures that others published, of other systems and mostly on other data.
PUBLISHED_SCORES = (
    ("NEWS-COPY (historical newspapers, scanned)", "ARI", "LSH", 0.737),
    ("NEWS-COPY (historical newspapers, scanned)", "ARI", "n-gram overlap", 0.440),
    ("NEWS-COPY (historical newspapers, scanned)", "ARI", "bi-encoder", 0.915),
    ("NEWS-COPY (historical newspapers, scanned)", "ARI", "re-ranking", 0.937),
    ("SpotSigs gold set", "F1", "a published system whose name is not on record here", 0.956),
    ("SpotSigs gold set", "F1", "a published system whose name is not on record here", 0.955),
    ("SpotSigs gold set", "F1", "a published system whose name is not on record here", 0.943),
    ("SpotSigs gold set", "F1", "a published system whose name is not on record here", 0.940),
    ("SpotSigs gold set", "F1", "a published system whose name is not on record here", 0.920),
)
PUBLISHED_RUNTIMES = (
    ("Zhang 2023: doc2vec, faiss top-64 on a GPU, disjoint sets", 7_193_990, "14,001 s"),
    ("Silcock et al. 2022: neural bi-encoder on a GPU", 10_000_000, "11 h 45 min"),
    ("Silcock et al. 2022: hashing", 10_000_000, "3 h 40 min"),
)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method with one clustering at one level of noise; means of both directions of tuning."""

    level: str
    method: str
    clustering: str
    b_cubed_f1: float
    adjusted_rand: float
    adjusted_rand_as_labelled: float
    pair_precision: float
    pair_recall: float
    pair_f1: float
    mean_group: float
    thresholds: tuple[float, float]  # tuned on even, on odd
    whole_b_cubed_f1: float  # of all clusters at the first of them
    seconds: float  # of CPU, from articles to scored pairs
    memory_mb: float  # more than before


def evaluate(
    gold: Sequence[LabeledArticle],
    *,
    methods: Sequence[str] = tuple(METHODS),
    levels: Sequence[NoiseLevel] = (CLEAN, *NOISE_LEVELS),
    label_merges: Mapping[str, str] = SPOTSIGS_LABEL_MERGES,
    processes: int = 1,
) -> list[MethodResult]:
    """One row per level, method and clustering.

    Raises ConfigurationError when a method's extra is missing, BadInput when a half has no copies to tune on.
    """
    truth = [label_merges.get(one.label, one.label) for one in gold]
    if not all(
        _has_copies(_select(truth, half)) for half in (_is_even_cluster(truth), ~_is_even_cluster(truth))
    ):
        raise InvalidInput(
            "Give copies of at least two articles, each with an equal `cluster`: "
            "thresholds are tuned on every other one and scored on the rest."
        )
    tasks = [(gold, method, level, label_merges) for level in levels for method in methods]
    # A process of its own for each, so that its peak memory is its own.
    with ProcessPoolExecutor(processes, max_tasks_per_child=1) as executor:
        found = executor.map(_evaluate_method, *zip(*tasks, strict=True))
        return [row for rows in found for row in rows]


def _evaluate_method(
    gold: Sequence[LabeledArticle], method: str, level: NoiseLevel, label_merges: Mapping[str, str]
) -> list[MethodResult]:
    articles = [
        replace(one.article, text=add_ocr_noise(one.article.text, level, one.article.id)) for one in gold
    ]
    before = _peak_mb()
    started = time.process_time()
    scored = METHODS[method](articles)
    seconds = time.process_time() - started
    memory = _peak_mb() - before
    labels = [one.label for one in gold]
    truth = [label_merges.get(label, label) for label in labels]
    rows = []
    for clustering in CLUSTERINGS:
        figures = _tune_and_score(scored, clustering, truth, labels)
        rows.append(
            MethodResult(level.name, method, clustering, **figures, seconds=seconds, memory_mb=memory)
        )
    return rows


def _tune_and_score(
    scored: ScoredPairs, clustering: str, truth: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Tune on one half, score on the other, both ways."""
    even = _is_even_cluster(truth)
    tuned, figures = [], []
    whole = 0.0
    found: dict[float, npt.NDArray[np.int64]] = {}
    for half in (even, ~even):
        if not found or scored.features is not None:  # only a classifier's scores depend on the half
            links = strongest_links(scored, _link_strength(scored, truth, half), len(truth))
            found = {t: group_labels(links, clustering, t) for t in THRESHOLDS}
        best = _best_threshold(
            {t: b_cubed(_select(truth, half), groups[half].tolist())[2] for t, groups in found.items()}
        )
        tuned.append(best)
        figures.append(_half_metrics(truth, labels, found[best], ~half))
        whole = whole or b_cubed(truth, found[best].tolist())[2]
    means = {name: mean(one[name] for one in figures) for name in figures[0]}
    return {**means, "thresholds": tuple(tuned), "whole_b_cubed_f1": whole}


def _best_threshold(f1_by_threshold: Mapping[float, float]) -> float:
    """The threshold of the highest figure; of several, the middle one, which has most room on both sides."""
    highest = max(f1_by_threshold.values())
    best = [threshold for threshold, figure in f1_by_threshold.items() if figure >= highest - 1e-9]
    return best[len(best) // 2]


def _link_strength(
    scored: ScoredPairs, truth: Sequence[str], half: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """The scores, or what a classifier trained on this half's pairs makes of their features."""
    if scored.features is None:
        return scored.score
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    known = half[scored.a] & half[scored.b]
    same = np.array(truth)[scored.a] == np.array(truth)[scored.b]
    scaled = StandardScaler().fit(scored.features[known])
    model = LogisticRegression(max_iter=1_000).fit(scaled.transform(scored.features[known]), same[known])
    found: npt.NDArray[np.float64] = model.predict_proba(scaled.transform(scored.features))[:, 1]
    return found


def strongest_links(scored: ScoredPairs, strength: npt.NDArray[np.float64], count: int) -> Links:
    """At most LINKS_MAX pairs of any strength, strongest first."""
    order = np.argsort(-strength, kind="stable")[:MAX_LINKS]
    order = order[strength[order] > 0]
    return Links(count, scored.a[order], scored.b[order], strength[order])


def group_labels(links: Links, clustering: str, threshold: float) -> npt.NDArray[np.int64]:
    """(n,) labels: union-find over pairs at or above the threshold, or a split of the whole graph."""
    if clustering == "union-find":
        end = int(np.searchsorted(-links.strength, -threshold, side="right"))
        links = Links(links.article_count, links.a[:end], links.b[:end], links.strength[:end])
    return cluster(links, clustering, threshold, links.article_count).labels


def _half_metrics(
    truth: Sequence[str], labels: Sequence[str], predicted: npt.NDArray[np.int64], half: npt.NDArray[np.bool_]
) -> dict[str, float]:
    wanted, given = _select(truth, half), predicted[half].tolist()
    precision, recall, f1 = pairwise_precision_recall_f1(wanted, given)
    groups = [size for size in Counter(given).values() if size > 1]
    return {
        "b_cubed_f1": b_cubed(wanted, given)[2],
        "adjusted_rand": adjusted_rand(wanted, given),
        "adjusted_rand_as_labelled": adjusted_rand(_select(labels, half), given),
        "pair_precision": precision,
        "pair_recall": recall,
        "pair_f1": f1,
        "mean_group": mean(groups) if groups else 0.0,
    }


def pairwise_precision_recall_f1(
    truth: Sequence[str], predicted: Sequence[int]
) -> tuple[float, float, float]:
    """Precision, recall and F1 over pairs that are in one group."""
    both = sum(comb(n, 2) for n in Counter(zip(truth, predicted, strict=True)).values())
    given = sum(comb(n, 2) for n in Counter(predicted).values())
    wanted = sum(comb(n, 2) for n in Counter(truth).values())
    return precision_recall_f1(both, given, wanted)


def _is_even_cluster(truth: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which articles are of every other cluster, in order of their names."""
    names = {label: at for at, label in enumerate(sorted(set(truth)))}
    return np.array([names[label] % 2 == 0 for label in truth], bool)


def _has_copies(labels: Sequence[str]) -> bool:
    return len(set(labels)) < len(labels)


def _select(labels: Sequence[str], half: npt.NDArray[np.bool_]) -> list[str]:
    return [label for label, chosen in zip(labels, half.tolist(), strict=True) if chosen]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def best_per_method(rows: Sequence[MethodResult]) -> dict[str, list[MethodResult]]:
    """Per level, each method with its best clustering, best first."""
    found: dict[str, list[MethodResult]] = {}
    for level in dict.fromkeys(row.level for row in rows):
        best: dict[str, MethodResult] = {}
        for row in (row for row in rows if row.level == level):
            if row.method not in best or row.b_cubed_f1 > best[row.method].b_cubed_f1:
                best[row.method] = row
        found[level] = sorted(best.values(), key=lambda row: -row.b_cubed_f1)
    return found


def as_json(rows: Sequence[MethodResult]) -> list[dict[str, Any]]:
    """Plain values."""
    return [{k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(row).items()} for row in rows]


def format_table(rows: Sequence[MethodResult]) -> str:
    """For a terminal."""
    heads = ("B3 F1", "ARI", "ARI lab.", "pair P", "pair R", "pair F1", "group", "whole", "CPU s", "MB")
    lines = [f"{'level':7} {'method':18} {'clustering':11}" + "".join(f"{head:>9}" for head in heads)]
    for row in rows:
        figures = (
            row.b_cubed_f1, row.adjusted_rand, row.adjusted_rand_as_labelled, row.pair_precision, row.pair_recall,
            row.pair_f1,
        )  # fmt: skip
        lines.append(
            f"{row.level:7} {row.method:18} {row.clustering:11}"
            + "".join(f"{figure:9.3f}" for figure in figures)
            + f"{row.mean_group:9.1f}{row.whole_b_cubed_f1:9.3f}{row.seconds:9.1f}{row.memory_mb:9.0f}"
        )
    lines += methods_not_run(rows)
    lines.append("\nPublished, of other systems and (but for SpotSigs) on other data:")
    lines += [
        f"  {value:.3f}  {measure}, {system}: {data}" for data, measure, system, value in PUBLISHED_SCORES
    ]
    lines += [f"  {took}  {system}: {articles:,} articles" for system, articles, took in PUBLISHED_RUNTIMES]
    return "\n".join(lines)


def methods_not_run(rows: Sequence[MethodResult]) -> list[str]:
    """Per level that was run, a line naming the methods that were not."""
    found = []
    for level in dict.fromkeys(row.level for row in rows):
        left = [name for name in METHODS if name not in {row.method for row in rows if row.level == level}]
        found += [f"{level:7} not run: {', '.join(left)}"] if left else []
    return found


def is_neural(row: MethodResult) -> bool:
    return row.method in NEURAL_METHODS
