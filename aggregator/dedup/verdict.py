"""New, related or duplicate? The rules, pure.

The policies:

* ``hamming``   the paper's rule alone (Hu & You 2017, section 2.2): a stored article within 3 bits
  makes a duplicate, within 7 bits a related article.
* ``verified``  (default) the fingerprint and the sketch only propose; the overlap of wording decides.
  A candidate whose wording does overlap is a duplicate at any distance; without overlap even
  3 bits are only "related". An article behind its own flash or teaser is "related" to it, and so is a
  flash with other figures: those have not been told yet. One frame with other figures or names is no copy
  (``frames.py``).
* ``titled``    for "the same event" rather than "the same text": how much alike the terms must be
  depends on how much alike the headlines are (``titled.py``).

An article joins one group only, that of most of the earlier articles it copies: linking every match
lets one boilerplate page join unrelated groups (docs/MEASURED.md, "Grouping").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from aggregator.analysis.shingles import Overlap
from aggregator.dedup.templates import (
    CUT_RATIO,
    FRAMED_FACTOR,
    FRAMED_RATIO,
    Terms,
    announces,
    figures_changed,
    looks_framed,
    refilled,
    renamed,
)
from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator.domain import Analysis, Match, Outcome, Record, Rule, Sketch

# One that was cut or padded (``frames.CUT_RATIO``) need share less.
CUT_FACTOR = 2 / 3
# The containment of two long texts is an estimate, and every article is compared with many: the one in forty
# that seems above a threshold by chance would be a false copy of something.
STANDARD_ERRORS = 2

News = Literal["", "story", "figures", "names"]


class Told(Protocol):
    """What is read of an article that arrives, is stored or is compared, when it is alike another."""

    @property
    def lang(self) -> str: ...
    @property
    def short(self) -> bool: ...
    @property
    def sketch(self) -> Sketch: ...
    @property
    def terms(self) -> Terms: ...
    @property
    def figures(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class Policy:
    """The thresholds of a verdict; distances in bits, overlaps and similarities in 0..1, ``min_shared`` in shingles.

    ``keep_updates``: a copy whose figures were replaced (a toll, a price) is an article of its own,
    "related" with ``updated_figures``, as public-health desks need it (Rodier & Carter 2020, section 4.2).
    """

    name: str = "verified"
    duplicate_bits: int = 3
    related_bits: int = 7
    min_containment: float = 0.2
    min_shared: float = 60.0
    min_similarity: float = 0.2
    sure_containment: float = 0.75
    keep_updates: bool = False
    least_containment: float = field(
        init=False, repr=False, compare=False
    )  # less shared wording says nothing to any rule

    def __post_init__(self) -> None:
        least = 0.0 if self.name == "titled" else min(self.min_containment, self.sure_containment)
        object.__setattr__(self, "least_containment", least)

    def asks_for_terms(self, distance: int, overlap: Overlap) -> bool:
        """Can the terms of a candidate at this distance, sharing this wording, matter to a verdict or to what it names?"""
        return distance <= self.related_bits or overlap.containment >= self.least_containment


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored article that fingerprint or sketch proposed, with what the rules need of it.

    ``canonical`` is (id, first number) of the group the stored article belongs to; ``similarity`` the
    cosine of the stored terms, 0..1; 0 where nobody asked for it.
    """

    record: Record
    canonical: tuple[str, int]
    distance: int
    overlap: Overlap
    similarity: float = 0.0


def decide(subject: Analysis, candidates: Sequence[Candidate], policy: Policy) -> Outcome:
    """The outcome for ``subject`` among ``candidates`` (any order; the result does not depend on it)."""
    nearest = min((c.distance for c in candidates if c.distance <= policy.related_bits), default=None)
    exact = [c for c in candidates if c.record.text_hash == subject.text_hash]
    if exact:
        return _duplicate(subject, min(exact, key=_age), "exact", policy)
    alike = [c for c in candidates if _alike(subject, c, policy)]
    repeated = [c for c in alike if not news(c.record, subject, policy)]
    if repeated:
        return _duplicate(subject, *_best_of(repeated, policy), policy)
    if alike:
        return Outcome("related", distance=nearest, updated_figures=any(_updated(subject, c) for c in alike))
    return Outcome("new" if nearest is None else "related", distance=nearest)


def neighbours(
    subject: Analysis, candidates: Sequence[Candidate], outcome: Outcome, policy: Policy
) -> list[Candidate]:
    """What an answer names as related: within ``related_bits``, and what the article would repeat but for its news."""
    own = outcome.verdict == "related" and outcome.match is None
    return [
        c for c in candidates if c.distance <= policy.related_bits or (own and _alike(subject, c, policy))
    ]


def _duplicate(subject: Analysis, candidate: Candidate, rule: Rule, policy: Policy) -> Outcome:
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
        updated_figures=_updated(subject, candidate),
    )


def _alike(subject: Analysis, candidate: Candidate, policy: Policy) -> bool:
    """Would the policy's rule call the two the same, whichever came first?"""
    if policy.name == "hamming":
        return candidate.distance <= policy.duplicate_bits
    if policy.name == "titled":
        return _same_event(subject, candidate)
    similarity = terms_alike(candidate.similarity, subject.lang, candidate.record.lang)
    return is_copy(candidate.overlap, similarity, policy) and not framed(
        candidate.overlap, subject, candidate.record
    )


def framed(overlap: Overlap, a: Told, b: Told) -> News:
    """What was exchanged, if two texts are one frame filled in twice."""
    if refilled(overlap, a.figures, b.figures):
        return "figures"
    return "names" if a.lang == b.lang and renamed(overlap, a.terms, b.terms) else ""


def news(earlier: Told, later: Told, policy: Policy) -> News:
    """What the later of two articles that are alike tells which the earlier one did not.

    The story behind a flash or teaser; other figures where those are wanted, or are the news: in texts of a line or two.
    """
    if policy.name == "verified" and announces(earlier.sketch.size, later.sketch.size):
        return "story"
    in_a_flash = policy.name == "verified" and earlier.short and later.short
    changed = (policy.keep_updates or in_a_flash) and figures_changed(earlier.figures, later.figures)
    return "figures" if changed else ""


def _updated(subject: Analysis, candidate: Candidate) -> bool:
    return figures_changed(subject.figures, candidate.record.figures)


def _best_of(alike: Sequence[Candidate], policy: Policy) -> tuple[Candidate, Rule]:
    if policy.name == "hamming":
        return min(alike, key=lambda c: (c.distance, _age(c))), "hamming"
    if policy.name == "titled":
        return min(alike, key=lambda c: (-c.similarity, _age(c))), "title"
    best = _nearest_of_the_group(alike)
    return best, "hamming" if best.distance <= policy.duplicate_bits else "overlap"


def terms_alike(similarity: float, lang_a: str, lang_b: str) -> float:
    """The similarity of terms; where a wrong tag had them cut in different ways it says nothing against a copy."""
    return similarity if lang_a == lang_b else 1.0


def _nearest_of_the_group(copies: Sequence[Candidate]) -> Candidate:
    """The closest copy, of the group that has most of them."""
    nearest_first = sorted(
        copies, key=lambda c: (-c.overlap.containment, -c.overlap.resemblance, c.distance, _age(c))
    )
    votes = Counter(c.canonical[1] for c in nearest_first)
    return max(nearest_first, key=lambda c: votes[c.canonical[1]])


def _same_event(subject: Analysis, candidate: Candidate) -> bool:
    titles = title_similarity(subject.title, subject.lang, candidate.record.title, candidate.record.lang)
    return candidate.similarity >= required_similarity(titles)


def is_copy(overlap: Overlap, similarity: float, policy: Policy) -> bool:
    """Does so much shared wording make a copy of two texts whose terms are so similar?

    A fifth of a text is enough when that is a passage of some length and both texts are about the same:
    the menu of one site around two articles is a long passage too. A short text must agree nearly whole,
    and be no frame filled in with other names. What a sample only estimates must be a fifth beyond its error.
    """
    if overlap.containment >= policy.sure_containment and not looks_framed(overlap, similarity):
        return True
    return (
        overlap.containment - STANDARD_ERRORS * overlap.error >= policy.min_containment
        and overlap.shared >= shared_for_copy(overlap, policy)
        and similarity >= policy.min_similarity
    )


def shared_for_copy(overlap: Overlap, policy: Policy) -> float:
    """How many shingles two texts of these lengths must share, when they do not agree nearly whole.

    A copy that was cut or padded differs in length, while one frame filled in twice ("X sells convertible
    debt ...") does not.
    """
    if overlap.size_ratio >= FRAMED_RATIO:
        return policy.min_shared * FRAMED_FACTOR
    return policy.min_shared * (CUT_FACTOR if overlap.size_ratio < CUT_RATIO else 1)


def _age(candidate: Candidate) -> tuple[int, str]:
    return candidate.record.number, candidate.record.id
