"""Which confirmed pairs make one group?

Following every link (union-find) lets one page that quotes two stories join them, and a chain of such pages
swallow a corpus. So components are looked at again: ``average`` splits each by average linkage of resemblance,
``leiden`` (constant Potts model) and ``louvain`` by community detection (igraph, an extra). No group exceeds
``cap`` distinct texts: a larger component is rebuilt from its strongest links until the cap, and what was cut is
reported.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.optional_imports import import_optional
from aggregator.offline.archive.pairs import Pairs, pack_pairs

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SplitFunction = Callable[[int, Rows, Rows, Floats, float], Rows]

AVERAGE_LINKAGE_MAX_TEXTS = 2_000  # average linkage needs all pairs of a component at once
RANDOM_SEED = 20231
ALL_PAIRS_MAX_TEXTS = 1_000  # distinct texts of a component whose pairs are all compared ...
ALL_PAIRS_MAX_TOTAL = (
    1 << 23
)  # ... the smallest components first, up to so many pairs: minutes, and a gigabyte


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Pairs among n articles: rows ``a`` < ``b`` and a strength in 0..1 each."""

    article_count: int
    a: Rows
    b: Rows
    strength: Floats


@dataclass(frozen=True, slots=True)
class ComponentCut:
    """A component above the cap: its articles, how many links were cut and the strongest of those."""

    articles: int
    links_cut: int
    strongest_cut: float


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """``labels`` (n,) int64: the smallest row of each article's group; ``cuts`` largest component first."""

    labels: Rows
    cuts: tuple[ComponentCut, ...] = ()


def components(links: Links) -> Rows:
    """Union-find over all links: (n,) the smallest row of each component."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(links.a), np.int8)
    graph = coo_matrix((ones, (links.a, links.b)), shape=(links.article_count, links.article_count))
    return canonical_labels(connected_components(graph, directed=False)[1].astype(np.int64))


def canonical_labels(labels: Rows) -> Rows:
    """Labels of any kind as the smallest row of each group."""
    smallest = np.full(int(labels.max(initial=-1)) + 1, len(labels), np.int64)
    np.minimum.at(smallest, labels, np.arange(len(labels)))
    found: Rows = smallest[labels]
    return found


def pairs_within_components(labels: Rows, max_rows: int = ALL_PAIRS_MAX_TEXTS) -> Pairs:
    """Ascending pairs of rows of one label, for labels of 3 to ``most`` rows."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(labels)))
    found = [np.empty(0, np.uint64)]
    left = ALL_PAIRS_MAX_TOTAL
    for size in np.unique(sizes[(sizes > 2) & (sizes <= max_rows)]).tolist():
        first, second = np.triu_indices(size, 1)
        some = starts[sizes == size][: left // len(first)]
        left -= len(some) * len(first)
        rows = order[some[:, None] + np.arange(size)]  # ascending in each
        found.append(pack_pairs(rows[:, first], rows[:, second]).ravel())
    return np.sort(np.concatenate(found))


def cluster(
    links: Links, method: str, threshold: float, cap: int, weak_links: Links | None = None
) -> Clustering:
    """Groups of linked articles. ``threshold``: average strength, or resolution; unused by union-find.

    ``weak`` links join nothing, but count when a component is split: between articles that share a little
    the cut is less likely than between those that share nothing.
    """
    whole = components(links)
    kept, cuts = _enforce_cap(links, whole, cap)
    labels = components(kept) if cuts else whole
    if method == "union-find":
        return Clustering(labels, cuts)
    split: SplitFunction = {"average": _average_linkage, "leiden": _leiden, "louvain": _louvain}[method]
    return Clustering(
        _split_components(_with_weak_links(labels, kept, weak_links), labels, split, threshold), cuts
    )


def _with_weak_links(labels: Rows, links: Links, weak_links: Links | None) -> Links:
    """The links with those weak ones whose two articles are in one component."""
    if weak_links is None:
        return links
    inside = labels[weak_links.a] == labels[weak_links.b]
    return Links(
        links.article_count,
        np.concatenate([links.a, weak_links.a[inside]]),
        np.concatenate([links.b, weak_links.b[inside]]),
        np.concatenate([links.strength, weak_links.strength[inside]]),
    )


def _split_components(links: Links, labels: Rows, split_component: SplitFunction, threshold: float) -> Rows:
    """Split every component of more than two articles."""
    found = labels.copy()
    if not len(links.a):
        return found
    order = np.argsort(labels[links.a], kind="stable")
    owner = labels[links.a][order]
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    ends = np.append(starts[1:], len(owner))
    weakest = np.minimum.reduceat(links.strength[order], starts)
    sizes = np.bincount(labels, minlength=links.article_count)[owner[starts]]
    full = (ends - starts) == sizes * (sizes - 1) // 2
    for start, end in np.stack([starts, ends], 1)[(sizes > 2) & ~(full & (weakest >= threshold))].tolist():
        at = order[start:end]
        rows, place = np.unique(np.r_[links.a[at], links.b[at]], return_inverse=True)
        a, b = place[: len(at)], place[len(at) :]
        found[rows] = rows[canonical_labels(split_component(len(rows), a, b, links.strength[at], threshold))]
    return found


def _average_linkage(count: int, a: Rows, b: Rows, strength: Floats, threshold: float) -> Rows:
    if count > AVERAGE_LINKAGE_MAX_TEXTS:
        return _leiden(count, a, b, strength, threshold)
    from scipy.cluster.hierarchy import fcluster, linkage

    low, high = np.minimum(a, b), np.maximum(a, b)
    distance = np.ones(count * (count - 1) // 2)
    distance[count * low - low * (low + 1) // 2 + high - low - 1] = 1 - strength
    found: Rows = fcluster(linkage(distance, "average"), 1 - threshold, "distance").astype(np.int64)
    return found


def _leiden(count: int, a: Rows, b: Rows, strength: Floats, threshold: float) -> Rows:
    found = _graph(count, a, b).community_leiden(
        objective_function="CPM", weights=strength.tolist(), resolution=threshold, n_iterations=2
    )
    return np.array(found.membership, np.int64)


def _louvain(count: int, a: Rows, b: Rows, strength: Floats, threshold: float) -> Rows:
    return np.array(_graph(count, a, b).community_multilevel(weights=strength.tolist()).membership, np.int64)


def _graph(count: int, a: Rows, b: Rows) -> Any:
    igraph = import_optional("igraph", "corpus", "Community detection")
    igraph.set_random_number_generator(
        random.Random(RANDOM_SEED)
    )  # each component alike, in whatever order they come
    return igraph.Graph(count, np.stack([a, b], 1))


def _enforce_cap(links: Links, labels: Rows, cap: int) -> tuple[Links, tuple[ComponentCut, ...]]:
    """The links that are left when no component may exceed ``cap`` articles."""
    sizes = np.bincount(labels, minlength=links.article_count)
    large = np.flatnonzero(sizes > cap)
    if not len(large):
        return links, ()
    keep = np.ones(len(links.a), bool)
    cuts = []
    for label in large[np.argsort(-sizes[large], kind="stable")].tolist():
        at = np.flatnonzero(labels[links.a] == label)
        cut = _links_over_cap(links, at, cap)
        keep[cut] = False
        cuts.append(ComponentCut(int(sizes[label]), len(cut), float(links.strength[cut].max(initial=0.0))))
    return Links(links.article_count, links.a[keep], links.b[keep], links.strength[keep]), tuple(cuts)


def _links_over_cap(links: Links, link_indexes: Rows, cap: int) -> Rows:
    """Join by descending strength as long as no group exceeds the cap; the links that remain between groups."""
    parent: dict[int, int] = {}
    size: dict[int, int] = {}

    def root(row: int) -> int:
        while (above := parent.get(row, row)) != row:
            parent[row] = parent.get(above, above)
            row = above
        return row

    order = link_indexes[
        np.lexsort((links.b[link_indexes], links.a[link_indexes], -links.strength[link_indexes]))
    ]
    for a, b in zip(links.a[order].tolist(), links.b[order].tolist(), strict=True):
        a, b = root(a), root(b)
        if a != b and size.get(a, 1) + size.get(b, 1) <= cap:
            parent[max(a, b)] = min(a, b)
            size[min(a, b)] = size.get(a, 1) + size.get(b, 1)
    apart = [
        root(a) != root(b)
        for a, b in zip(links.a[link_indexes].tolist(), links.b[link_indexes].tolist(), strict=True)
    ]
    cut: Rows = link_indexes[np.array(apart, bool)]
    return cut
