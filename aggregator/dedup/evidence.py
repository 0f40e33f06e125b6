"""What the duplicate rules know about a pair of articles, apart from the articles themselves. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import Sketch, WeightedTerms
from aggregator.time_units import HOUR_MS


class Published(Protocol):
    """Where and when an article was published."""

    @property
    def source(self) -> str:
        """The outlet, "" if unknown."""

    @property
    def published_at_ms(self) -> int | None:
        """Publication time in ms since 1970 UTC, or None."""


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
class Arrival:
    """Where and when an article was published, and when it arrived (ms since 1970 UTC)."""

    source: str
    published_at_ms: int | None
    arrived_ms: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about two articles, in either order.

    ``overlap``: shared wording without boilerplate; ``boilerplate``: the share, 0..1, that this was.
    ``similarity``: cosine of the stored terms, 0..1. ``distance`` in bits. ``hours_apart``: between the
    publications, or between the arrivals if one is undated; None: unknown.
    """

    overlap: OverlapEstimate
    similarity: float = 0.0
    distance: int = 0
    same_outlet: bool = False
    hours_apart: float | None = None
    boilerplate: float = 0.0


def is_same_outlet(a: Published, b: Published) -> bool:
    """Whether two articles are of one known source; case does not count."""
    return is_same_source(a.source, b.source)


def is_same_source(a: str, b: str) -> bool:
    """Whether two sources are known and the same, by ``source_key``."""
    return bool(a) and source_key(a) == source_key(b)


def hours_between(
    a: Published, b: Published, a_arrived_ms: int | None = None, b_arrived_ms: int | None = None
) -> float | None:
    """Hours, >= 0, between the publications as stated; between the arrivals if one has no date; or None."""
    if a.published_at_ms is not None and b.published_at_ms is not None:
        return abs(a.published_at_ms - b.published_at_ms) / HOUR_MS
    if a_arrived_ms is not None and b_arrived_ms is not None:
        return abs(a_arrived_ms - b_arrived_ms) / HOUR_MS
    return None
