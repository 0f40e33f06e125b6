"""Clustering of links: components, splits, the cap."""

import numpy as np

from aggregator_archive.cluster import (
    Links,
    average_linkage,
    canonical_labels,
    cluster,
    components,
    pairs_within_components,
)


def links(count: int, *edges: tuple[int, int, float]) -> Links:
    """Links among ``count`` articles from (row, row, strength) tuples."""
    a, b, strength = (np.array(column) for column in zip(*edges, strict=True))
    return Links(count, a, b, strength.astype(float))


def two_groups(bridge: float) -> Links:
    """Two cliques of five with one link between them, and an article without links."""
    cliques = [
        (i, j, 0.9) for start in (0, 5) for i in range(start, start + 5) for j in range(i + 1, start + 5)
    ]
    return links(11, *cliques, (4, 5, bridge))


def test_union_find_follows_every_link() -> None:
    """One bridge joins both cliques; an article without links stays alone."""
    assert cluster(two_groups(0.2), None, 0.1, 100).labels.tolist() == [0] * 10 + [10]


def test_a_single_bridge_does_not_join_two_groups() -> None:
    """Average linkage splits the component at the bridge."""
    found = cluster(two_groups(0.2), average_linkage, 0.1, 100)

    assert found.labels.tolist() == [0] * 5 + [5] * 5 + [10]
    assert found.cuts == ()


def test_no_group_exceeds_the_cap_and_the_weakest_links_are_cut() -> None:
    """The strongest links are followed up to the cap; the cut is reported."""
    found = cluster(two_groups(0.2), None, 0.1, 5)

    assert found.labels.tolist() == [0] * 5 + [5] * 5 + [10]
    assert [(cut.articles, cut.links_cut, cut.strongest_cut) for cut in found.cuts] == [(10, 1, 0.2)]


def test_groups_do_not_depend_on_the_order_of_the_links() -> None:
    """Shuffled links give the same groups."""
    whole = two_groups(0.2)
    order = np.random.default_rng(1).permutation(len(whole.a))
    shuffled = Links(whole.article_count, whole.a[order], whole.b[order], whole.strength[order])

    for split in (None, average_linkage):
        assert (
            cluster(whole, split, 0.1, 5).labels.tolist() == cluster(shuffled, split, 0.1, 5).labels.tolist()
        )


def test_empty_input() -> None:
    """No articles have no groups; without links each article is alone."""
    assert canonical_labels(np.empty(0, np.int64)).tolist() == []
    no_rows = np.empty(0, np.int64)
    assert components(Links(3, no_rows, no_rows, np.empty(0))).tolist() == [0, 1, 2]


def test_weak_links_join_nothing_but_hold_a_component_together() -> None:
    """Two cliques with a bridge stay one group if all their articles share a little."""
    all_weak = [(i, j, 0.3) for i in range(5) for j in range(5, 11) if (i, j) != (4, 5)]
    found = cluster(two_groups(0.5), average_linkage, 0.25, 100, links(11, *all_weak))

    assert cluster(two_groups(0.5), average_linkage, 0.25, 100).labels.tolist() == [0] * 5 + [5] * 5 + [10]
    assert found.labels.tolist() == [0] * 10 + [10]


def test_all_pairs_within_a_component_are_returned_once() -> None:
    """Components of two articles, and components above the limit, are skipped."""
    labels = np.array([0, 1, 0, 1, 0, 5, 6, 6, 6, 6])
    found = pairs_within_components(labels, 3)

    assert [(int(pair) >> 32, int(pair) & 0xFFFFFFFF) for pair in found] == [(0, 2), (0, 4), (2, 4)]
    assert len(pairs_within_components(labels, 4)) == 3 + 6
    assert len(pairs_within_components(labels[:0])) == 0
