"""Events and storylines as response bodies of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import msgspec

from aggregator.app import Service
from aggregator.contract import responses
from aggregator.contract.encoding import article_ref, fields_of, to_datetime
from aggregator.events.detection.known_history import LearningStatus
from aggregator.events.developments import Development, developments, sample_items
from aggregator.events.event import Event
from aggregator.events.event_order import growth, severity
from aggregator.events.formatting import plain_title
from aggregator_client import wire


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
    return fields_of(
        event,
        wire.EventOut,
        title=plain_title(event.title),
        severity=severity(event, now_ms),
        expected=round(event.expected, 2),
        last_hour=rates.last_hour,
        hour_before=rates.hour_before,
        story_id=event.story_id or event.id,
        actions=[fields_of(action, wire.ActionOut) for action in event.actions],
        note_count=len(event.notes),
    )


def event_detail_out(
    event: Event,
    now_ms: int,
    articles: list[wire.ArticleRef],
    previous: Event | None,
    following: Event | None,
) -> wire.EventDetailOut:
    """The report on one event, with its neighbors in the storyline."""
    return fields_of(
        event,
        wire.EventDetailOut,
        **msgspec.structs.asdict(event_out(event, now_ms)),
        timeline=[wire.TimelinePoint(to_datetime(at_ms), items) for at_ms, items in event.timeline],
        first_source=event.sources[0] if event.sources else "",
        headline_is_chosen=event.chosen_headline is not None,
        notes=[fields_of(note, wire.NoteOut) for note in event.notes],
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
