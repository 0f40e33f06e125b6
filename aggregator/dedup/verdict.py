"""New, related or duplicate? The rules, pure.

The policies:

* ``hamming``   the paper's rule alone (Hu & You 2017, section 2.2): a stored article within 3 bits
  makes a duplicate, within 7 bits a related article.
* ``verified``  (default) the fingerprint and the sketch only propose; the overlap of wording decides.
  A candidate whose wording does overlap is a duplicate at any distance; without overlap even
  3 bits are only "related". An article behind its own flash or teaser is "related" to it, and so is a
  flash with other figures: those have not been told yet. One frame with other figures or names is no copy
  (``frames.py``).
* ``same-event``  for "the same event" rather than "the same text": how much alike the terms must be
  depends on how much alike the headlines are (``titled.py``).

An article joins one group only, that of most of the earlier articles it copies: linking every match
lets one boilerplate page join unrelated groups (docs/MEASURED.md, "Grouping").
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
    WeightedTerms,
    figures_changed,
    is_teaser_of,
    looks_templated,
    same_template_other_figures,
    same_template_other_names,
)
from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator.domain import Analysis, ArticleRecord, Match, MatchRule, Outcome, Sketch

# One that was cut or padded (``frames.CUT_RATIO``) need share less.
TRUNCATED_MIN_SHARED_FACTOR = 2 / 3
# The containment of two long texts is an estimate, and every article is compared with many: the one in forty
# that seems above a threshold by chance would be a false copy of something.
CONTAINMENT_STANDARD_ERRORS = 2

Novelty = Literal["", "story", "figures", "names"]


class Comparable(Protocol):
    """What is read of an article that arrives, is stored or is compared, when it is alike another."""

    @property
    def lang(self) -> str: ...
    @property
    def short(self) -> bool: ...
    @property
    def sketch(self) -> Sketch: ...
    @property
    def terms(self) -> WeightedTerms: ...
    @property
    def figures(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class Policy:
    """The thresholds of a verdict; distances in bits, overlaps and similarities in 0..1, ``min_shared_shingles`` in shingles.

    ``updates_are_new``: a copy whose figures were replaced (a toll, a price) is an article of its own,
    "related" with ``updated_figures``, as public-health desks need it (Rodier & Carter 2020, section 4.2).
    """

    name: str = "verified"
    duplicate_bits: int = 3
    related_bits: int = 7
    min_containment: float = 0.2
    min_shared_shingles: float = 60.0
    min_similarity: float = 0.2
    strong_containment: float = 0.75
    updates_are_new: bool = False
    containment_floor: float = field(
        init=False, repr=False, compare=False
    )  # less shared wording says nothing to any rule

    def __post_init__(self) -> None:
        least = 0.0 if self.name == "same-event" else min(self.min_containment, self.strong_containment)
        object.__setattr__(self, "containment_floor", least)

    def needs_term_similarity(self, distance: int, overlap: OverlapEstimate) -> bool:
        """Can the terms of a candidate at this distance, sharing this wording, matter to a verdict or to what it names?"""
        return distance <= self.related_bits or overlap.containment >= self.containment_floor


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored article that fingerprint or sketch proposed, with what the rules need of it.

    ``canonical`` is (id, first number) of the group the stored article belongs to; ``similarity`` the
    cosine of the stored terms, 0..1; 0 where nobody asked for it.
    """

    record: ArticleRecord
    canonical: tuple[str, int]
    distance: int
    overlap: OverlapEstimate
    similarity: float = 0.0


def decide(subject: Analysis, candidates: Sequence[Candidate], policy: Policy) -> Outcome:
    """The outcome for ``subject`` among ``candidates`` (any order; the result does not depend on it)."""
    nearest = min((c.distance for c in candidates if c.distance <= policy.related_bits), default=None)
    exact = [c for c in candidates if c.record.text_hash == subject.text_hash]
    if exact:
        return _duplicate_outcome(subject, min(exact, key=_age_key), "exact", policy)
    alike = [c for c in candidates if _is_match(subject, c, policy)]
    repeated = [c for c in alike if not novelty(c.record, subject, policy)]
    if repeated:
        return _duplicate_outcome(subject, *_best_match(repeated, policy), policy)
    if alike:
        return Outcome(
            "related", distance=nearest, updated_figures=any(_has_updated_figures(subject, c) for c in alike)
        )
    return Outcome("new" if nearest is None else "related", distance=nearest)


def related_candidates(
    subject: Analysis, candidates: Sequence[Candidate], outcome: Outcome, policy: Policy
) -> list[Candidate]:
    """What an answer names as related: within ``related_bits``, and what the article would repeat but for its news."""
    own = outcome.verdict == "related" and outcome.match is None
    return [
        c for c in candidates if c.distance <= policy.related_bits or (own and _is_match(subject, c, policy))
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
    """Would the policy's rule call the two the same, whichever came first?"""
    if policy.name == "hamming":
        return candidate.distance <= policy.duplicate_bits
    if policy.name == "same-event":
        return _same_event(subject, candidate)
    similarity = comparable_similarity(candidate.similarity, subject.lang, candidate.record.lang)
    return is_copy(candidate.overlap, similarity, policy) and not template_difference(
        candidate.overlap, subject, candidate.record
    )


def template_difference(overlap: OverlapEstimate, a: Comparable, b: Comparable) -> Novelty:
    """What was exchanged, if two texts are one frame filled in twice."""
    if same_template_other_figures(overlap, a.figures, b.figures):
        return "figures"
    return "names" if a.lang == b.lang and same_template_other_names(overlap, a.terms, b.terms) else ""


def novelty(earlier: Comparable, later: Comparable, policy: Policy) -> Novelty:
    """What the later of two articles that are alike tells which the earlier one did not.

    The story behind a flash or teaser; other figures where those are wanted, or are the news: in texts of a line or two.
    """
    if policy.name == "verified" and is_teaser_of(earlier.sketch.size, later.sketch.size):
        return "story"
    in_a_flash = policy.name == "verified" and earlier.short and later.short
    changed = (policy.updates_are_new or in_a_flash) and figures_changed(earlier.figures, later.figures)
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
    """The similarity of terms; where a wrong tag had them cut in different ways it says nothing against a copy."""
    return similarity if lang_a == lang_b else 1.0


def _closest_in_largest_group(matches: Sequence[Candidate]) -> Candidate:
    """The closest copy, of the group that has most of them."""
    nearest_first = sorted(
        matches, key=lambda c: (-c.overlap.containment, -c.overlap.resemblance, c.distance, _age_key(c))
    )
    votes = Counter(c.canonical[1] for c in nearest_first)
    return max(nearest_first, key=lambda c: votes[c.canonical[1]])


def _same_event(subject: Analysis, candidate: Candidate) -> bool:
    titles = title_similarity(subject.title, subject.lang, candidate.record.title, candidate.record.lang)
    return candidate.similarity >= required_similarity(titles)


def is_copy(overlap: OverlapEstimate, similarity: float, policy: Policy) -> bool:
    """Does so much shared wording make a copy of two texts whose terms are so similar?

    A fifth of a text is enough when that is a passage of some length and both texts are about the same:
    the menu of one site around two articles is a long passage too. A short text must agree nearly whole,
    and be no frame filled in with other names. What a sample only estimates must be a fifth beyond its error.
    """
    if overlap.containment >= policy.strong_containment and not looks_templated(overlap, similarity):
        return True
    return (
        overlap.containment - CONTAINMENT_STANDARD_ERRORS * overlap.error >= policy.min_containment
        and overlap.shared >= required_shared_shingles(overlap, policy)
        and similarity >= policy.min_similarity
    )


def required_shared_shingles(overlap: OverlapEstimate, policy: Policy) -> float:
    """How many shingles two texts of these lengths must share, when they do not agree nearly whole.

    A copy that was cut or padded differs in length, while one frame filled in twice ("X sells convertible
    debt ...") does not.
    """
    if overlap.size_ratio >= SAME_LENGTH_RATIO:
        return policy.min_shared_shingles * SAME_LENGTH_MIN_SHARED_FACTOR
    return policy.min_shared_shingles * (
        TRUNCATED_MIN_SHARED_FACTOR if overlap.size_ratio < TRUNCATED_RATIO else 1
    )


def _age_key(candidate: Candidate) -> tuple[int, str]:
    return candidate.record.number, candidate.record.id
