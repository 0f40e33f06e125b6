"""Fillings of one template: other names, other figures."""

from __future__ import annotations

import pytest

from aggregator.analysis.analyzer import MAX_TERMS, Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import OverlapEstimate, estimate_overlap
from aggregator.dedup.templates import exchange_names, exchanged
from aggregator.domain import Analysis, Article
from tests.support.pair_evidence import are_copies
from tests.support.template_sentences import TEMPLATES

ANALYZER = Analyzer(load_models())
COMPLETE_SAMPLE = OverlapEstimate(containment=0.9, resemblance=0.8, shared=90, size_ratio=1.0)
INCOMPLETE_SAMPLE = OverlapEstimate(containment=0.89, resemblance=0.8, shared=300, size_ratio=1.0, error=0.02)


def analyze(title: str, text: str, lang: str) -> Analysis:
    """Return the analysis of an article, as the service computes it."""
    return ANALYZER.analyze(Article(id="", title=title, text=text, lang=lang))


def weighted(*terms: str) -> tuple[tuple[str, float], ...]:
    """Return terms with weights that decrease from the first to the last, L2 norm 1."""
    raw = [0.9**place for place in range(len(terms))]
    norm = sum(weight * weight for weight in raw) ** 0.5
    return tuple((term, weight / norm) for term, weight in zip(terms, raw, strict=True))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_with_other_names_is_not_a_duplicate(name: str) -> None:
    """Agency sentences about two companies, people or places that share all other words."""
    lang, title, text, fillings = TEMPLATES[name]
    first, second = (analyze(title.format(**f), text.format(**f), lang) for f in fillings)

    assert exchanged(estimate_overlap(first.sketch, second.sketch), first, second) == "names"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_with_the_same_names_is_a_duplicate(name: str) -> None:
    """The notice without its last sentence keeps its names."""
    lang, title, text, fillings = TEMPLATES[name]
    whole = text.format(**fillings[0])
    cut = whole[: whole.rstrip("。.").rfind("。" if lang in ("zh", "ja") else ".") + 1]
    first, second = (
        analyze(title.format(**fillings[0]), whole, lang),
        analyze(title.format(**fillings[0]), cut, lang),
    )
    overlap = estimate_overlap(first.sketch, second.sketch)

    assert not exchanged(overlap, first, second)
    assert are_copies(first, second)


def test_long_texts_must_differ_in_their_top_terms() -> None:
    """With incomplete samples the top terms of each must be missing in the other; figures are not names."""
    template = [f"word{n}" for n in range(12)]
    first, second = weighted("alpha", *template), weighted("beta", *template)

    assert exchange_names(INCOMPLETE_SAMPLE, first, second)
    assert exchange_names(INCOMPLETE_SAMPLE, second, first)
    assert not exchange_names(INCOMPLETE_SAMPLE, first, first)
    assert not exchange_names(
        INCOMPLETE_SAMPLE,
        weighted(template[0], "alpha", *template[1:]),
        weighted(template[0], "beta", *template[1:]),
    )
    assert not exchange_names(INCOMPLETE_SAMPLE, weighted("1200", *template), weighted("1300", *template))
    # A name that is missing was cut off, not exchanged.
    assert not exchange_names(INCOMPLETE_SAMPLE, first, weighted(*template))


def test_completely_sampled_texts_are_compared_by_all_terms() -> None:
    """Other names need not be the top terms; a word or two that an editor replaced are not enough."""
    template = [f"word{n}" for n in range(6)]
    first, second = (
        weighted(template[0], "alpha", "ann", *template[1:]),
        weighted(template[0], "beta", "ben", *template[1:]),
    )

    assert exchange_names(COMPLETE_SAMPLE, first, second)
    assert not exchange_names(INCOMPLETE_SAMPLE, first, second)
    assert not exchange_names(
        COMPLETE_SAMPLE, weighted(*template, "said", "big"), weighted(*template, "told", "large")
    )


def test_a_term_too_light_for_a_full_list_is_not_missing() -> None:
    """Terms that a full list omits as too light do not count as different."""
    shared = [f"word{n}" for n in range(4)]
    level = [(f"a{n}", 0.2) for n in range(MAX_TERMS - 4)], [(f"b{n}", 0.2) for n in range(MAX_TERMS - 4)]
    first, second = ([(word, 0.22) for word in shared] + rest for rest in level)

    assert not exchange_names(COMPLETE_SAMPLE, first, second)
    # Lists that are not full omit nothing.
    assert exchange_names(COMPLETE_SAMPLE, first[:-1], second[:-1])


@pytest.mark.parametrize(
    ("containment", "shared", "template"), [(0.9, 100, False), (0.9, 99, True), (0.89, 300, True)]
)
def test_a_long_text_of_which_nine_tenths_agree_is_no_filling(
    containment: float, shared: float, template: bool
) -> None:
    """A name or two in 100 words were corrected."""
    overlap = OverlapEstimate(containment, 0.8, shared, 1.0)
    assert exchange_names(overlap, weighted("alpha"), weighted("beta")) is template


def test_a_name_in_another_spelling_is_not_exchanged() -> None:
    """Nor is it missing."""
    first, second = weighted("selenskyj", "kyiv", "war"), weighted("zelensky", "kiev", "war")
    assert not exchange_names(COMPLETE_SAMPLE, first, second)
    assert exchange_names(COMPLETE_SAMPLE, first, weighted("orban", "budapest", "war"))


def test_other_lengths_are_not_templates() -> None:
    """Truncated or padded texts, and texts that share every shingle, have no names exchanged."""
    for overlap in (
        OverlapEstimate(0.9, 0.7, 90, size_ratio=0.79),
        OverlapEstimate(1.0, 0.9, 90, size_ratio=0.9),
    ):
        assert not exchange_names(overlap, weighted("alpha"), weighted("beta"))
