"""Copy rule of the policy ``verified``: whether two articles are copies of one text. Pure.

Two copies share wording, and they begin alike or have one headline: without that, what two articles of a
site share is a background section, a list of other stories or captions. How much they must share depends on
where and when they appeared: one row of its part of a table (docs/design/duplicate-rules.md).

The opening of one text may be anywhere in the other one. What two outlets have printed is the report, not a
quotation: who shares enough with two copies need not begin like them (``shares_enough``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from aggregator.analysis.shingles import OverlapEstimate
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

    ``overlap``: shared wording. ``similarity``: cosine of the stored terms, 0..1. ``distance`` in bits.
    ``hours_apart``: between the publications, or between the arrivals if one is undated; None: unknown.
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
    for a_ms, b_ms in ((a_published_ms, b_published_ms), (a_arrived_ms, b_arrived_ms)):
        if a_ms is not None and b_ms is not None:
            return abs(a_ms - b_ms) / HOUR_MS
    return None


def figures_changed(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether each text has a figure that the other lacks: a toll or price was replaced, not just cut off."""
    first, second = set(a), set(b)
    return bool(first - second) and bool(second - first)


SAME_LENGTH_RATIO = 0.8  # texts whose lengths differ less are equally long
EQUAL_HEADLINES = 0.9  # headlines at least as similar (0..1) name the same subject
HALF = 0.5  # so much of its wording, and of its opening, a teaser shares with its story


def may_be_summary(overlap: OverlapEstimate) -> bool:
    """Whether one text has the beginning of the other: a teaser if they have one headline, however short."""
    return (
        overlap.size_ratio < SAME_LENGTH_RATIO
        and overlap.containment >= HALF
        and overlap.common_opening >= HALF
    )


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of the table: what two copies must share besides the containment, 0..1 (or ``inf``: never)."""

    containment: float
    opening: float = inf
    common_opening: float = inf
    headline: float = inf


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The rows of the table by outlet and time, and the shingles that all need below strong containment.

    ``strong``: containment that replaces ``shared``, shared shingles times containment.
    """

    other_outlet: tuple[Requirement, ...]
    same_outlet: tuple[Requirement, ...]
    later: tuple[Requirement, ...]
    same_outlet_hours: float
    strong: float
    shared: float

    def rows(self, evidence: Evidence) -> tuple[Requirement, ...]:
        """The part of the table that applies to a pair."""
        if not evidence.same_outlet:
            return self.other_outlet
        is_later = evidence.hours_apart is not None and evidence.hours_apart > self.same_outlet_hours
        return self.later if is_later else self.same_outlet

    def may_match(self, overlap: OverlapEstimate) -> bool:
        """Whether a pair with this wording can meet requirements; False for nearly all pairs."""
        rows = (*self.other_outlet, *self.same_outlet, *self.later)
        return may_be_summary(overlap) or self._shares_enough(overlap, rows)

    def begins_alike(self, evidence: Evidence, headlines: float) -> bool:
        """Whether an opening or the headlines are those of copies: what is around a text is neither."""
        return any(evidence.overlap.opening >= r.opening or headlines >= r.headline for r in self.same_outlet)

    def is_copy_or_summary(self, evidence: Evidence, headline_similarity: Callable[[], float]) -> bool:
        """Whether the pair meets its requirements, or one text is a teaser of the other."""
        return self.is_copy(evidence, headline_similarity) or (
            may_be_summary(evidence.overlap) and headline_similarity() >= EQUAL_HEADLINES
        )

    def is_copy(self, evidence: Evidence, headline_similarity: Callable[[], float]) -> bool:
        """Whether the pair meets its requirements; ``headline_similarity`` is called only if it decides."""
        overlap = evidence.overlap
        rows = [row for row in self.rows(evidence) if self._shares_enough(overlap, (row,))]
        opening, common_opening = overlap.opening, overlap.common_opening
        if any(opening >= row.opening or common_opening >= row.common_opening for row in rows):
            return True
        headline = min((row.headline for row in rows), default=inf)
        return headline < inf and headline_similarity() >= headline

    def shares_enough(self, evidence: Evidence) -> bool:
        """Whether the pair meets its requirements apart from those on openings and headlines."""
        return self._shares_enough(evidence.overlap, self.rows(evidence))

    def _shares_enough(self, overlap: OverlapEstimate, rows: tuple[Requirement, ...]) -> bool:
        # Every article is compared with many others: an estimate that is too high by chance must not decide.
        containment = overlap.containment - overlap.error
        return any(containment >= row.containment for row in rows) and (
            containment >= self.strong or overlap.shared * containment >= self.shared
        )
