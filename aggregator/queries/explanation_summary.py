"""The sentences of an explanation: what the rules see of two articles, and what follows. Pure."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from math import isinf

from aggregator.dedup.copy_rule import NEVER, CopyRule, Requirement, Requirements
from aggregator.dedup.event_model import MIN_PROBABILITY
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.pair_comparison import Novelty
from aggregator.dedup.policy import Policy

_TEMPLATE_NOTES = {
    "": "",
    "figures": " Hardly any figure occurs in both, so they are one template with other figures.",
    "names": " The main terms of each are missing from the other, so they are one template with other names.",
}
_CONFIRMABLE_NOTE = (
    " But they share so much that the later one is a duplicate if copies of the earlier one from two outlets "
    "share as much with it."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The decision on two articles of one space.

    headlines    similarity of the headlines, 0..1
    is_match     whether the policy's rule matches them
    template     what they exchange if they are fillings of one template
    novelties    what the later one may add, in either order of arrival
    confirmable  whether copies of a second outlet would make the later one a duplicate
    probability  of one event, 0..1, under policy same-event
    """

    evidence: Evidence
    headlines: float
    is_match: bool
    template: Novelty
    novelties: Set[str]
    confirmable: bool
    probability: float | None


def summarize(comparison: Comparison, policy: Policy) -> str:
    """The summary of a decision under a policy."""
    summary = (
        _content_summary(comparison, policy)
        if comparison.probability is None
        else _event_summary(comparison, comparison.probability)
    )
    return (
        summary
        + _TEMPLATE_NOTES[comparison.template]
        + (_CONFIRMABLE_NOTE if comparison.confirmable else "")
        + _novelty_note(comparison.novelties, policy)
    )


def _event_summary(comparison: Comparison, probability: float) -> str:
    return (
        f"The similarity of the titles is {comparison.headlines:.2f}, that of the texts "
        f"{comparison.evidence.similarity:.2f}; with the names, figures and wording that they share, the "
        f"probability of one event is {probability:.2f}; policy same-event requires {MIN_PROBABILITY:g}: "
        f"{'the same' if comparison.is_match else 'not the same'} event."
    )


def _content_summary(comparison: Comparison, policy: Policy) -> str:
    evidence = comparison.evidence
    overlap, distance = evidence.overlap, evidence.distance
    verdict = "copies" if comparison.is_match else "not copies"
    return (
        f"The articles are {distance} bit{'s' * (distance != 1)} apart; they share "
        f"{overlap.containment:.0%} of the shorter one's wording "
        f"(about {overlap.shared:.0f} shingles), {overlap.opening:.0%} of an opening, "
        f"{overlap.common_opening:.0%} of both openings; the similarity of "
        f"their headlines is {comparison.headlines:.2f}, that of their terms {evidence.similarity:.2f}, "
        f"so they are {verdict} ({_describe_rule(evidence, policy)})."
    )


def _novelty_note(novelties: Set[str], policy: Policy) -> str:
    if "figures" in novelties:
        reason = (
            "updates_are_new is on"
            if policy.updates_are_new
            else "in texts this short the figures are the news"
        )
        return f" But their figures differ, and {reason}: the later one is related, with updated figures."
    if "story" in novelties:
        return (
            " But the shorter one only announces the longer one, which is related, not a duplicate, "
            "if it arrives later."
        )
    return ""


def _describe_rule(evidence: Evidence, policy: Policy) -> str:
    if policy.name == "hamming":
        return f"policy hamming: a copy is at most {policy.duplicate_bits} bits apart, regardless of wording"
    rule = policy.copy_rule
    required = rule.requirements(evidence)
    return (
        f"a copy {_describe_origin(evidence, rule.same_outlet_hours)} shares "
        f"{', or '.join(map(_describe_row, required.rows))}; and {_describe_amount(required, rule)}"
    )


def _describe_row(row: Requirement) -> str:
    ways = [f"{row.opening:.0%} of an opening"] if 0 < row.opening < NEVER else []
    ways += [f"{row.common_opening:.0%} of both openings"] if row.common_opening < NEVER else []
    ways += [f"a headline of similarity {row.headline:g}"] if row.headline < NEVER else []
    return f"{row.containment:.0%}" + (f" and {' or '.join(ways)}" if ways else "")


def _describe_origin(evidence: Evidence, same_outlet_hours: float) -> str:
    if not evidence.same_outlet:
        return "from another or an unknown outlet"
    if evidence.hours_apart is not None and evidence.hours_apart > same_outlet_hours:
        return f"from the same outlet, more than {same_outlet_hours:g} hours apart,"
    return "from the same outlet"


def _describe_amount(required: Requirements, rule: CopyRule) -> str:
    if isinf(required.shared):
        return "does not exchange the names of a template"
    fewer = required.shared_under_one_headline
    under_one_headline = f" ({fewer:.0f} under one headline)" if fewer < required.shared else ""
    return (
        f"{required.shared:.0f} shingles{under_one_headline} with a similarity of terms of "
        f"{rule.similarity:g}, or {rule.strong:.0%} of the wording"
    )
