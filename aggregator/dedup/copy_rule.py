"""Copy rule of the policy ``verified``: whether two articles are copies of one text. Pure.

Two copies share wording, and they begin alike or have one headline: without that, what two articles of a
site share is a background section, a list of other stories or captions. How much they must share depends on
where and when they appeared. A pair is a copy if it meets one row of its part of the table (numbers:
``Policy`` in ``policy.py``):

    outlets           published          containment   opening   both openings   headline
    other or unknown  at any time        0.2                     0.35            0.8
                                         0.35          0.35
                                         0.6
    the same          within 16 hours    0.7           0.5                       0.8
    the same          later              0.9                                     0.9
                                         0.96          0.5

The opening of one text may be anywhere in the other one; "both openings" is what both begin with. An outlet
that prints similar text again reports how a story developed. After 16 hours it is the article of another day:
a text that is sent again keeps its headline, and a template names in it what it exchanges. Another outlet has
shortened or framed a report of an agency, or it quotes the same statement: then the quotation is in the
opening of one text and further down in the other. What two outlets have printed already is the report, not
the quotation, so an article that shares enough with two of their copies need not begin like them
(``shares_enough``). Unless containment is strong (0.75), the texts must also share some terms and a number of
shingles: 30, within one outlet 60, and 45 if they are about equally long and share less than half, since that
is a report written anew rather than a shortened one. Two articles of different outlets under one headline
(similarity 0.9) that share 0.3 need only 20: less remains of a short text, or of one below a list of other
stories, whose lead another outlet has rewritten. Two short texts of equal length with other names are
fillings of one template.

Chosen on labelled pairs, edited copies and pairs judged by hand (docs/benchmarks/duplicates.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aggregator.analysis.analyzer import MAX_TERMS
from aggregator.analysis.shingles import OverlapEstimate
from aggregator.analysis.text.names import same_name
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Sketch, WeightedTerms
from aggregator.time_units import HOUR_MS


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
    def text_words(self) -> int:
        """Words of the text without the headline."""

    @property
    def own_headline(self) -> float:
        """Share of the headline's terms that occur in the text, 0..1."""

    @property
    def figures(self) -> tuple[int, ...]:
        """Hashes of the numbers in the text."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a pair of articles, in either order, apart from the articles themselves.

    ``overlap``: shared wording.
    ``similarity``: cosine of the stored terms, 0..1. ``distance`` in bits. ``hours_apart``: between the
    publications, or between the arrivals if one is undated; None: unknown.
    """

    overlap: OverlapEstimate
    similarity: float = 0.0
    distance: int = 0
    same_outlet: bool = False
    hours_apart: float | None = None


def is_same_outlet(a: str, b: str) -> bool:
    """Whether two sources are known and the same, by ``source_key``."""
    return bool(a) and source_key(a) == source_key(b)


def hours_between(
    a_published_ms: int | None,
    b_published_ms: int | None,
    a_arrived_ms: int | None = None,
    b_arrived_ms: int | None = None,
) -> float | None:
    """Hours, >= 0, between the publications as stated; between the arrivals if one has no date; or None."""
    if a_published_ms is not None and b_published_ms is not None:
        return abs(a_published_ms - b_published_ms) / HOUR_MS
    if a_arrived_ms is not None and b_arrived_ms is not None:
        return abs(a_arrived_ms - b_arrived_ms) / HOUR_MS
    return None


# Two fillings of one template agree in length.
SAME_LENGTH_RATIO = 0.8
# Two fillings differ in the names, which are the top terms; a duplicate with reordered sentences keeps them.
# Texts that agree nearly completely are not tested for this.
TEMPLATE_MAX_SIMILARITY, NEAR_COMPLETE_CONTAINMENT = 0.85, 0.85
# Of a long text two fillings share less.
COPY_CONTAINMENT, COPY_SHINGLES = 0.9, 100
# Two fillings may differ in the figures instead; a duplicate, and even an update, keeps most of them.
TEMPLATE_MIN_FIGURES, TEMPLATE_MAX_COMMON_FIGURES_RATIO = 4, 0.2
# A term heavier than this factor times the lightest term of a full list would have been in the list (texts of
# equal length have term vectors of about equal norm), so its absence is significant.
OMITTED_TERM_FACTOR = 1.25


def same_template_other_figures(
    overlap: OverlapEstimate, figures_a: Sequence[int], figures_b: Sequence[int]
) -> bool:
    """Whether two equally long texts each have ``TEMPLATE_MIN_FIGURES`` figures, few of them in both."""
    first, second = set(figures_a), set(figures_b)
    fewer = min(len(first), len(second))
    return (
        overlap.size_ratio >= SAME_LENGTH_RATIO
        and overlap.containment < NEAR_COMPLETE_CONTAINMENT
        and fewer >= TEMPLATE_MIN_FIGURES
        and len(first & second) < TEMPLATE_MAX_COMMON_FIGURES_RATIO * fewer
    )


def same_template_other_names(overlap: OverlapEstimate, a: WeightedTerms, b: WeightedTerms) -> bool:
    """Whether two texts are one template with other names; ``a`` and ``b`` are their top terms, descending.

    Equally long, and the top terms of each are missing in the other; or, with complete samples, the missing
    terms make up more than ``1 - TEMPLATE_MAX_SIMILARITY`` of the squared norm on both sides.
    """
    is_copy = overlap.containment >= COPY_CONTAINMENT and overlap.shared >= COPY_SHINGLES
    if overlap.size_ratio < SAME_LENGTH_RATIO or overlap.containment == 1.0 or is_copy:
        return False
    first, second = _unique_terms(a, b), _unique_terms(b, a)
    if _includes_top_terms(first, a) and _includes_top_terms(second, b):
        return True
    exchanged = min(sum(weight * weight for _, weight in unique) for unique in (first, second))
    return overlap.error == 0.0 and exchanged > 1.0 - TEMPLATE_MAX_SIMILARITY


def figures_changed(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether each text has a figure that the other lacks: a toll or price was replaced, not just cut off."""
    first, second = set(a), set(b)
    return bool(first - second) and bool(second - first)


def _unique_terms(terms: WeightedTerms, others: WeightedTerms) -> list[tuple[str, float]]:
    """The terms that only ``terms`` has in any spelling, but figures and what ``others`` may have dropped."""
    known = {term for term, _ in others}
    min_weight = others[-1][1] * OMITTED_TERM_FACTOR if len(others) >= MAX_TERMS else 0.0
    return [
        (term, weight)
        for term, weight in terms
        if weight > min_weight
        and term not in known
        and not term.isdecimal()
        and not any(same_name(term, other) for other in known)
    ]


def _includes_top_terms(unique: WeightedTerms, terms: WeightedTerms) -> bool:
    weights = [weight for term, weight in terms if not term.isdecimal()]
    return bool(unique) and sum(weight == weights[0] for _, weight in unique) == weights.count(weights[0])


# A headline alone does not identify a text whose subject differs (a weekly column).
HEADLINE_MIN_SIMILARITY = 0.2
# Two texts of about equal length that share less are two reports with common passages.
REWRITTEN_MAX_CONTAINMENT = 0.5
# Headlines at least as similar (0..1) name the same subject.
EQUAL_HEADLINES = 0.9
# Two texts under one headline that share less are two reports.
ONE_HEADLINE_MIN_CONTAINMENT = 0.3
NEVER = 2.0  # a share or similarity that no pair reaches


# A teaser shares so much of its wording, and of its opening, with its story.
SUMMARY_SHARE = 0.5


def may_be_summary(overlap: OverlapEstimate) -> bool:
    """Whether one text has the beginning of the other: a teaser if they have one headline, however short."""
    return (
        overlap.size_ratio < SAME_LENGTH_RATIO
        and overlap.containment >= SUMMARY_SHARE
        and overlap.common_opening >= SUMMARY_SHARE
    )


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of the table: what two copies must share besides the containment, 0..1 (or ``NEVER``)."""

    containment: float
    opening: float = NEVER
    common_opening: float = NEVER
    headline: float = NEVER


@dataclass(frozen=True, slots=True)
class Requirements:
    """The rows for one kind of pair, and the shingles that it must share below strong containment.

    ``shared_at_equal_length``: the shingles if the texts are about equally long and share less than half;
    ``shared_under_one_headline``: if the headlines are equal.
    """

    rows: tuple[Requirement, ...]
    shared: float
    shared_at_equal_length: float
    shared_under_one_headline: float
    # The least containment of any row, and of shingles for a pair below strong containment.
    containment: float = field(init=False)
    least_shared: float = field(init=False)

    def __post_init__(self) -> None:
        least_shared = min(self.shared, self.shared_at_equal_length, self.shared_under_one_headline)
        object.__setattr__(self, "containment", min(row.containment for row in self.rows))
        object.__setattr__(self, "least_shared", least_shared)


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The table by outlet and time. ``strong``: containment that replaces the number of shared shingles."""

    other_outlet: Requirements
    same_outlet: Requirements
    later: Requirements
    same_outlet_hours: float
    strong: float
    similarity: float

    def requirements(self, evidence: Evidence) -> Requirements:
        """The part of the table that applies to a pair."""
        if not evidence.same_outlet:
            return self.other_outlet
        is_later = evidence.hours_apart is not None and evidence.hours_apart > self.same_outlet_hours
        return self.later if is_later else self.same_outlet

    def may_match(self, overlap: OverlapEstimate, *, same_outlet: bool) -> bool:
        """Whether a pair with this wording can meet its requirements; False for nearly all pairs."""
        if may_be_summary(overlap):
            return True
        containment = overlap.containment - overlap.error
        parts = (self.same_outlet, self.later) if same_outlet else (self.other_outlet,)
        return any(
            containment >= part.containment
            and (containment >= self.strong or overlap.shared >= part.least_shared)
            for part in parts
        )

    def is_copy_or_summary(self, evidence: Evidence, headline_similarity: Callable[[], float]) -> bool:
        """Whether the pair meets its requirements, or one text is a teaser of the other."""
        return self.is_copy(evidence, headline_similarity) or (
            may_be_summary(evidence.overlap) and headline_similarity() >= EQUAL_HEADLINES
        )

    def is_copy(self, evidence: Evidence, headline_similarity: Callable[[], float]) -> bool:
        """Whether the pair meets its requirements; ``headline_similarity`` is called only if it decides."""
        required, overlap = self.requirements(evidence), evidence.overlap
        # Every article is compared with many others: an estimate that is too high by chance must not decide.
        containment = overlap.containment - overlap.error
        rows = [row for row in required.rows if containment >= row.containment]
        if not rows or not self._shares_enough(required, containment, evidence, headline_similarity):
            return False
        if any(
            overlap.opening >= row.opening or overlap.common_opening >= row.common_opening for row in rows
        ):
            return True
        headline = min(row.headline for row in rows)
        return (
            headline < NEVER
            and evidence.similarity >= HEADLINE_MIN_SIMILARITY
            and headline_similarity() >= headline
        )

    def shares_enough(self, evidence: Evidence, headline_similarity: Callable[[], float]) -> bool:
        """Whether the pair meets its requirements apart from those on openings and headlines."""
        required = self.requirements(evidence)
        containment = evidence.overlap.containment - evidence.overlap.error
        return containment >= required.containment and self._shares_enough(
            required, containment, evidence, headline_similarity
        )

    def _shares_enough(
        self,
        required: Requirements,
        containment: float,
        evidence: Evidence,
        headline_similarity: Callable[[], float],
    ) -> bool:
        overlap = evidence.overlap
        is_equally_long = overlap.size_ratio >= SAME_LENGTH_RATIO
        # Most of the wording is shared, but not the top terms.
        looks_templated = (
            is_equally_long
            and overlap.containment < NEAR_COMPLETE_CONTAINMENT
            and evidence.similarity < TEMPLATE_MAX_SIMILARITY
        )
        if containment >= self.strong and not looks_templated:
            return True
        if evidence.similarity < self.similarity:
            return False
        written_anew = is_equally_long and containment < REWRITTEN_MAX_CONTAINMENT
        needed = required.shared_at_equal_length if written_anew else required.shared
        return overlap.shared >= needed or (
            overlap.shared >= required.shared_under_one_headline
            and containment >= ONE_HEADLINE_MIN_CONTAINMENT
            and headline_similarity() >= EQUAL_HEADLINES
        )
