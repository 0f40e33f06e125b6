"""The sentences of an explanation."""

from __future__ import annotations

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.policy import Policy
from aggregator.queries.explanation_summary import Comparison, summarize


def summary_of(evidence: Evidence) -> str:
    """Summary of two articles with this evidence, unlike headlines and no template."""
    is_match = Policy().copy_rule.is_copy(evidence, float)
    comparison = Comparison(evidence, 0.0, is_match, "", set(), confirmable=False, probability=None)
    return summarize(comparison, Policy())


def test_the_summary_names_the_requirements_that_decided() -> None:
    """They depend on the outlets and on the time between the publications."""
    overlap = OverlapEstimate(containment=0.4, resemblance=0.25, shared=80.0, size_ratio=1.0, opening=0.6)
    other_outlet = summary_of(Evidence(overlap, 0.5))
    same_outlet = summary_of(Evidence(overlap, 0.5, same_outlet=True))
    later = summary_of(Evidence(overlap, 0.5, same_outlet=True, hours_apart=50.0))

    assert (
        "so they are copies (a copy from another or an unknown outlet shares 20% and 35% of both openings or "
        "a headline of similarity 0.8, or 35% and 35% of an opening, or 60%; and 30 shingles"
    ) in other_outlet
    assert (
        "not copies (a copy from the same outlet shares 70% and 50% of an opening or a headline"
    ) in same_outlet
    assert "a copy from the same outlet, more than 16 hours apart, shares 90%" in later
