"""Comparison of duplicate detection methods on labeled articles, clean and with the noise of scanned print.

The threshold is tuned on every other cluster (by B-cubed F1) and scored on the rest, and the reverse.
Overlapping labels are merged first; the adjusted Rand index is given for the labels as they are too.
"""

from __future__ import annotations

import random
import resource
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.arrays import Floats, Rows
from aggregator_archive.cluster import Links, average_linkage, cluster
from aggregator_archive.executors import end_with_parent
from aggregator_archive.optional_imports import import_optional
from aggregator_lab.evaluation.metrics import adjusted_rand, b_cubed, pair_count, precision_recall_f1
from aggregator_lab.evaluation.noise import CLEAN, NOISE_LEVELS, NoiseLevel, add_noise
from aggregator_lab.evaluation.pair_scorers import METHODS, TRANSFORMER_METHODS, default_methods, ngrams
from aggregator_lab.evaluation.trained_encoders import TRAINED_METHODS, train
from aggregator_lab.evaluation.vectors import FAISS, LIBRARIES, ScoredPairs
from aggregator_lab.labeled import DEFAULT_LANG, LabeledArticle, merged_labels

HALVES = ("even", "odd")  # clusters, in order of names
CLUSTERINGS = ("union-find", "average", "leiden")
IGRAPH = ("igraph", "newsdedup-lab[methods]", "Community detection")  # arguments of import_optional
RANDOM_SEED = 20231  # of community detection
# Evenly spaced in log odds, 0.005 to 0.99: cosines and distances need high thresholds, overlaps low ones.
THRESHOLDS = tuple(float(t) for t in 1 / (1 + np.exp(-np.linspace(-5.3, 4.6, 41))))
COMMON_NGRAM_WORDS = 10
MAX_LINKS = 200_000  # strongest pairs that are clustered; weaker ones of 1,000 articles are not similar


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method with one clustering at one noise level; means of both directions of tuning."""

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
    thresholds: tuple[float, float]  # tuned on the even and on the odd clusters
    whole_b_cubed_f1: float  # of all clusters at the first threshold
    seconds: float  # CPU time from articles to scored pairs
    memory_mb: float  # increase of the peak memory


def evaluate(
    gold: Sequence[LabeledArticle],
    *,
    methods: Sequence[str] | None = None,
    levels: Sequence[NoiseLevel] = (CLEAN, *NOISE_LEVELS),
    processes: int = 1,
) -> list[MethodResult]:
    """One row per level, method (by default those of ``default_methods``) and clustering.

    Raises ConfigurationError if a method's extra is missing, InvalidInput if a half has no copies to tune on.
    """
    truth = merged_labels(gold)
    is_even = _is_even_cluster(truth)
    halves = [_select(truth, half) for half in (is_even, ~is_even)]
    if any(len(set(labels)) == len(labels) for labels in halves):
        raise InvalidInput(
            "Give copies of at least two articles, each with an equal `cluster`: "
            "thresholds are tuned on every other one and scored on the rest."
        )
    methods = methods or default_methods()
    _check_libraries(methods)
    tasks = [(gold, method, level) for level in levels for method in methods]
    with (
        TemporaryDirectory() as encoders,
        # One process per task: the peak memory of a process never falls.
        ProcessPoolExecutor(processes, max_tasks_per_child=1, initializer=end_with_parent) as executor,
    ):
        if not TRAINED_METHODS.keys().isdisjoint(methods):
            executor.submit(train_encoders, gold, Path(encoders)).result()
        results = executor.map(evaluate_method, *zip(*tasks, strict=True), repeat(Path(encoders)))
        return [row for rows in results for row in rows]


def _check_libraries(methods: Sequence[str]) -> None:
    needed = [IGRAPH, *(each for name in methods for each in LIBRARIES.get(name, ()))]
    if not TRANSFORMER_METHODS.isdisjoint(methods):
        needed.append(FAISS)
    for library in dict.fromkeys(needed):
        import_optional(*library)


def train_encoders(gold: Sequence[LabeledArticle], directory: Path) -> None:
    """Write a directory of weights for each of ``HALVES``, trained on its articles."""
    truth = merged_labels(gold)
    even = _is_even_cluster(truth)
    for name, half in zip(HALVES, (even, ~even), strict=True):
        articles = [item.article for item, chosen in zip(gold, half.tolist(), strict=True) if chosen]
        train(articles, _select(truth, half), directory / name)


def evaluate_method(
    gold: Sequence[LabeledArticle], method: str, level: NoiseLevel, encoders: Path = Path()
) -> list[MethodResult]:
    """One row per clustering, computed in this process. ``encoders``: directory of ``train_encoders``."""
    articles = _noisy_articles(gold, level)
    memory_before_mb = _peak_mb()
    started = time.process_time()
    if method in TRAINED_METHODS:
        by_half = [TRAINED_METHODS[method](articles, encoders / half) for half in HALVES]
    else:
        by_half = [METHODS[method](articles)] * 2
    seconds = time.process_time() - started
    memory_mb = _peak_mb() - memory_before_mb
    labels, truth = [item.label for item in gold], merged_labels(gold)
    return [
        MethodResult(
            level.name,
            method,
            clustering,
            **tune_and_score(by_half, clustering, truth, labels),
            seconds=seconds,
            memory_mb=memory_mb,
        )
        for clustering in CLUSTERINGS
    ]


def shares_without_common_ngram(
    gold: Sequence[LabeledArticle], levels: Sequence[NoiseLevel]
) -> dict[str, float]:
    """Return per level the share, 0..1, of the pairs of copies that have no word 10-gram in common.

    Labels as they are: most articles of two merged labels share nothing.
    """
    labels = np.array([item.label for item in gold])
    copies = max(1, pair_count(labels.tolist()))
    shares = {}
    for level in levels:
        sharing = ngrams(_noisy_articles(gold, level), COMMON_NGRAM_WORDS)
        shares[level.name] = 1 - int((labels[sharing.a] == labels[sharing.b]).sum()) / copies
    return shares


def _noisy_articles(gold: Sequence[LabeledArticle], level: NoiseLevel) -> list[Article]:
    articles = [item.article for item in gold]
    return add_noise(articles, level, [article.lang or DEFAULT_LANG for article in articles])


def tune_and_score(
    by_half: Sequence[ScoredPairs], clustering: str, truth: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Measures and thresholds of a ``MethodResult``: tuned on one half, scored on the other, both ways.

    ``by_half``: scores of the method trained on each half; the same twice if it is not trained.
    """
    even = _is_even_cluster(truth)
    thresholds: list[float] = []
    metrics: list[dict[str, float]] = []
    whole_f1 = 0.0
    groups_by_threshold: dict[float, npt.NDArray[np.int64]] = {}
    for half, scored in zip((even, ~even), by_half, strict=True):
        if not thresholds or scored is not by_half[0]:  # scores of trained methods depend on the half
            links = strongest_links(scored, len(truth))
            groups_by_threshold = {t: group_labels(links, clustering, t) for t in THRESHOLDS}
        best = _best_threshold(
            {
                threshold: b_cubed(_select(truth, half), groups[half].tolist())[2]
                for threshold, groups in groups_by_threshold.items()
            }
        )
        if not thresholds:
            whole_f1 = b_cubed(truth, groups_by_threshold[best].tolist())[2]
        thresholds.append(best)
        metrics.append(_half_metrics(truth, labels, groups_by_threshold[best], ~half))
    means = {name: mean(half[name] for half in metrics) for name in metrics[0]}
    return {**means, "thresholds": tuple(thresholds), "whole_b_cubed_f1": whole_f1}


def _best_threshold(f1_by_threshold: Mapping[float, float]) -> float:
    """The threshold with the highest F1; of several the middle one, which is the most robust."""
    highest = max(f1_by_threshold.values())
    best = [threshold for threshold, f1 in f1_by_threshold.items() if f1 >= highest - 1e-9]
    return best[len(best) // 2]


def strongest_links(scored: ScoredPairs, count: int) -> Links:
    """At most ``MAX_LINKS`` pairs with a positive score, highest first."""
    order = np.argsort(-scored.score, kind="stable")[:MAX_LINKS]
    order = order[scored.score[order] > 0]
    return Links(count, scored.a[order], scored.b[order], scored.score[order])


def group_labels(links: Links, clustering: str, threshold: float) -> npt.NDArray[np.int64]:
    """(n,) group labels: union-find over pairs from the threshold on, or a partition of the whole graph."""
    if clustering == "union-find":
        end = int(np.searchsorted(-links.strength, -threshold, side="right"))
        links = Links(links.article_count, links.a[:end], links.b[:end], links.strength[:end])
    split = {"union-find": None, "average": average_linkage, "leiden": _leiden}[clustering]
    return cluster(links, split, threshold, links.article_count).labels


def _leiden(count: int, a: Rows, b: Rows, strength: Floats, threshold: float) -> Rows:
    """Communities by the constant Potts model, with ``threshold`` as the resolution."""
    igraph = import_optional(*IGRAPH)
    # Seeded for each component, so that the result does not depend on their order.
    igraph.set_random_number_generator(random.Random(RANDOM_SEED))
    graph = igraph.Graph(count, np.stack([a, b], 1))
    found = graph.community_leiden(
        objective_function="CPM", weights=strength.tolist(), resolution=threshold, n_iterations=2
    )
    return np.array(found.membership, np.int64)


def _half_metrics(
    truth: Sequence[str], labels: Sequence[str], predicted: npt.NDArray[np.int64], half: npt.NDArray[np.bool_]
) -> dict[str, float]:
    half_truth, groups = _select(truth, half), predicted[half].tolist()
    precision, recall, f1 = pairwise_precision_recall_f1(half_truth, groups)
    sizes = [size for size in Counter(groups).values() if size > 1]
    return {
        "b_cubed_f1": b_cubed(half_truth, groups)[2],
        "adjusted_rand": adjusted_rand(half_truth, groups),
        "adjusted_rand_as_labelled": adjusted_rand(_select(labels, half), groups),
        "pair_precision": precision,
        "pair_recall": recall,
        "pair_f1": f1,
        "mean_group": mean(sizes) if sizes else 0.0,
    }


def pairwise_precision_recall_f1(
    truth: Sequence[str], predicted: Sequence[int]
) -> tuple[float, float, float]:
    """Precision, recall and F1 over pairs of articles in one group."""
    return precision_recall_f1(
        pair_count(zip(truth, predicted, strict=True)), pair_count(predicted), pair_count(truth)
    )


def _is_even_cluster(truth: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(n,) whether the article belongs to the first, third, ... cluster in order of names."""
    numbers = {label: number for number, label in enumerate(sorted(set(truth)))}
    return np.array([numbers[label] % 2 == 0 for label in truth], bool)


def _select(labels: Sequence[str], half: npt.NDArray[np.bool_]) -> list[str]:
    return [label for label, chosen in zip(labels, half.tolist(), strict=True) if chosen]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
