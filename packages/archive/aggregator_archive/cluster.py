"""Clustering of confirmed pairs into duplicate groups: connected components, split again.

A page that quotes two stories would join them, a chain of such pages a whole corpus. So each component is
split by average linkage, and one of over ``cap`` texts is rebuilt from its strongest links up to the cap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aggregator.analysis.shingles import distinct
from aggregator_archive.arrays import Floats, Pairs, Rows, order_pairs, pack_pairs

# (number of articles, a, b, strength, threshold) -> label of each article
SplitFunction = Callable[[int, Rows, Rows, Floats, float], Rows]

ALL_PAIRS_MAX_TEXTS = 1_000  # all pairs of a component of at most this many distinct texts are compared,
ALL_PAIRS_MAX_TOTAL = 1 << 23  # small components first, up to this total (minutes and about 1 GB)


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Links among ``article_count`` articles: rows ``a`` < ``b``, and a strength from 0 to 1 each."""

    article_count: int
    a: Rows
    b: Rows
    strength: Floats


@dataclass(frozen=True, slots=True)
class ComponentCut:
    """A component above the cap: number of articles, number of links cut, strength of the strongest."""

    articles: int
    links_cut: int
    strongest_cut: float


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """Groups. ``labels``: (n,) smallest row of each article's group; ``cuts``: largest component first."""

    labels: Rows
    cuts: tuple[ComponentCut, ...] = ()


def components(links: Links) -> Rows:
    """Connected components: (n,) the smallest row of each article's component. Without links, no import."""
    if np.array_equal(links.a, links.b):
        return np.arange(links.article_count, dtype=np.int64)
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(links.a), np.int8)
    graph = coo_matrix((ones, (links.a, links.b)), shape=(links.article_count, links.article_count))
    return canonical_labels(connected_components(graph, directed=False)[1].astype(np.int64))


def canonical_labels(labels: Rows) -> Rows:
    """Replace labels from 0 up by the smallest row of each group."""
    smallest = np.full(int(labels.max(initial=-1)) + 1, len(labels), np.int64)
    np.minimum.at(smallest, labels, np.arange(len(labels)))
    canonical: Rows = smallest[labels]
    return canonical


def pairs_within_components(labels: Rows, max_rows: int = ALL_PAIRS_MAX_TEXTS) -> Pairs:
    """Ascending pairs of all rows of one label, for labels of 3 to ``max_rows`` rows."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(labels)))
    found = [np.empty(0, np.uint64)]
    remaining = ALL_PAIRS_MAX_TOTAL
    for size in distinct(sizes[(sizes > 2) & (sizes <= max_rows)]).tolist():
        first, second = np.triu_indices(size, 1)
        group_starts = starts[sizes == size][: remaining // len(first)]
        remaining -= len(group_starts) * len(first)
        rows = order[group_starts[:, None] + np.arange(size)]  # ascending within a group
        found.append(pack_pairs(rows[:, first], rows[:, second]).ravel())
    return np.sort(np.concatenate(found))


def cluster(
    links: Links, split: SplitFunction | None, threshold: float, cap: int, weak_links: Links | None = None
) -> Clustering:
    """Group linked articles: connected components, ``split`` further unless it is None.

    ``threshold``: minimum average strength for ``average_linkage``. ``weak_links`` only make a cut
    between their articles less likely.
    """
    uncapped = components(links)
    kept, cuts = _enforce_cap(links, uncapped, cap)
    labels = components(kept) if cuts else uncapped
    if split is None:
        return Clustering(labels, cuts)
    all_links = _with_weak_links(labels, kept, weak_links)
    return Clustering(_split_components(all_links, labels, split, threshold), cuts)


def _with_weak_links(labels: Rows, links: Links, weak_links: Links | None) -> Links:
    """The links, and the weak links between articles of one component."""
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
    """Labels after each component of more than two is split, unless all its links reach ``threshold``."""
    split_labels = labels.copy()
    if not len(links.a):
        return split_labels
    order = np.argsort(labels[links.a], kind="stable")
    owner = labels[links.a][order]
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    ends = np.append(starts[1:], len(owner))
    weakest = np.minimum.reduceat(links.strength[order], starts)
    sizes = np.bincount(labels, minlength=links.article_count)[owner[starts]]
    complete = (ends - starts) == sizes * (sizes - 1) // 2
    to_split = (sizes > 2) & ~(complete & (weakest >= threshold))
    for start, end in np.stack([starts, ends], 1)[to_split].tolist():
        at = order[start:end]
        rows, position = np.unique(np.r_[links.a[at], links.b[at]], return_inverse=True)
        a, b = position[: len(at)], position[len(at) :]
        parts = canonical_labels(split_component(len(rows), a, b, links.strength[at], threshold))
        split_labels[rows] = rows[parts]
    return split_labels


def average_linkage(count: int, a: Rows, b: Rows, strength: Floats, threshold: float) -> Rows:
    """Labels from 0 of ``count`` articles; takes 4 bytes x count^2 of memory."""
    from scipy.cluster.hierarchy import fcluster, linkage

    low, high = order_pairs(a, b)
    distance = np.ones(count * (count - 1) // 2)  # condensed: the upper triangle of the matrix, row by row
    distance[count * low - low * (low + 1) // 2 + high - low - 1] = 1 - strength
    labels: Rows = fcluster(linkage(distance, "average"), 1 - threshold, "distance").astype(np.int64)
    return labels


def _enforce_cap(links: Links, labels: Rows, cap: int) -> tuple[Links, tuple[ComponentCut, ...]]:
    """Remove links so that no component exceeds ``cap`` articles; the links kept, and the cuts."""
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
    """Join by descending strength while no group exceeds the cap; the indexes of links between two groups."""
    parent: dict[int, int] = {}
    size: dict[int, int] = {}

    def root(row: int) -> int:
        while (above := parent.get(row, row)) != row:
            parent[row] = parent.get(above, above)  # path halving
            row = above
        return row

    order = link_indexes[
        np.lexsort((links.b[link_indexes], links.a[link_indexes], -links.strength[link_indexes]))
    ]
    for row_a, row_b in zip(links.a[order].tolist(), links.b[order].tolist(), strict=True):
        a, b = root(row_a), root(row_b)
        if a != b and size.get(a, 1) + size.get(b, 1) <= cap:
            parent[max(a, b)] = min(a, b)
            size[min(a, b)] = size.get(a, 1) + size.get(b, 1)
    between_groups = [
        root(a) != root(b)
        for a, b in zip(links.a[link_indexes].tolist(), links.b[link_indexes].tolist(), strict=True)
    ]
    cut: Rows = link_indexes[np.array(between_groups, bool)]
    return cut
