"""Duplicate rules: the verdict (new, related, duplicate) on an article among its candidates. Pure.

Policies:

* ``hamming``     the rule of the paper (Hu & You 2017, section 2.2): a stored article within 3 bits makes a
  duplicate, within 7 bits a related article.
* ``verified``    (default) fingerprint and sketch only propose candidates; shared wording, openings,
  headlines, outlets and times decide (``copy_rule.py``), at any distance; without them even 3 bits are only
  "related". An article that begins otherwise is a duplicate if it shares enough with copies of two outlets.
  An article whose candidate is its own flash or teaser is "related" to it, and so is a flash with other
  figures, since its content is new. Two fillings of one template (``templates.py``) do not match.
* ``same-event``  "the same event", not "the same text": a fitted model of terms, headlines, names, figures
  and wording (``event_model.py``). Articles that share distinctive terms are candidates too.

An article joins the group of most of the earlier articles that it duplicates nearly as closely as the best;
linking every match would merge groups through one page (docs/decisions/0017-group-choice.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from typing import Literal, Protocol

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.copy_rule import EQUAL_HEADLINES, CopyRule, Requirement, Requirements
from aggregator.dedup.event_model import MIN_PROBABILITY, same_event_probability
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.templates import (
    figures_changed,
    is_teaser_of,
    same_template_other_figures,
    same_template_other_names,
)
from aggregator.dedup.title_rule import title_similarity
from aggregator.domain import Analysis, ArticleRecord, Match, MatchRule, Outcome, Sketch, WeightedTerms

# A text of equal length that shares little was written anew: more shingles. One headline: fewer suffice.
EQUAL_LENGTH_SHARED_FACTOR, ONE_HEADLINE_SHARED_FACTOR = 1.5, 2 / 3
# An article that begins otherwise is a copy if it shares wording with copies that so many outlets printed.
CONFIRMING_OUTLETS = 2
# A match whose containment is lower than that of the closest by more has no vote on the group.
VOTING_CONTAINMENT_MARGIN = 0.1

Novelty = Literal["", "story", "figures", "names"]


class Comparable(Protocol):
    """The fields that the rules read of an article: arriving, stored or compared on request."""

    @property
    def lang(self) -> str:
        """Language of the text, ISO 639-1."""

    @property
    def title(self) -> str:
        """The headline, "" if there is none."""

    @property
    def short(self) -> bool:
        """Whether the text has too few words for 64 stable bits."""

    @property
    def sketch(self) -> Sketch:
        """Sample of the shingle hashes."""

    @property
    def terms(self) -> WeightedTerms:
        """Top terms, descending, L2 norm 1."""

    @property
    def figures(self) -> tuple[int, ...]:
        """Hashes of the numbers in the text."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Name and thresholds of the duplicate rule: distances in bits, containments and similarities in 0..1.

    ``updates_are_new``: a copy with replaced figures (a toll, a price) is "related" with ``updated_figures``
    instead of "duplicate", as public-health editors need it (Rodier & Carter 2020, section 4.2). The
    thresholds from ``min_containment`` to ``later_other_headline_containment`` are the table of
    ``copy_rule.py``.
    ``copy_rule`` (derived): that table. ``containment_floor`` (derived): no rule distinguishes between
    containments below it.
    """

    name: str = "verified"
    duplicate_bits: int = 3
    related_bits: int = 7
    min_containment: float = 0.2
    min_common_opening: float = 0.35
    min_headline_similarity: float = 0.8
    partial_containment: float = 0.35
    min_opening: float = 0.35
    complete_containment: float = 0.6
    min_shared_shingles: float = 30.0
    min_similarity: float = 0.1
    strong_containment: float = 0.75
    same_outlet_hours: float = 16.0
    same_outlet_containment: float = 0.7
    same_outlet_opening: float = 0.5
    same_outlet_headline_similarity: float = 0.8
    same_outlet_shared_shingles: float = 60.0
    later_containment: float = 0.9
    later_other_headline_containment: float = 0.96
    updates_are_new: bool = False
    copy_rule: CopyRule = field(init=False, repr=False, compare=False)
    containment_floor: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rule = self._build_copy_rule()
        floor = min(part.containment for part in (rule.other_outlet, rule.same_outlet, rule.later))
        object.__setattr__(self, "copy_rule", rule)
        object.__setattr__(self, "containment_floor", 0.0 if self.name == "same-event" else floor)

    def _build_copy_rule(self) -> CopyRule:
        opening, headline = self.same_outlet_opening, self.same_outlet_headline_similarity
        other_headline = max(self.later_containment, self.later_other_headline_containment)
        other = (
            Requirement(
                self.min_containment,
                common_opening=self.min_common_opening,
                headline=self.min_headline_similarity,
            ),
            Requirement(max(self.min_containment, self.partial_containment), opening=self.min_opening),
            Requirement(max(self.min_containment, self.complete_containment), opening=0.0),
        )
        return CopyRule(
            other_outlet=Requirements(
                other,
                shared=self.min_shared_shingles,
                shared_at_equal_length=EQUAL_LENGTH_SHARED_FACTOR * self.min_shared_shingles,
                shared_under_one_headline=ONE_HEADLINE_SHARED_FACTOR * self.min_shared_shingles,
            ),
            same_outlet=Requirements(
                (Requirement(self.same_outlet_containment, opening=opening, headline=headline),),
                *(self.same_outlet_shared_shingles,) * 3,
            ),
            later=Requirements(
                (
                    Requirement(self.later_containment, headline=EQUAL_HEADLINES),
                    Requirement(other_headline, opening=opening),
                ),
                *(inf,) * 3,
            ),
            same_outlet_hours=self.same_outlet_hours,
            strong=self.strong_containment,
            similarity=self.min_similarity,
        )

    @property
    def compares_by_terms(self) -> bool:
        """Whether articles that share distinctive terms, but neither bits nor wording, are candidates."""
        return self.name == "same-event"

    def needs_term_similarity(self, distance: int, overlap: OverlapEstimate) -> bool:
        """Whether the term similarity of such a candidate can affect the verdict or the related articles."""
        return distance <= self.related_bits or overlap.containment >= self.containment_floor


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored article that fingerprint or sketch proposed, with the evidence about it.

    ``canonical`` is (id, first number) of the group that the stored article belongs to;
    ``evidence.similarity`` is 0 where it was not computed (``Policy.needs_term_similarity``).
    """

    record: ArticleRecord
    canonical: tuple[str, int]
    evidence: Evidence

    @property
    def distance(self) -> int:
        """Hamming distance of the fingerprints, in bits."""
        return self.evidence.distance

    @property
    def overlap(self) -> OverlapEstimate:
        """Shared wording, without boilerplate."""
        return self.evidence.overlap

    @property
    def similarity(self) -> float:
        """Cosine of the stored terms, 0..1."""
        return self.evidence.similarity


def decide(subject: Analysis, candidates: Sequence[Candidate], policy: Policy) -> Outcome:
    """Return the outcome for ``subject`` among ``candidates``; their order does not matter."""
    nearest = min((c.distance for c in candidates if c.distance <= policy.related_bits), default=None)
    exact = [c for c in candidates if c.record.text_hash == subject.text_hash]
    if exact:
        return _duplicate_outcome(subject, min(exact, key=_age_key), "exact", policy)
    matches = [c for c in candidates if _is_match(subject, c, policy)]
    duplicated = [c for c in matches if not novelty(c.record, subject, policy)]
    duplicated = duplicated or _confirmed_by_group(subject, candidates, policy)
    if duplicated:
        return _duplicate_outcome(subject, *_best_match(duplicated, policy), policy)
    if matches:
        return Outcome(
            "related",
            distance=nearest,
            updated_figures=any(_has_updated_figures(subject, c) for c in matches),
        )
    return Outcome("new" if nearest is None else "related", distance=nearest)


def related_candidates(
    subject: Analysis, candidates: Sequence[Candidate], outcome: Outcome, policy: Policy
) -> list[Candidate]:
    """Return the candidates to report as related.

    Those within ``related_bits`` and, for a "related" article, those that it matches apart from its novelty.
    """
    include_matches = outcome.verdict == "related" and outcome.match is None
    return [
        c
        for c in candidates
        if c.distance <= policy.related_bits or (include_matches and _is_match(subject, c, policy))
    ]


def _duplicate_outcome(subject: Analysis, candidate: Candidate, rule: MatchRule, policy: Policy) -> Outcome:
    return Outcome(
        "duplicate",
        distance=candidate.distance,
        match=Match(
            id=candidate.record.id,
            number=candidate.record.number,
            canonical_id=candidate.canonical[0],
            canonical_first=candidate.canonical[1],
            distance=candidate.distance,
            overlap=None if policy.name == "hamming" else round(candidate.overlap.containment, 3),
            rule=rule,
        ),
        updated_figures=_has_updated_figures(subject, candidate),
    )


def _is_match(subject: Analysis, candidate: Candidate, policy: Policy) -> bool:
    return compare_pair(subject, candidate.record, candidate.evidence, policy)[0]


def _confirmed_by_group(
    subject: Analysis, candidates: Sequence[Candidate], policy: Policy
) -> list[Candidate]:
    """Candidates that share enough with the subject, if two outlets of their group do; none of its outlet."""
    if policy.name != "verified":
        return []
    sharing = [c for c in candidates if not c.evidence.same_outlet and _shares_enough(subject, c, policy)]
    outlets: dict[int, set[str | int]] = defaultdict(set)
    for c in sharing:
        outlets[c.canonical[1]].add(c.record.source.casefold() or c.record.number)
    return [c for c in sharing if len(outlets[c.canonical[1]]) >= CONFIRMING_OUTLETS]


def _shares_enough(subject: Analysis, candidate: Candidate, policy: Policy) -> bool:
    record, evidence = candidate.record, candidate.evidence
    if evidence.overlap.containment < policy.containment_floor:
        return False
    if subject.lang != record.lang:  # terms of two languages are not comparable
        evidence = replace(evidence, similarity=1.0)
    return (
        policy.copy_rule.shares_enough(evidence, lambda: headline_similarity(subject, record))
        and not template_difference(evidence.overlap, subject, record)
        and not novelty(record, subject, policy)
    )


def compare_pair(a: Comparable, b: Comparable, evidence: Evidence, policy: Policy) -> tuple[bool, Novelty]:
    """Whether the policy's rule matches the two articles, in either order of arrival.

    The second value says what was exchanged if the wording is that of a copy only because both fill in one
    template; such articles do not match.
    """
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


def headline_similarity(a: Comparable, b: Comparable) -> float:
    """Similarity of the headlines, 0..1; 0 if one has none."""
    return title_similarity(a.title, a.lang, b.title, b.lang)


def template_difference(overlap: OverlapEstimate, a: Comparable, b: Comparable) -> Novelty:
    """Return "figures" or "names" if that is all that differs between two fillings of a template, else ""."""
    if same_template_other_figures(overlap, a.figures, b.figures):
        return "figures"
    return "names" if a.lang == b.lang and same_template_other_names(overlap, a.terms, b.terms) else ""


def novelty(earlier: Comparable, later: Comparable, policy: Policy) -> Novelty:
    """Return what the later of two matching articles adds to the earlier one; "" if nothing.

    "story": the earlier one is its teaser. "figures": the figures were replaced, and either the policy treats
    updates as new or both are short flashes, where the figures are the news.
    """
    if policy.name == "verified" and is_teaser_of(earlier.sketch.size, later.sketch.size):
        return "story"
    both_flashes = policy.name == "verified" and earlier.short and later.short
    changed = (policy.updates_are_new or both_flashes) and figures_changed(earlier.figures, later.figures)
    return "figures" if changed else ""


def _has_updated_figures(subject: Analysis, candidate: Candidate) -> bool:
    return figures_changed(subject.figures, candidate.record.figures)


def _best_match(matches: Sequence[Candidate], policy: Policy) -> tuple[Candidate, MatchRule]:
    if policy.name == "hamming":
        return min(matches, key=lambda c: (c.distance, _age_key(c))), "hamming"
    if policy.name == "same-event":
        return min(matches, key=lambda c: (-c.similarity, _age_key(c))), "title"
    best = _closest_in_largest_group(matches)
    return best, "hamming" if best.distance <= policy.duplicate_bits else "overlap"


def _closest_in_largest_group(matches: Sequence[Candidate]) -> Candidate:
    """Return the closest match within the group of most of the matches that are nearly as close."""
    nearest_first = sorted(
        matches, key=lambda c: (-c.overlap.containment, -c.overlap.resemblance, c.distance, _age_key(c))
    )
    lowest = nearest_first[0].overlap.containment - VOTING_CONTAINMENT_MARGIN
    voters = [c for c in nearest_first if c.overlap.containment >= lowest]
    votes = Counter(c.canonical[1] for c in voters)
    return max(voters, key=lambda c: votes[c.canonical[1]])


def _age_key(candidate: Candidate) -> tuple[int, str]:
    return candidate.record.number, candidate.record.id
