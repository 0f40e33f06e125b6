"""Events and storylines as response bodies of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from aggregator.app import Service
from aggregator.contract import responses
from aggregator.contract.encoding import article_ref, to_datetime
from aggregator.events.detection.known_history import LearningStatus
from aggregator.events.developments import Development, developments, sample_items
from aggregator.events.event import EditorAction, Event
from aggregator.events.event_order import growth, severity
from aggregator.events.formatting import plain_title
from aggregator_client import wire

# Fields that have the same name and value in the response.
_EQUAL_EVENT_FIELDS = (
    *("id", "status", "size", "sightings", "peak", "rate", "reason", "merged_into", "translation_of"),
    *("acknowledged_by", "muted", "false_alarm", "assignee", "work_status", "revision"),
)


@dataclass(frozen=True, slots=True)
class Storyline:
    """A storyline: events in order of detection. ``id``: of the first one, which may have expired."""

    id: str
    events: tuple[Event, ...]
    developments: tuple[Development, ...]

    @property
    def latest(self) -> Event:
        """The event detected last."""
        return self.events[-1]


async def load_storyline(service: Service, story_id: str) -> Storyline:
    """The storyline with this id. Raises NotFound, StoreUnavailable."""
    events = await service.events.story_events(story_id)
    stored = await service.index.articles.get_many(sample_items(events))
    articles = {id_: article.record for id_, article in stored.items()}
    return Storyline(story_id, tuple(events), tuple(developments(events, articles)))


def learning_out(status: LearningStatus | None) -> wire.LearningOut | None:
    """The learning status; null when learning is complete, or the status unknown."""
    if status is None or status.is_complete:
        return None
    return wire.LearningOut(floor(10 * status.known_days) / 10, status.needed_days)


def event_out(event: Event, now_ms: int) -> wire.EventOut:
    """An event in a list, with its severity at ``now_ms``."""
    rates = growth(event, now_ms)
    return wire.EventOut(
        **{name: getattr(event, name) for name in _EQUAL_EVENT_FIELDS},
        title=plain_title(event.title),
        severity=severity(event, now_ms),
        detected_at=to_datetime(event.detected_at_ms),
        first_seen=to_datetime(event.first_seen_ms),
        last_seen=to_datetime(event.last_seen_ms),
        expected=round(event.expected, 2),
        last_hour=rates.last_hour,
        hour_before=rates.hour_before,
        sources=list(event.sources),
        languages=list(event.languages),
        terms=list(event.terms),
        story_id=event.story_id or event.id,
        absorbed=list(event.absorbed),
        actions=[action_out(action) for action in event.actions],
        note_count=len(event.notes),
    )


def action_out(action: EditorAction) -> wire.ActionOut:
    """One entry of the audit trail."""
    equal = {name: getattr(action, name) for name in wire.ActionOut.__struct_fields__ if name != "at"}
    return wire.ActionOut(at=to_datetime(action.at_ms), **equal)


def event_detail_out(
    event: Event,
    now_ms: int,
    articles: list[wire.ArticleRef],
    previous: Event | None,
    following: Event | None,
) -> wire.EventDetailOut:
    """The report on one event, with its neighbors in the storyline."""
    short = event_out(event, now_ms)
    return wire.EventDetailOut(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        timeline=[wire.TimelinePoint(to_datetime(at_ms), items) for at_ms, items in event.timeline],
        items=list(event.items),
        cosines=list(event.cosines),
        first_source=event.sources[0] if event.sources else "",
        headline_id=event.headline_id,
        headline_is_chosen=event.chosen_headline is not None,
        notes=[wire.NoteOut(n.id, n.actor, to_datetime(n.at_ms), n.text) for n in event.notes],
        articles=articles,
        previous=previous.id if previous else None,
        next=following.id if following else None,
    )


def story_out(story: Storyline, now_ms: int) -> responses.StoryOut:
    """A storyline."""
    return responses.StoryOut(
        id=story.id,
        title=story.latest.title,
        first_seen=to_datetime(min(event.first_seen_ms for event in story.events)),
        last_seen=to_datetime(max(event.last_seen_ms for event in story.events)),
        events=[event_out(event, now_ms) for event in story.events],
        developments=[
            responses.DevelopmentOut(
                day=to_datetime(found.day_ms).date(),
                event_id=found.event.id,
                title=found.article.title if found.article else plain_title(found.event.title),
                items=found.items,
                article=article_ref(found.article) if found.article else None,
            )
            for found in story.developments
        ],
    )
