"""Duplicate rules: the verdict (new, related, duplicate) on an article among its candidates. Pure.

Policies:

* ``hamming``     the rule of the paper (Hu & You 2017, section 2.2): a stored article within 3 bits makes a
  duplicate, within 7 bits a related article.
* ``verified``    (default) fingerprint and sketch only propose candidates; the overlap of wording decides. A
  candidate whose wording overlaps is a duplicate at any distance; without overlap even 3 bits are only
  "related". An article whose candidate is its own flash or teaser is "related" to it, and so is a flash with
  other figures, since its content is new. One template with other figures or names is not a duplicate
  (``templates.py``).
* ``same-event``  "the same event" instead of "the same text": the similarity required of the terms depends on
  the similarity of the headlines (``title_rule.py``).

An article joins one group only, the one with most of the earlier articles that it duplicates: linking every
match would let one boilerplate page merge unrelated groups (docs/decisions/0017-group-choice.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.templates import (
    SAME_LENGTH_MIN_SHARED_FACTOR,
    SAME_LENGTH_RATIO,
    TRUNCATED_RATIO,
    figures_changed,
    is_teaser_of,
    looks_templated,
    same_template_other_figures,
    same_template_other_names,
)
from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator.domain import Analysis, ArticleRecord, Match, MatchRule, Outcome, Sketch, WeightedTerms

# Factor on ``min_shared_shingles`` when one text was truncated or padded (``templates.TRUNCATED_RATIO``).
TRUNCATED_MIN_SHARED_FACTOR = 2 / 3
# Safety margin below the estimated containment of two long texts. Every article is compared with many others,
# and an estimate that exceeds the threshold by chance makes a false duplicate; beyond 2 errors 1 in 40 does.
CONTAINMENT_STANDARD_ERRORS = 2

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
    instead of "duplicate", as public-health editors need it (Rodier & Carter 2020, section 4.2).
    ``containment_floor`` (derived): no rule distinguishes between containments below it.
    """

    name: str = "verified"
    duplicate_bits: int = 3
    related_bits: int = 7
    min_containment: float = 0.2
    min_shared_shingles: float = 60.0
    min_similarity: float = 0.2
    strong_containment: float = 0.75
    updates_are_new: bool = False
    containment_floor: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        floor = 0.0 if self.name == "same-event" else min(self.min_containment, self.strong_containment)
        object.__setattr__(self, "containment_floor", floor)

    def needs_term_similarity(self, distance: int, overlap: OverlapEstimate) -> bool:
        """Whether the term similarity of such a candidate can affect the verdict or the related articles."""
        return distance <= self.related_bits or overlap.containment >= self.containment_floor


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored article that fingerprint or sketch proposed, with what the rules need to know about it.

    ``canonical`` is (id, first number) of the group that the stored article belongs to; ``similarity`` is the
    cosine of the stored terms, 0..1, or 0 where it was not computed (``Policy.needs_term_similarity``).
    """

    record: ArticleRecord
    canonical: tuple[str, int]
    distance: int
    overlap: OverlapEstimate
    similarity: float = 0.0


def decide(subject: Analysis, candidates: Sequence[Candidate], policy: Policy) -> Outcome:
    """Return the outcome for ``subject`` among ``candidates``; their order does not matter."""
    nearest = min((c.distance for c in candidates if c.distance <= policy.related_bits), default=None)
    exact = [c for c in candidates if c.record.text_hash == subject.text_hash]
    if exact:
        return _duplicate_outcome(subject, min(exact, key=_age_key), "exact", policy)
    matches = [c for c in candidates if _is_match(subject, c, policy)]
    duplicated = [c for c in matches if not novelty(c.record, subject, policy)]
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
    return compare_pair(
        subject, candidate.record, candidate.distance, candidate.overlap, candidate.similarity, policy
    )[0]


def compare_pair(
    a: Comparable, b: Comparable, distance: int, overlap: OverlapEstimate, similarity: float, policy: Policy
) -> tuple[bool, Novelty]:
    """Whether the policy's rule matches the two articles, in either order of arrival.

    ``distance`` in bits, ``similarity`` is the cosine of the terms. The second value says what was exchanged
    if the wording is that of a copy only because both fill in one template; such articles do not match.
    """
    if policy.name == "hamming":
        return distance <= policy.duplicate_bits, ""
    if policy.name == "same-event":
        titles = title_similarity(a.title, a.lang, b.title, b.lang)
        return similarity >= required_similarity(titles), ""
    if not is_copy(overlap, comparable_similarity(similarity, a.lang, b.lang), policy):
        return False, ""
    template = template_difference(overlap, a, b)
    return not template, template


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


def comparable_similarity(similarity: float, lang_a: str, lang_b: str) -> float:
    """Return ``similarity``, or 1.0 for articles of two languages, whose terms are not comparable."""
    return similarity if lang_a == lang_b else 1.0


def _closest_in_largest_group(matches: Sequence[Candidate]) -> Candidate:
    """Return the closest match within the group that has most matches."""
    nearest_first = sorted(
        matches, key=lambda c: (-c.overlap.containment, -c.overlap.resemblance, c.distance, _age_key(c))
    )
    votes = Counter(c.canonical[1] for c in nearest_first)
    return max(nearest_first, key=lambda c: votes[c.canonical[1]])


def is_copy(overlap: OverlapEstimate, similarity: float, policy: Policy) -> bool:
    """Whether the shared wording makes two texts with this term similarity duplicates.

    Either the containment reaches ``strong_containment`` and the texts are not fillings of one template, or
    all of: ``min_containment`` after subtracting the sampling error, enough shared shingles, and
    ``min_similarity`` (two articles inside the same site menu share a long passage, but not their topic).
    """
    if overlap.containment >= policy.strong_containment and not looks_templated(overlap, similarity):
        return True
    return (
        overlap.containment - CONTAINMENT_STANDARD_ERRORS * overlap.error >= policy.min_containment
        and overlap.shared >= required_shared_shingles(overlap, policy)
        and similarity >= policy.min_similarity
    )


def required_shared_shingles(overlap: OverlapEstimate, policy: Policy) -> float:
    """Return how many shingles two texts must share below ``strong_containment``, depending on their lengths.

    A truncated or padded copy differs in length, but two fillings of one template ("X sells convertible debt
    ...") do not, so texts of equal length must share more.
    """
    if overlap.size_ratio >= SAME_LENGTH_RATIO:
        return policy.min_shared_shingles * SAME_LENGTH_MIN_SHARED_FACTOR
    return policy.min_shared_shingles * (
        TRUNCATED_MIN_SHARED_FACTOR if overlap.size_ratio < TRUNCATED_RATIO else 1
    )


def _age_key(candidate: Candidate) -> tuple[int, str]:
    return candidate.record.number, candidate.record.id
