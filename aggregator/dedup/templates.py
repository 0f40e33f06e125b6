"""Detection of templates and teasers: texts that share their wording without being duplicates. Pure.

A **template** is a set of sentences that a site prints repeatedly with other figures or names: rate fixes,
results, appointments, weather. A duplicate keeps figures and names, and an update keeps most of them. A
**teaser** is a short announcement of a story. A teaser that arrives after its story is a duplicate; a story
that arrives after its teaser is news.
"""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.analysis.analyzer import MAX_TERMS
from aggregator.analysis.shingles import OverlapEstimate
from aggregator.domain import WeightedTerms

# Two fillings of one template agree in length.
SAME_LENGTH_RATIO = 0.8
# Two fillings differ in the names, which are the top terms; a duplicate with reordered sentences keeps them.
# Texts that agree nearly completely are not tested for this.
TEMPLATE_MAX_SIMILARITY, NEAR_COMPLETE_CONTAINMENT = 0.85, 0.85
# Two fillings may differ in the figures instead; a duplicate, and even an update, keeps most of them.
TEMPLATE_MIN_FIGURES, TEMPLATE_MAX_COMMON_FIGURES_RATIO = 4, 0.2
# A term heavier than this factor times the lightest term of a full list would have been in the list (texts of
# equal length have term vectors of about equal norm), so its absence is significant.
OMITTED_TERM_FACTOR = 1.25
# Up to 40 shingles a teaser needs a story 1 / TEASER_RATIO times as long; longer teasers need proportionally
# longer stories.
TEASER_MAX_SHINGLES, TEASER_RATIO = 40, 0.4


def looks_templated(overlap: OverlapEstimate, similarity: float) -> bool:
    """Whether two texts of about equal length share most of their wording, but not their top terms."""
    return (
        overlap.size_ratio >= SAME_LENGTH_RATIO
        and overlap.containment < NEAR_COMPLETE_CONTAINMENT
        and similarity < TEMPLATE_MAX_SIMILARITY
    )


def same_template_other_figures(
    overlap: OverlapEstimate, figures_a: Sequence[int], figures_b: Sequence[int]
) -> bool:
    """Whether two equally long texts each have ``TEMPLATE_MIN_FIGURES`` figures, few of them in both."""
    first, second = set(figures_a), set(figures_b)
    fewer = min(len(first), len(second))
    return (
        overlap.size_ratio >= SAME_LENGTH_RATIO
        and overlap.containment < NEAR_COMPLETE_CONTAINMENT
        and fewer >= TEMPLATE_MIN_FIGURES
        and len(first & second) < TEMPLATE_MAX_COMMON_FIGURES_RATIO * fewer
    )


def same_template_other_names(overlap: OverlapEstimate, a: WeightedTerms, b: WeightedTerms) -> bool:
    """Whether two texts are one template with other names; ``a`` and ``b`` are their top terms, descending.

    Equally long, and the top terms of each are missing in the other; or, with complete samples, the missing
    terms make up more than ``1 - TEMPLATE_MAX_SIMILARITY`` of the squared norm on both sides.
    """
    if overlap.size_ratio < SAME_LENGTH_RATIO or overlap.containment == 1.0:
        return False
    first, second = _unique_terms(a, b), _unique_terms(b, a)
    if _includes_top_terms(first, a) and _includes_top_terms(second, b):
        return True
    exchanged = min(sum(weight * weight for _, weight in unique) for unique in (first, second))
    return overlap.error == 0.0 and exchanged > 1.0 - TEMPLATE_MAX_SIMILARITY


def is_teaser_of(teaser_shingles: float, story_shingles: float) -> bool:
    """Whether the story is 2.5 times as long as a teaser of up to 40 shingles, 5 times at 80, and so on."""
    return (
        teaser_shingles * max(teaser_shingles, TEASER_MAX_SHINGLES)
        < TEASER_RATIO * TEASER_MAX_SHINGLES * story_shingles
    )


def figures_changed(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether each text has a figure that the other lacks: a toll or price was replaced, not just cut off."""
    first, second = set(a), set(b)
    return bool(first - second) and bool(second - first)


def _unique_terms(terms: WeightedTerms, others: WeightedTerms) -> list[tuple[str, float]]:
    """The terms that only ``terms`` has, without figures and what ``others`` may have dropped."""
    known = {term for term, _ in others}
    min_weight = others[-1][1] * OMITTED_TERM_FACTOR if len(others) >= MAX_TERMS else 0.0
    return [
        (term, weight)
        for term, weight in terms
        if weight > min_weight and term not in known and not term.isdecimal()
    ]


def _includes_top_terms(unique: WeightedTerms, terms: WeightedTerms) -> bool:
    weights = [weight for term, weight in terms if not term.isdecimal()]
    return bool(unique) and sum(weight == weights[0] for _, weight in unique) == weights.count(weights[0])
