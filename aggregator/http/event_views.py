"""From an event of the detector to the JSON of the contract. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.http import schemas
from aggregator.http.views import when, when_or_none

if TYPE_CHECKING:
    from aggregator.bursts import Event


def event(given: Event) -> schemas.EventOut:
    """An event in a list."""
    return schemas.EventOut(
        id=given.id,
        title=given.title,
        status=given.status,
        detected_at=when_or_none(given.detected_at_ms),
        first_seen=when_or_none(given.first_seen_ms),
        last_seen=when_or_none(given.last_seen_ms),
        size=given.size,
        peak=given.peak,
        sources=list(given.sources),
        expected=given.expected,
        terms=list(given.terms),
        reason=given.reason,
    )


def detail(given: Event, articles: list[schemas.ArticleRef]) -> schemas.EventDetailOut:
    """The special report."""
    short = event(given)
    return schemas.EventDetailOut(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        timeline=[schemas.TimelinePoint(when(at_ms), items) for at_ms, items in given.timeline],
        items=list(given.items),
        articles=articles,
    )
