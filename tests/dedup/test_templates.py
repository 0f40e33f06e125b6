"""Frames: the same sentences about other companies, people and places are other news."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import MAX_TERMS, Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import OverlapEstimate, estimate_overlap
from aggregator.dedup.similarity import cosine
from aggregator.dedup.templates import is_teaser_of, same_template_other_names
from aggregator.dedup.verdict import Policy, is_copy, template_difference
from aggregator.domain import Analysis, Article
from tests.support.template_sentences import FRAMES

ANALYSER = Analyzer(load_models())
WHOLE = OverlapEstimate(containment=0.9, resemblance=0.8, shared=90, size_ratio=1.0)
LONG = OverlapEstimate(containment=0.9, resemblance=0.8, shared=300, size_ratio=1.0, error=0.02)


def analysed(title: str, text: str, lang: str) -> Analysis:
    """As the service analyses an article."""
    return ANALYSER.analyze(Article(id="", title=title, text=text, lang=lang))


def listed(*terms: str) -> tuple[tuple[str, float], ...]:
    """Terms whose weights fall from the first to the last, L2 norm 1."""
    raw = [0.9**place for place in range(len(terms))]
    norm = sum(weight * weight for weight in raw) ** 0.5
    return tuple((term, weight / norm) for term, weight in zip(terms, raw, strict=True))


@pytest.mark.parametrize("name", FRAMES)
def test_one_frame_with_other_names_is_no_copy(name: str) -> None:
    """An agency's sentence about two companies, people, places: in nine languages, sharing all other words."""
    lang, title, text, fillings = FRAMES[name]
    one, other = (analysed(title.format(**f), text.format(**f), lang) for f in fillings)

    assert template_difference(estimate_overlap(one.sketch, other.sketch), one, other) == "names"


@pytest.mark.parametrize("name", FRAMES)
def test_the_frame_with_its_own_names_is_a_copy(name: str) -> None:
    """The same notice, a word or two edited or its last sentence cut, has the names that it had."""
    lang, title, text, fillings = FRAMES[name]
    whole = text.format(**fillings[0])
    cut = whole[: whole.rstrip("。.").rfind("。" if lang in ("zh", "ja") else ".") + 1]
    one, other = (
        analysed(title.format(**fillings[0]), whole, lang),
        analysed(title.format(**fillings[0]), cut, lang),
    )
    overlap = estimate_overlap(one.sketch, other.sketch)

    assert template_difference(overlap, one, other) == ""
    assert is_copy(overlap, cosine(one.terms, other.terms), Policy())


def test_the_heaviest_words_of_long_texts_tell() -> None:
    """Of texts that are only sampled what each is most about must be missing in the other; figures are no names."""
    frame = [f"word{n}" for n in range(12)]
    one, other = listed("alpha", *frame), listed("beta", *frame)

    assert same_template_other_names(LONG, one, other) and same_template_other_names(LONG, other, one)
    assert not same_template_other_names(LONG, one, one)
    assert not same_template_other_names(
        LONG, listed(frame[0], "alpha", *frame[1:]), listed(frame[0], "beta", *frame[1:])
    )
    assert not same_template_other_names(LONG, listed("1200", *frame), listed("1300", *frame))
    assert not same_template_other_names(LONG, one, listed(*frame))  # cut off, not exchanged


def test_of_texts_known_whole_all_their_terms_tell() -> None:
    """Names that are not the heaviest, but much of what is told; a word or two that an editor exchanged are not."""
    frame = [f"word{n}" for n in range(6)]
    one, other = listed(frame[0], "alpha", "ann", *frame[1:]), listed(frame[0], "beta", "ben", *frame[1:])

    assert same_template_other_names(WHOLE, one, other) and not same_template_other_names(LONG, one, other)
    assert not same_template_other_names(
        WHOLE, listed(*frame, "said", "big"), listed(*frame, "told", "large")
    )


def test_a_term_too_light_for_a_full_list_is_not_missing() -> None:
    """What each list leaves out, because it is full, says nothing about the text."""
    shared = [f"word{n}" for n in range(4)]
    level = [(f"a{n}", 0.2) for n in range(MAX_TERMS - 4)], [(f"b{n}", 0.2) for n in range(MAX_TERMS - 4)]
    one, other = ([(word, 0.22) for word in shared] + rest for rest in level)

    assert not same_template_other_names(WHOLE, one, other)
    assert same_template_other_names(WHOLE, one[:-1], other[:-1])  # lists that are not full leave nothing out


def test_other_lengths_are_no_frame() -> None:
    """What was cut or padded, and what shares every shingle, has no names exchanged."""
    for overlap in (
        OverlapEstimate(0.9, 0.7, 90, size_ratio=0.79),
        OverlapEstimate(1.0, 0.9, 90, size_ratio=0.9),
    ):
        assert not same_template_other_names(overlap, listed("alpha"), listed("beta"))


@given(st.floats(1, 5_000), st.floats(1, 20_000))
def test_a_teaser_of_a_story_is_one_of_a_longer_story_too(shingles: float, longer: float) -> None:
    """Without a step: a little more of the story never makes a copy of it again, nor does a shorter teaser."""
    if is_teaser_of(shingles, longer):
        assert is_teaser_of(shingles, longer * 1.1) and is_teaser_of(shingles * 0.9, longer)
        assert shingles < 0.4 * longer
    elif shingles < 0.15 * longer and shingles <= 100:
        pytest.fail("a story seven times as long as a notice of a hundred words has more to tell")
