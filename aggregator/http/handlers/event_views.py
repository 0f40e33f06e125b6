"""From an event of the detector to the JSON of the contract. Pure."""

from __future__ import annotations

from aggregator.contract import requests, responses
from aggregator.contract.encoding import when
from aggregator.events.detection.model import Action, Event
from aggregator.events.filter import EventQuery


def wanted(query: requests.SavedFilter) -> EventQuery:
    """The filter that a query itself asks for, without the watch it may name."""
    return EventQuery(query.term.strip(), query.source.strip(), query.lang, query.min_size, query.status)


def event(given: Event) -> responses.EventOut:
    """An event in a list."""
    return responses.EventOut(
        id=given.id,
        title=given.title,
        status=given.status,
        detected_at=when(given.detected_at_ms),
        first_seen=when(given.first_seen_ms),
        last_seen=when(given.last_seen_ms),
        size=given.size,
        sightings=given.sightings,
        peak=given.peak,
        rate=given.rate,
        expected=round(given.expected, 2),
        sources=list(given.sources),
        languages=list(given.languages),
        terms=list(given.terms),
        reason=given.reason,
        merged_into=given.merged_into,
        absorbed=list(given.absorbed),
        acknowledged_by=given.acknowledged_by,
        muted=given.muted,
        false_alarm=given.false_alarm,
        actions=[action(done) for done in given.actions],
        revision=given.revision,
    )


def action(given: Action) -> responses.ActionOut:
    """One entry of the audit trail."""
    return responses.ActionOut(
        action=given.action,
        actor=given.actor,
        at=when(given.at_ms),
        event=given.event,
        scope=given.scope,
        into=given.into,
        item=given.item,
    )


def detail(given: Event, articles: list[responses.ArticleRef]) -> responses.EventDetailOut:
    """The special report."""
    short = event(given)
    return responses.EventDetailOut(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        timeline=[responses.TimelinePoint(when(at_ms), items) for at_ms, items in given.timeline],
        items=list(given.items),
        cosines=list(given.cosines),
        first_source=given.sources[0] if given.sources else "",
        headline_id=given.headline_id,
        articles=articles,
    )
