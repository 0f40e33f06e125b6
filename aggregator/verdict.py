"""New, related or duplicate? The rules, pure.

The policies:

* ``hamming``   the paper's rule alone (Hu & You 2017, section 2.2): a stored article within 3 bits
  makes a duplicate, within 7 bits a related article.
* ``verified``  (default) the fingerprint and the sketch only propose; the overlap of wording decides.
  A candidate whose wording does overlap is a duplicate at any distance; without overlap even
  3 bits are only "related". An article behind its own flash or teaser is "related" to it, and so is a
  flash with other figures: those have not been told yet.
* ``titled``    for "the same event" rather than "the same text": how much alike the terms must be
  depends on how much alike the headlines are (``titled.py``).

An article joins one group only, that of most of the earlier articles it copies: linking every match
lets one boilerplate page join unrelated groups (docs/MEASURED.md, "Grouping").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.domain import Analysis, Match, Outcome, Record, Rule, Sketch
from aggregator.overlap import Overlap
from aggregator.titled import required_similarity, title_similarity

# Of two texts of about one length a copy must share more: one frame filled in twice agrees in length.
FRAMED_RATIO, FRAMED_FACTOR = 0.8, 5 / 3
# ... and exchanges the names, its heaviest terms, while a copy whose sentences moved keeps them. Wording that agrees
# nearly whole needs no such look.
FRAMED_SIMILARITY, WHOLE = 0.85, 0.85
# ... or with its figures exchanged for others, while a copy, and even an update, keeps most of them.
FRAME_FIGURES, KEPT_FIGURES = 4, 0.2
# One under two fifths as long as the other was cut or padded: frames are not.
CUT_RATIO, CUT_FACTOR = 0.4, 2 / 3
# The containment of two long texts is an estimate, and every article is compared with many: the one in forty
# that seems above a threshold by chance would be a false copy of something.
STANDARD_ERRORS = 2


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

    def asks_for_terms(self, distance: int, overlap: Overlap) -> bool:
        """Can the terms of a candidate at this distance, sharing this wording, matter to a verdict or to what it names?"""
        return (
            distance <= self.related_bits
            or self.name == "titled"
            or overlap.containment >= min(self.min_containment, self.sure_containment)
        )


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
    repeated = [c for c in alike if not _has_news(subject, c, policy)]
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
    return is_copy(candidate.overlap, _terms_alike(subject, candidate), policy) and not refilled(
        candidate.overlap, subject.figures, candidate.record.figures
    )


def _has_news(subject: Analysis, candidate: Candidate, policy: Policy) -> bool:
    """Does the later of two articles that are alike say what the earlier one did not?"""
    if policy.name == "verified" and announces(
        candidate.record.short, candidate.record.sketch, subject.sketch
    ):
        return True
    return _updated(subject, candidate) and keeps_updates(subject.short, candidate.record.short, policy)


def announces(short: bool, sketch: Sketch, longer: Sketch) -> bool:
    """Is a text only the announcement of a longer one: ``short``, and under two fifths of its length?

    Who has the flash or the teaser has not got the article; who has the article has its teaser.
    """
    return short and sketch.size < CUT_RATIO * longer.size


def keeps_updates(short_a: bool, short_b: bool, policy: Policy) -> bool:
    """Do other figures make another article: because it is wanted so, or since in texts so short they are the news?"""
    return policy.keep_updates or (policy.name == "verified" and short_a and short_b)


def _updated(subject: Analysis, candidate: Candidate) -> bool:
    return figures_changed(subject.figures, candidate.record.figures)


def _best_of(alike: Sequence[Candidate], policy: Policy) -> tuple[Candidate, Rule]:
    if policy.name == "hamming":
        return min(alike, key=lambda c: (c.distance, _age(c))), "hamming"
    if policy.name == "titled":
        return min(alike, key=lambda c: (-c.similarity, _age(c))), "title"
    best = _nearest_of_the_group(alike)
    return best, "hamming" if best.distance <= policy.duplicate_bits else "overlap"


def _terms_alike(subject: Analysis, candidate: Candidate) -> float:
    return terms_alike(candidate.similarity, subject.lang, candidate.record.lang)


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


def looks_framed(overlap: Overlap, similarity: float) -> bool:
    """Two texts of about one length that share most words, but not those that tell what they are about."""
    return (
        overlap.size_ratio >= FRAMED_RATIO and overlap.containment < WHOLE and similarity < FRAMED_SIMILARITY
    )


def refilled(overlap: Overlap, figures_a: Sequence[int], figures_b: Sequence[int]) -> bool:
    """One frame twice, with other figures: rates, results, quotes? Of one length, each has some, hardly one is in both."""
    first, second = set(figures_a), set(figures_b)
    fewer = min(len(first), len(second))
    return (
        overlap.size_ratio >= FRAMED_RATIO
        and overlap.containment < WHOLE
        and fewer >= FRAME_FIGURES
        and len(first & second) < KEPT_FIGURES * fewer
    )


def shared_for_copy(overlap: Overlap, policy: Policy) -> float:
    """How many shingles two texts of these lengths must share, when they do not agree nearly whole.

    A copy that was cut or padded differs in length, while one frame filled in twice ("X sells convertible
    debt ...") does not.
    """
    if overlap.size_ratio >= FRAMED_RATIO:
        return policy.min_shared * FRAMED_FACTOR
    return policy.min_shared * (CUT_FACTOR if overlap.size_ratio < CUT_RATIO else 1)


def figures_changed(a: Sequence[int], b: Sequence[int]) -> bool:
    """True when each text has a figure the other lacks: a toll or price was replaced, not just cut off."""
    first, second = set(a), set(b)
    return bool(first - second) and bool(second - first)


def _age(candidate: Candidate) -> tuple[int, str]:
    return candidate.record.number, candidate.record.id
