"""Does the later of two texts that share their wording tell news all the same? Pure.

Rate fixes, results, appointments, weather: a site prints one **frame** of sentences again and again, filled in with other
figures and names. A copy keeps those, and an update keeps most of them. And a flash or a **teaser** comes before its
story: who has the story has its teaser, but not the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.analysis.analyzer import MAX_TERMS
from aggregator.analysis.shingles import OverlapEstimate

# Of two texts of about one length a copy must share more: one frame filled in twice agrees in length.
SAME_LENGTH_RATIO, SAME_LENGTH_MIN_SHARED_FACTOR = 0.8, 5 / 3
# ... and exchanges the names, its heaviest terms, while a copy whose sentences moved keeps them. Wording that agrees
# nearly whole needs no such look ...
TEMPLATE_MAX_SIMILARITY, NEAR_COMPLETE_CONTAINMENT = 0.85, 0.85
# ... or exchanges its figures for others, while a copy, and even an update, keeps most of them.
TEMPLATE_MIN_FIGURES, TEMPLATE_MAX_COMMON_FIGURES_RATIO = 4, 0.2
# A term this much heavier than the lightest that a full list keeps would have been kept: texts of one length have lists of
# about one norm.
OMITTED_TERM_FACTOR = 1.25
# A text under two fifths as long as the other was cut or padded: frames are not.
TRUNCATED_RATIO = 0.4
# ... or is its announcement, if it has but a few words; of more words, the longer the story must be in proportion.
TEASER_MAX_SHINGLES = 40

WeightedTerms = Sequence[tuple[str, float]]


def looks_templated(overlap: OverlapEstimate, similarity: float) -> bool:
    """Two texts of about one length that share most words, but not those that tell what they are about."""
    return (
        overlap.size_ratio >= SAME_LENGTH_RATIO
        and overlap.containment < NEAR_COMPLETE_CONTAINMENT
        and similarity < TEMPLATE_MAX_SIMILARITY
    )


def same_template_other_figures(
    overlap: OverlapEstimate, figures_a: Sequence[int], figures_b: Sequence[int]
) -> bool:
    """One frame twice, with other figures: rates, results, quotes? Of one length, each has some, hardly one is in both."""
    first, second = set(figures_a), set(figures_b)
    fewer = min(len(first), len(second))
    return (
        overlap.size_ratio >= SAME_LENGTH_RATIO
        and overlap.containment < NEAR_COMPLETE_CONTAINMENT
        and fewer >= TEMPLATE_MIN_FIGURES
        and len(first & second) < TEMPLATE_MAX_COMMON_FIGURES_RATIO * fewer
    )


def same_template_other_names(overlap: OverlapEstimate, a: WeightedTerms, b: WeightedTerms) -> bool:
    """One frame twice, with other names? Of one length, and what each is most about does not stand in the other.

    ``a`` and ``b``: heaviest terms, descending. Of texts whose shingles are known whole, so that what is around the
    story hardly counts, as much of the terms on both sides as ``looks_framed`` asks for will do.
    """
    if overlap.size_ratio < SAME_LENGTH_RATIO or overlap.containment == 1.0:
        return False
    first, second = _unique_terms(a, b), _unique_terms(b, a)
    if _includes_top_terms(first, a) and _includes_top_terms(second, b):
        return True
    exchanged = min(sum(weight * weight for _, weight in own) for own in (first, second))
    return overlap.error == 0.0 and exchanged > 1.0 - TEMPLATE_MAX_SIMILARITY


def is_teaser_of(teaser_shingles: float, story_shingles: float) -> bool:
    """Is a text of so many shingles only the announcement of a ``longer`` one?

    Up to 40 shingles that is one of over two and a half times its length, at 80 of over five times, and so on: an excerpt
    tells more of its story the longer it is.
    """
    return (
        teaser_shingles * max(teaser_shingles, TEASER_MAX_SHINGLES)
        < TRUNCATED_RATIO * TEASER_MAX_SHINGLES * story_shingles
    )


def figures_changed(a: Sequence[int], b: Sequence[int]) -> bool:
    """True when each text has a figure the other lacks: a toll or price was replaced, not just cut off."""
    first, second = set(a), set(b)
    return bool(first - second) and bool(second - first)


def _unique_terms(terms: WeightedTerms, others: WeightedTerms) -> list[tuple[str, float]]:
    """The terms, figures apart, that only the first has; not those that may just have been too light to be kept."""
    known = {term for term, _ in others}
    least = others[-1][1] * OMITTED_TERM_FACTOR if len(others) >= MAX_TERMS else 0.0
    return [
        (term, weight)
        for term, weight in terms
        if weight > least and term not in known and not term.isdecimal()
    ]


def _includes_top_terms(unique: WeightedTerms, terms: WeightedTerms) -> bool:
    """Are all of the heaviest terms, figures apart, among a text's own?"""
    words = [weight for term, weight in terms if not term.isdecimal()]
    return bool(unique) and sum(weight == words[0] for _, weight in unique) == words.count(words[0])
