"""Shingle sketches: what they sample, and how well they estimate overlap."""

import random

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from aggregator.analysis.shingles import (
    FULL_SAMPLE_SHINGLES,
    MAX_SAMPLE_SIZE,
    MAX_SKETCH_KEYS,
    OPENING_CHARACTERS,
    OPENING_WORDS,
    SHINGLE_WORDS,
    build_sketch,
    distinct,
    estimate_overlap,
    estimate_overlaps,
    sample_size,
    sketch_keys,
    sketch_of_word_hashes,
    word_hash,
)
from aggregator.domain import HEADLINE_MARK, OPENING_MARK, POSITIONS, Sketch
from aggregator_lab.evaluation.shingling import shingle_hashes

word_lists = st.lists(st.sampled_from([f"w{i}" for i in range(60)]), max_size=120)


def prose(seed: int, length: int) -> list[str]:
    """Return the words of a made-up text with almost no repetitions."""
    rng = random.Random(seed)
    return [f"t{rng.randrange(50_000)}" for _ in range(length)]


def test_golden_hashes() -> None:
    """Stored hashes must never change."""
    assert [
        f"{h:016x}" for h in shingle_hashes(["the", "ferry", "left", "the", "old", "harbour"]).tolist()
    ] == GOLDEN
    assert build_sketch(["the", "ferry", "left", "the", "old", "harbour"]).sample.tolist() == [
        int(g[:8], 16) for g in GOLDEN
    ]


GOLDEN = ["2a43ddb72bff01ff", "886f387d122d07c9", "9edc1475df89ffcf", "d8e405eb81bf2e50"]


@given(word_lists)
def test_shingles_are_sorted_and_distinct(words: list[str]) -> None:
    """One hash per distinct run of three words; a shorter text is one shingle."""
    hashes = shingle_hashes(words)

    runs = {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))} if words else set()
    assert len(hashes) == len(runs)
    assert np.all(hashes[:-1] < hashes[1:])


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint32])
@given(values=st.lists(st.integers(0, 2**31), max_size=30), repeats=st.integers(1, 3))
def test_each_value_is_kept_once_in_order(dtype: type, values: list[int], repeats: int) -> None:
    """As ``sorted(set(...))`` gives, with the type of the array."""
    found: np.ndarray = distinct(np.array(values * repeats, dtype))

    assert found.tolist() == sorted(set(values))
    assert found.dtype == dtype


def test_order_of_words_matters() -> None:
    """A shingle is a sequence, not a set."""
    assert shingle_hashes(["a", "b", "c"]).tolist() != shingle_hashes(["c", "b", "a"]).tolist()


@pytest.mark.parametrize(
    ("shingles", "kept"), [(0, 0), (1, 1), (128, 128), (129, 128), (136, 129), (10**6, 512)]
)
def test_sample_size(shingles: int, kept: int) -> None:
    """All shingles of short texts, a decreasing share of long ones, at most the maximum."""
    assert sample_size(shingles) == kept
    assert sample_size(shingles) <= max(FULL_SAMPLE_SHINGLES, MAX_SAMPLE_SIZE)


@given(word_lists, word_lists)
def test_overlap_is_symmetric_and_bounded(a: list[str], b: list[str]) -> None:
    """The estimate does not depend on the order of the texts, and stays within its ranges."""
    overlap, reverse = (
        estimate_overlap(build_sketch(a), build_sketch(b)),
        estimate_overlap(build_sketch(b), build_sketch(a)),
    )

    assert overlap == reverse
    assert 0.0 <= overlap.resemblance <= overlap.containment <= 1.0
    assert 0.0 <= overlap.common_opening <= overlap.opening <= 1.0
    assert overlap.shared <= min(build_sketch(a).size, build_sketch(b).size)


@given(word_lists, word_lists)
def test_short_texts_are_compared_exactly(a: list[str], b: list[str]) -> None:
    """Up to the full-sample size the estimate is exact."""
    first, second = set(shingle_hashes(a[:90]).tolist()), set(shingle_hashes(b[:90]).tolist())
    found = estimate_overlap(build_sketch(a[:90]), build_sketch(b[:90]))

    smaller = min(len(first), len(second))
    assert found.containment == (len(first & second) / smaller if smaller else 0.0)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_estimate_of_long_texts(share: float) -> None:
    """For texts of 600 words the estimated containment is within 0.12 of the true one."""
    for seed in range(10):
        common = prose(seed, 600)
        a = common[: int(600 * share)] + prose(seed + 100, 600 - int(600 * share))
        truth = len(np.intersect1d(shingle_hashes(a), shingle_hashes(common))) / 598

        assert abs(estimate_overlap(build_sketch(a), build_sketch(common)).containment - truth) < 0.12


def test_a_short_text_inside_a_long_one() -> None:
    """A newswire story of 120 words quoted by a page of 2,000 words is recognized."""
    story = prose(1, 120)
    page = prose(2, 1000) + story + prose(3, 880)

    assert estimate_overlap(build_sketch(story), build_sketch(page)).containment > 0.6


def test_a_quotation_opens_one_text_only_and_a_copy_begins_like_its_original() -> None:
    """What is in both openings differs from what one opening shares with the whole other text."""
    quotation, report = [f"quoted{n}" for n in range(60)], [f"report{n}" for n in range(120)]
    statement = build_sketch(quotation + [f"comment{n}" for n in range(60)])
    quoting = build_sketch(report + quotation)

    found = estimate_overlap(statement, quoting)
    assert found.opening > 0.7 and found.common_opening == 0.0
    cut = estimate_overlap(build_sketch(report), quoting)
    assert cut.opening == cut.common_opening == 1.0


@given(st.lists(st.integers(0, 200), min_size=1, max_size=600), st.integers(1, 7))
def test_marks_tell_where_a_shingle_first_occurs(numbers: list[int], width: int) -> None:
    """In 64ths of the text; the opening ends with its words."""
    words = [f"w{n}" for n in numbers]
    sketch = build_sketch(words, width)
    runs = [tuple(words[i : i + width]) for i in range(max(1, len(words) - width + 1))]
    sampled = {int(build_sketch(run, width).sample[0]): runs.index(run) for run in runs}
    opening = (OPENING_WORDS if width == SHINGLE_WORDS else OPENING_CHARACTERS) - min(width, len(words))

    assert sketch.marks.dtype == np.uint8 and len(sketch.marks) == len(sketch.sample)
    for value, mark in zip(sketch.sample.tolist(), sketch.marks.tolist(), strict=True):
        assert mark % POSITIONS == sampled[value] * POSITIONS // len(runs)
        assert bool(mark & OPENING_MARK) is (sampled[value] <= opening)
        assert not mark & HEADLINE_MARK


@pytest.mark.parametrize("width", [3, 7])
def test_shingles_with_a_term_of_the_headline_are_marked(width: int) -> None:
    """All that include one of its words, at the ends of the text too."""
    words = np.array([word_hash(f"w{n}") for n in range(60)], np.uint64)
    is_term = np.zeros(60, np.bool_)
    is_term[[0, 30, 59]] = True
    marks = sketch_of_word_hashes(words, width, is_term).marks

    assert ((marks & HEADLINE_MARK) != 0).sum() == 1 + width + 1
    assert not (sketch_of_word_hashes(words, width, ~(is_term | True)).marks & HEADLINE_MARK).any()


def test_a_truncated_copy_shares_a_sketch_key() -> None:
    """The first third of a text nearly always has a sketch key in common with the whole."""
    matching = sum(
        bool(set(sketch_keys(build_sketch(text))) & set(sketch_keys(build_sketch(text[:150]))))
        for text in (prose(seed, 450) for seed in range(100))
    )

    assert matching >= 88
    assert len(sketch_keys(build_sketch(prose(1, 450)))) == MAX_SKETCH_KEYS


def naive_overlap(a: Sketch, b: Sketch) -> tuple[float, float, float, float, float]:
    """Containment, resemblance, shared, opening and common opening, one pair at a time, with sets."""
    limit = min(int(s.sample[-1]) | 0xFFF if len(s.sample) < s.size else 2**32 - 1 for s in (a, b))
    in_a, in_b = ([h >> 12 for h in s.sample.tolist() if h <= limit] for s in (a, b))
    assume(len(in_a) == len({*in_a}) and len(in_b) == len({*in_b}))  # no two shortened hashes are equal
    opening_a, opening_b = ({*s} & {h >> 12 for h in o} for s, o in (
        (in_a, a.sample[a.opening].tolist()), (in_b, b.sample[b.opening].tolist())
    ))  # fmt: skip
    common = {*in_a} & {*in_b}
    if not common:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    containment = min(1.0, len(common) / len(in_a if a.size <= b.size else in_b))
    resemblance = len(common) / len({*in_a} | {*in_b})
    opening = max(len(common & own) / max(1, len(own)) for own in (opening_a, opening_b))
    smaller = max(1, min(len(opening_a), len(opening_b)))
    common_opening = len(opening_a & opening_b) / smaller
    return containment, resemblance, containment * min(a.size, b.size), opening, common_opening


@given(word_lists.filter(bool), word_lists.filter(bool), st.integers(0, 900), st.integers(0, 900))
def test_the_vectorized_estimate_equals_the_naive_one(
    own: list[str], other: list[str], kept: int, added: int
) -> None:
    """Of short texts, which are sampled completely, and of long ones, of which a part is sampled."""
    first = build_sketch(own + prose(1, 900)[:kept])
    second = build_sketch(prose(1, 900)[:added] + other)

    found = estimate_overlap(first, second)

    fields = found.containment, found.resemblance, found.shared, found.opening, found.common_opening
    assert fields == pytest.approx(naive_overlap(first, second))


@given(word_lists, st.lists(word_lists, max_size=6), st.floats(0, 1))
@example(prose(1, 40), [prose(1, 40), prose(1, 20)], 5e-324)  # the least number above 0
def test_many_comparisons_equal_single_ones(
    own: list[str], others: list[list[str]], min_containment: float
) -> None:
    """The vectorized comparison gives the same; below ``min_containment`` it gives no overlap."""
    sketches = [build_sketch(words) for words in others]
    single = [estimate_overlap(build_sketch(own), sketch) for sketch in sketches]
    nothing = estimate_overlap(build_sketch([]), build_sketch([]))

    assert estimate_overlaps(build_sketch(own), sketches) == single
    assert estimate_overlaps(build_sketch(own), sketches, min_containment) == [
        estimate if estimate.containment >= min_containment else nothing for estimate in single
    ]


def test_empty_sketches() -> None:
    """An empty sketch overlaps with nothing."""
    empty = build_sketch([])

    assert sketch_keys(empty) == ()
    assert estimate_overlap(empty, empty).containment == 0.0
    assert estimate_overlap(empty, build_sketch(prose(1, 50))).shared == 0.0


def test_the_standard_error_of_an_estimate() -> None:
    """Short texts are exact; most estimates for longer ones are within two standard errors."""
    exact = estimate_overlap(build_sketch(prose(1, 100)), build_sketch(prose(1, 100)[:60] + prose(2, 40)))
    assert 0 < exact.containment < 1 and exact.error == 0.0

    within = []
    for seed in range(60):
        first = prose(seed, 900)
        second = first[:225] + prose(seed + 1000, 675)
        true = len(np.intersect1d(shingle_hashes(first), shingle_hashes(second))) / 898
        found = estimate_overlap(build_sketch(first), build_sketch(second))
        assert 0.015 < found.error < 0.045
        within.append(abs(found.containment - true) <= 2 * found.error)
    assert sum(within) >= 54
