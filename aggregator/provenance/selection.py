"""Selection from the report on outlets: by name, in an order, one page; families of given outlets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aggregator.provenance.statistics import SourcesReport, SourceStatistics

SourceOrder = Literal["articles", "originals", "copies", "copied", "lag"]

# Ties stay in the order of the report, by number of articles.
_SORT_KEYS: Mapping[SourceOrder, Callable[[SourceStatistics], Any]] = {
    "articles": lambda source: -source.articles,
    "originals": lambda source: -source.originals / source.articles,
    "copies": lambda source: -source.copies / source.articles,
    "copied": lambda source: -source.copied,
    "lag": lambda source: (source.median_lag_ms is None, source.median_lag_ms),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """One page of outlets; ``total``: outlets that match, ``next_offset``: None on the last page."""

    sources: tuple[SourceStatistics, ...]
    total: int
    next_offset: int | None


def select(report: SourcesReport, text: str, order: SourceOrder, offset: int, limit: int) -> Selection:
    """The outlets whose name contains ``text``, ignoring case; "originals" and "copies" by their share."""
    wanted = text.strip().casefold()
    found = [source for source in report.sources if wanted in source.name.casefold()]
    found.sort(key=_SORT_KEYS[order])
    end = offset + limit
    return Selection(tuple(found[offset:end]), len(found), end if end < len(found) else None)


def families_among(report: SourcesReport, outlets: Collection[str]) -> list[tuple[str, ...]]:
    """The members among ``outlets`` of each family that has two or more of them."""
    present = [tuple(name for name in family.members if name in outlets) for family in report.families]
    return [members for members in present if len(members) > 1]
