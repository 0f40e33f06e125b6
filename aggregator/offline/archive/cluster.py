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

from aggregator.offline.archive.optional_imports import needed
from aggregator.offline.archive.pairs import Pairs, packed

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Split = Callable[[int, Rows, Rows, Floats, float], Rows]

DENSE_MAX = 2_000  # average linkage needs all pairs of a component at once
SEED = 20231
WITHIN_MAX = 1_000  # distinct texts of a component whose pairs are all compared ...
WITHIN_PAIRS_MAX = 1 << 23  # ... the smallest components first, up to so many pairs: minutes, and a gigabyte


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Pairs among n articles: rows ``a`` < ``b`` and a strength in 0..1 each."""

    count: int
    a: Rows
    b: Rows
    strength: Floats


@dataclass(frozen=True, slots=True)
class Cut:
    """A component above the cap: its articles, how many links were cut and the strongest of those."""

    articles: int
    links_cut: int
    strongest_cut: float


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """``labels`` (n,) int64: the smallest row of each article's group; ``cuts`` largest component first."""

    labels: Rows
    cuts: tuple[Cut, ...] = ()


def components(links: Links) -> Rows:
    """Union-find over all links: (n,) the smallest row of each component."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(links.a), np.int8)
    graph = coo_matrix((ones, (links.a, links.b)), shape=(links.count, links.count))
    return named(connected_components(graph, directed=False)[1].astype(np.int64))


def named(labels: Rows) -> Rows:
    """Labels of any kind as the smallest row of each group."""
    smallest = np.full(int(labels.max(initial=-1)) + 1, len(labels), np.int64)
    np.minimum.at(smallest, labels, np.arange(len(labels)))
    found: Rows = smallest[labels]
    return found


def within(labels: Rows, most: int = WITHIN_MAX) -> Pairs:
    """Ascending pairs of rows of one label, for labels of 3 to ``most`` rows."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(labels)))
    found = [np.empty(0, np.uint64)]
    left = WITHIN_PAIRS_MAX
    for size in np.unique(sizes[(sizes > 2) & (sizes <= most)]).tolist():
        first, second = np.triu_indices(size, 1)
        some = starts[sizes == size][: left // len(first)]
        left -= len(some) * len(first)
        rows = order[some[:, None] + np.arange(size)]  # ascending in each
        found.append(packed(rows[:, first], rows[:, second]).ravel())
    return np.sort(np.concatenate(found))


def cluster(links: Links, method: str, threshold: float, cap: int, weak: Links | None = None) -> Clustering:
    """Groups of linked articles. ``threshold``: average strength, or resolution; unused by union-find.

    ``weak`` links join nothing, but count when a component is split: between articles that share a little
    the cut is less likely than between those that share nothing.
    """
    whole = components(links)
    kept, cuts = _capped(links, whole, cap)
    labels = components(kept) if cuts else whole
    if method == "union-find":
        return Clustering(labels, cuts)
    split: Split = {"average": _average, "leiden": _leiden, "louvain": _louvain}[method]
    return Clustering(_split(_within(labels, kept, weak), labels, split, threshold), cuts)


def _within(labels: Rows, links: Links, weak: Links | None) -> Links:
    """The links with those weak ones whose two articles are in one component."""
    if weak is None:
        return links
    inside = labels[weak.a] == labels[weak.b]
    return Links(
        links.count,
        np.concatenate([links.a, weak.a[inside]]),
        np.concatenate([links.b, weak.b[inside]]),
        np.concatenate([links.strength, weak.strength[inside]]),
    )


def _split(links: Links, labels: Rows, split: Split, threshold: float) -> Rows:
    """Split every component of more than two articles."""
    found = labels.copy()
    if not len(links.a):
        return found
    order = np.argsort(labels[links.a], kind="stable")
    owner = labels[links.a][order]
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    ends = np.append(starts[1:], len(owner))
    weakest = np.minimum.reduceat(links.strength[order], starts)
    sizes = np.bincount(labels, minlength=links.count)[owner[starts]]
    full = (ends - starts) == sizes * (sizes - 1) // 2
    for start, end in np.stack([starts, ends], 1)[(sizes > 2) & ~(full & (weakest >= threshold))].tolist():
        at = order[start:end]
        rows, place = np.unique(np.r_[links.a[at], links.b[at]], return_inverse=True)
        a, b = place[: len(at)], place[len(at) :]
        found[rows] = rows[named(split(len(rows), a, b, links.strength[at], threshold))]
    return found


def _average(count: int, a: Rows, b: Rows, strength: Floats, threshold: float) -> Rows:
    if count > DENSE_MAX:
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
    igraph = needed("igraph", "corpus", "Community detection")
    igraph.set_random_number_generator(
        random.Random(SEED)
    )  # each component alike, in whatever order they come
    return igraph.Graph(count, np.stack([a, b], 1))


def _capped(links: Links, labels: Rows, cap: int) -> tuple[Links, tuple[Cut, ...]]:
    """The links that are left when no component may exceed ``cap`` articles."""
    sizes = np.bincount(labels, minlength=links.count)
    large = np.flatnonzero(sizes > cap)
    if not len(large):
        return links, ()
    keep = np.ones(len(links.a), bool)
    cuts = []
    for label in large[np.argsort(-sizes[large], kind="stable")].tolist():
        at = np.flatnonzero(labels[links.a] == label)
        cut = _strongest_first(links, at, cap)
        keep[cut] = False
        cuts.append(Cut(int(sizes[label]), len(cut), float(links.strength[cut].max(initial=0.0))))
    return Links(links.count, links.a[keep], links.b[keep], links.strength[keep]), tuple(cuts)


def _strongest_first(links: Links, at: Rows, cap: int) -> Rows:
    """Join by descending strength as long as no group exceeds the cap; the links that remain between groups."""
    parent: dict[int, int] = {}
    size: dict[int, int] = {}

    def root(row: int) -> int:
        while (above := parent.get(row, row)) != row:
            parent[row] = parent.get(above, above)
            row = above
        return row

    order = at[np.lexsort((links.b[at], links.a[at], -links.strength[at]))]
    for a, b in zip(links.a[order].tolist(), links.b[order].tolist(), strict=True):
        a, b = root(a), root(b)
        if a != b and size.get(a, 1) + size.get(b, 1) <= cap:
            parent[max(a, b)] = min(a, b)
            size[min(a, b)] = size.get(a, 1) + size.get(b, 1)
    apart = [root(a) != root(b) for a, b in zip(links.a[at].tolist(), links.b[at].tolist(), strict=True)]
    cut: Rows = at[np.array(apart, bool)]
    return cut
