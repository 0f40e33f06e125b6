"""Boilerplate of an outlet, estimated from the candidates of an article."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import (
    IGNORED_LOW_BITS,
    OverlapEstimate,
    build_sketch,
    estimate_overlap,
    estimate_overlaps,
)
from aggregator.dedup.boilerplate import (
    MIN_ARTICLES,
    SAME_TEXT_RESEMBLANCE,
    SourceBoilerplate,
    boilerplate_mask,
    common_shares,
    distinct_texts,
    without_hashes,
)
from aggregator.dedup.policy import Policy
from aggregator.domain import NO_SKETCH, Sketch

FOOTER = [f"more{n}" for n in range(40)]


def page(story: int, words: int = 30) -> Sketch:
    """Return the sketch of a page: a story of this number, and the footer of the site."""
    return build_sketch([f"story{story}word{n}" for n in range(words)] + FOOTER)


def sketch_of(hashes: list[int]) -> Sketch:
    """Return a sketch with these numbers as its sample; pairs of them are equal in their compared part."""
    sample = np.array(hashes, np.uint32) << np.uint32(IGNORED_LOW_BITS - 1)
    return Sketch(2 * len(hashes), sample, np.zeros(len(hashes), np.uint8))


def test_a_footer_is_boilerplate_from_the_fourth_page_on() -> None:
    """The shingles within the footer count as boilerplate, those of the story do not."""
    subject = page(0)

    assert not boilerplate_mask(subject, [page(n) for n in range(1, MIN_ARTICLES)]).any()
    mask = boilerplate_mask(subject, [page(n) for n in range(1, MIN_ARTICLES + 1)])
    assert mask.sum() == len(FOOTER) - 2
    own, other = without_hashes([subject, page(1)], subject.sample[mask])
    assert own.size == subject.size - mask.sum()
    assert estimate_overlap(own, other).containment == 0


def test_a_copy_stays_a_copy_without_boilerplate() -> None:
    """What remains of two copies is the story, which both have."""
    subject, copy = page(0), page(0)
    mask = boilerplate_mask(subject, [page(n) for n in range(1, 5)])

    overlap = estimate_overlap(*without_hashes([subject, copy], subject.sample[mask]))
    assert overlap.containment == 1.0
    shares = common_shares(subject, [copy, page(1), build_sketch(["other"])], mask)
    assert 0 < shares[0] < 1
    assert shares[1:] == [1, 0]


def test_copies_of_one_text_are_not_boilerplate() -> None:
    """A text that the outlet sends again and again counts once, and so does one with another last word."""
    sketches = [page(1), page(1), page(1, words=31), page(2)]

    assert distinct_texts(sketches) == [sketches[0], sketches[3]]
    assert [o.containment for o in remaining_overlaps(page(1), [page(1)] * 4)] == [1.0] * 4


@given(
    st.lists(
        st.integers(0, 3).flatmap(lambda story: st.tuples(st.just(story), st.integers(20, 40))), max_size=9
    )
)
def test_nearly_equal_texts_are_those_of_a_plain_comparison(pages: list[tuple[int, int]]) -> None:
    """The first of each group, compared one by one; hashes that several have, counted one by one."""
    sketches = [page(story, words) for story, words in pages]
    distinct: list[Sketch] = []
    for sketch in sketches:
        if all(estimate_overlap(sketch, other).resemblance < SAME_TEXT_RESEMBLANCE for other in distinct):
            distinct.append(sketch)
    assert distinct_texts(sketches) == distinct

    subject = page(0)
    known = [set((sketch.sample >> IGNORED_LOW_BITS).tolist()) for sketch in sketches]
    expected = [
        sum(value in values for values in known) >= MIN_ARTICLES
        for value in (subject.sample >> IGNORED_LOW_BITS).tolist()
    ]
    assert boilerplate_mask(subject, sketches).tolist() == expected


@given(
    st.lists(st.lists(st.integers(0, 60), unique=True, max_size=40).map(sorted).map(sketch_of), max_size=5),
    st.lists(st.integers(0, 60), unique=True, max_size=40).map(sorted),
)
def test_hashes_are_removed_and_counted_as_one_by_one(others: list[Sketch], hashes: list[int]) -> None:
    """Of several texts at once as of each: also of hashes that are equal in their compared part."""
    subject = sketch_of(hashes)
    mask = np.arange(len(hashes)) % 3 == 0
    removed = subject.sample[mask]
    removed_values = set((removed >> IGNORED_LOW_BITS).tolist())
    for other, rest in zip(others, without_hashes(others, removed), strict=True):
        kept = [value for value in other.sample.tolist() if value >> IGNORED_LOW_BITS not in removed_values]
        assert rest.sample.tolist() == kept
        assert rest.size == round(other.size * len(kept) / max(1, len(other.sample)))
    expected = []
    for other in others:
        known = set((other.sample >> IGNORED_LOW_BITS).tolist())
        common = [value in known for value in (subject.sample >> IGNORED_LOW_BITS).tolist()]
        expected.append(sum(np.array(common, np.bool_) & mask) / max(1, sum(common)))
    assert common_shares(subject, others, mask) == expected


def test_articles_about_something_else_show_the_boilerplate_of_their_outlet() -> None:
    """Three pages with one footer; the same footer at another outlet is kept."""
    pages = [page(n) for n in range(1, 5)]

    assert [o.containment for o in remaining_overlaps(page(0), pages)] == [0.0] * 4
    assert remaining_overlaps(page(0), pages[:2])[0].containment > 0.5


def remaining_overlaps(subject: Sketch, stored: list[Sketch]) -> list[OverlapEstimate]:
    """Overlaps of a page that begins otherwise with stored pages of one outlet, without boilerplate."""
    overlaps = [replace(overlap, opening=0.0) for overlap in estimate_overlaps(subject, stored)]
    sources = SourceBoilerplate(subject, "", [("Site", sketch) for sketch in stored], overlaps, Policy())
    return [sources.remove_from(i)[0] for i in range(len(stored))]


@pytest.mark.parametrize(
    ("source", "containment", "own_source", "is_removed"),
    [
        ("", 0.9, "", False),
        ("site", 0.1, "", False),
        ("site", 0.5, "", True),
        ("site", 0.5, "Site", False),
        ("site", 0.7, "Site", True),
    ],
)
def test_an_overlap_that_cannot_matter_is_returned_as_it_is(
    source: str, containment: float, own_source: str, is_removed: bool
) -> None:
    """An unknown source has no boilerplate; a pair that no requirement allows cannot be a copy."""
    pages = [page(n) for n in range(1, 6)]
    overlap = OverlapEstimate(containment, 0.1, 60)
    stored = [(source, p) for p in pages]
    sources = SourceBoilerplate(page(0), own_source, stored, [overlap] * len(pages), Policy())

    assert (sources.remove_from(0) != (overlap, 0.0)) is is_removed


def test_empty_sketches_have_no_boilerplate() -> None:
    """Articles without sketches (fingerprints only) are left alone."""
    assert distinct_texts([NO_SKETCH, NO_SKETCH]) == [NO_SKETCH, NO_SKETCH]
    assert not len(boilerplate_mask(NO_SKETCH, [page(n) for n in range(4)]))
    removed = page(0).sample
    assert without_hashes([NO_SKETCH, page(0)], removed)[0] is NO_SKETCH
    assert without_hashes([NO_SKETCH], removed) == [NO_SKETCH]
    assert common_shares(NO_SKETCH, [page(1)], np.zeros(0, np.bool_)) == [0]
