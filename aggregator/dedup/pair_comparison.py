"""Comparison of two articles by a policy: whether one is a copy of the other, and what is new in it. Pure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.copy_rule import EQUAL_HEADLINES
from aggregator.dedup.event_model import MIN_PROBABILITY, same_event_probability, title_similarity
from aggregator.dedup.evidence import Comparable, Evidence
from aggregator.dedup.policy import Policy
from aggregator.dedup.templates import (
    figures_changed,
    is_teaser_of,
    same_template_other_figures,
    same_template_other_names,
)

Novelty = Literal["", "story", "figures", "names"]


def compare_pair(a: Comparable, b: Comparable, evidence: Evidence, policy: Policy) -> tuple[bool, Novelty]:
    """Whether the policy matches two articles; if not, what two fillings of a template exchanged, or ""."""
    if policy.name == "hamming":
        return evidence.distance <= policy.duplicate_bits, ""
    if policy.name == "same-event":
        return same_event_probability(a, b, evidence) >= MIN_PROBABILITY, ""
    if a.lang != b.lang:  # terms of two languages are not comparable
        evidence = replace(evidence, similarity=1.0)
    headlines = cache(lambda: headline_similarity(a, b))  # needed up to three times, seldom at all
    if not policy.copy_rule.is_copy(evidence, headlines):
        return False, ""
    template = template_difference(evidence.overlap, a, b)
    # A template says in its headline what it exchanges; a rewritten lead brings other names and figures.
    if template and not evidence.same_outlet and headlines() >= EQUAL_HEADLINES:
        template = ""
    return not template, template


def shares_enough(later: Comparable, earlier: Comparable, evidence: Evidence, policy: Policy) -> bool:
    """Whether ``later`` repeats ``earlier`` if copies of a second outlet share as much ("verified" only)."""
    if policy.name != "verified" or evidence.same_outlet:
        return False
    if evidence.overlap.containment < policy.containment_floor:
        return False
    if later.lang != earlier.lang:  # terms of two languages are not comparable
        evidence = replace(evidence, similarity=1.0)
    return (
        policy.copy_rule.shares_enough(evidence, lambda: headline_similarity(later, earlier))
        and not template_difference(evidence.overlap, later, earlier)
        and not novelty(earlier, later, policy)
    )


def headline_similarity(a: Comparable, b: Comparable) -> float:
    """Similarity of the headlines, 0..1; 0 if one has none."""
    return title_similarity(a.title, a.lang, b.title, b.lang)


def template_difference(overlap: OverlapEstimate, a: Comparable, b: Comparable) -> Novelty:
    """Return "figures" or "names" if that is all that differs between two fillings of a template, else ""."""
    if same_template_other_figures(overlap, a.figures, b.figures):
        return "figures"
    return "names" if a.lang == b.lang and same_template_other_names(overlap, a.terms, b.terms) else ""


def novelty(earlier: Comparable, later: Comparable, policy: Policy) -> Novelty:
    """What the later of two matching articles adds to the earlier one; "" if nothing.

    "story": the earlier one is its teaser. "figures": they were replaced, and the policy treats updates as
    new or both are short flashes.
    """
    if policy.name == "verified" and is_teaser_of(earlier.sketch.size, later.sketch.size):
        return "story"
    both_flashes = policy.name == "verified" and earlier.short and later.short
    changed = (policy.updates_are_new or both_flashes) and figures_changed(earlier.figures, later.figures)
    return "figures" if changed else ""
