"""Loading of a storyline for its page and its route: events and key developments."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.app import Service
from aggregator.events.detection import Event
from aggregator.events.developments import Development, developments, sample_items


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
