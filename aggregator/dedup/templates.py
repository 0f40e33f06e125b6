"""Fillings of one template: texts of equal length that exchange its names or figures. Pure.

Appointments, warnings, match results, statistics. A duplicate, and even an update, keeps most of both; its
reordered sentences keep the names, which are the top terms.
"""

from __future__ import annotations

from typing import Literal

from aggregator.analysis.analyzer import MAX_TERMS
from aggregator.analysis.shingles import OverlapEstimate
from aggregator.analysis.text.names import same_name
from aggregator.dedup.copy_rule import SAME_LENGTH_RATIO, Comparable
from aggregator.domain import WeightedTerms

# Of a text of so many shingles two fillings share less.
COPY_CONTAINMENT, COPY_SHINGLES = 0.9, 100
MIN_FIGURES = 4  # fillings of fewer figures may have others by chance
MIN_EXCHANGED = 0.15  # terms missing in the other text make up so much of the squared norm of both
# A term heavier than this factor times the lightest term of a full list would have been in the list (texts of
# equal length have term vectors of about equal norm), so its absence is significant.
OMITTED_TERM_FACTOR = 1.25


def exchanged(overlap: OverlapEstimate, a: Comparable, b: Comparable) -> Literal["", "figures", "names"]:
    """What two fillings of one template exchange; "" if they are none."""
    if exchange_figures(overlap, a, b):
        return "figures"  # terms of two languages are not comparable
    return "names" if a.lang == b.lang and exchange_names(overlap, a.terms, b.terms) else ""


def exchange_figures(overlap: OverlapEstimate, a: Comparable, b: Comparable) -> bool:
    """Whether two texts of equal length have ``MIN_FIGURES`` figures each, and none in common."""
    first, second = set(a.figures), set(b.figures)
    have_enough = min(len(first), len(second)) >= MIN_FIGURES
    return have_enough and first.isdisjoint(second) and _may_be_fillings(overlap)


def exchange_names(overlap: OverlapEstimate, a: WeightedTerms, b: WeightedTerms) -> bool:
    """Whether the top terms of two texts, given descending, are each missing in the other.

    Or, with complete samples, terms that make up ``MIN_EXCHANGED``.
    """
    if not _may_be_fillings(overlap):
        return False
    # Other spellings, which take most of the time, only shorten the lists: seldom needed.
    return all(_are_exchanged(overlap, a, b, spellings) for spellings in (False, True))


def _are_exchanged(overlap: OverlapEstimate, a: WeightedTerms, b: WeightedTerms, spellings: bool) -> bool:
    first, second = _unique_terms(a, b, spellings), _unique_terms(b, a, spellings)
    if _includes_top_terms(first, a) and _includes_top_terms(second, b):
        return True
    missing = min(sum(weight * weight for _, weight in unique) for unique in (first, second))
    return overlap.error == 0.0 and missing > MIN_EXCHANGED


def _may_be_fillings(overlap: OverlapEstimate) -> bool:
    is_copy = overlap.containment >= COPY_CONTAINMENT and overlap.shared >= COPY_SHINGLES
    return overlap.size_ratio >= SAME_LENGTH_RATIO and overlap.containment < 1.0 and not is_copy


def _unique_terms(terms: WeightedTerms, others: WeightedTerms, spellings: bool) -> list[tuple[str, float]]:
    """Those only ``terms`` has, ``spellings``: in any, but figures and what ``others`` may have dropped."""
    known = {term for term, _ in others}
    min_weight = others[-1][1] * OMITTED_TERM_FACTOR if len(others) >= MAX_TERMS else 0.0
    return [
        (term, weight)
        for term, weight in terms
        if weight > min_weight
        and term not in known
        and not term.isdecimal()
        and not (spellings and any(same_name(term, other) for other in known))
    ]


def _includes_top_terms(unique: WeightedTerms, terms: WeightedTerms) -> bool:
    weights = [weight for term, weight in terms if not term.isdecimal()]
    return bool(unique) and sum(weight == weights[0] for _, weight in unique) == weights.count(weights[0])
