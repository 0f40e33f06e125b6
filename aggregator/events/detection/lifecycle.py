"""The open events: how each fires, grows, fades, is merged and closes, and what of it was not told yet.

On a timeline (15 items, 4 h; looked at once a minute)::

    12:00  16 items within 4 h                breaking (fired): told
    12:40  32 items in all                    doubled: told; again at 64
    13:10  peak of 40 items within 4 h
    15:00  21 of them are left in the window  breaking: more than half the peak
    15:01  20 left                            fading: half of it
    15:30  24 left                            breaking again: over 15 and over half; not told
    19:30  last item exactly 4 h old          fading
    19:30:00.001                              closed: told. What comes now begins a new story
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aggregator.events.detection import key_terms, profile, surface_forms
from aggregator.events.detection.baseline import NEGLIGIBLE_DOCUMENTS
from aggregator.events.detection.clustering import Story, StoryIndex, TermWeigher, WindowItem
from aggregator.events.detection.model import BurstRule, ChangeKind, Event, EventChange
from aggregator.events.detection.open_event import OpenEvent
from aggregator.time_units import HOUR_MS, MINUTE_MS


class OpenEvents:
    """Events by id, in order of detection. ``weigh``: what a term says now; ``idf``: what it says at any time."""

    def __init__(self, rule: BurstRule, stories: StoryIndex, weigh: TermWeigher, idf: TermWeigher) -> None:
        self.by_id: dict[str, OpenEvent] = {}
        self.needs_headline: dict[str, None] = {}
        self._rule = rule
        self._stories = stories
        self._weigh = weigh
        self._idf = idf
        self._updated: dict[str, None] = {}
        self._transitions: list[tuple[ChangeKind, int, OpenEvent]] = []

    def event_of_story(self, story: Story) -> OpenEvent | None:
        """The event that this story has become."""
        return None if story.event_id is None else self.by_id[story.event_id]

    def drain_changes(self) -> list[EventChange]:
        """What happened since the last call, in order; each with the event as it stands now."""
        turned = [
            EventChange(kind, at_ms, event.to_event(), _drain_pending_numbers(event))
            for kind, at_ms, event in self._transitions
        ]
        told = {change.event.id for change in turned}
        grown = [
            EventChange("updated", event.last_seen_ms, event.to_event(), _drain_pending_numbers(event))
            for event in (self.by_id[e] for e in self._updated if e in self.by_id)
            if event.id not in told
        ]
        self._transitions, self._updated = [], {}
        return turned + grown

    def to_events(self) -> list[Event]:
        """The values that readers get."""
        return [event.to_event() for event in self.by_id.values()]

    # -- what happens to an event --------------------------------------------------------------

    def fire(self, story: Story, clock_ms: int, expected: float) -> None:
        """The story becomes an event."""
        event = OpenEvent(story.id, story.key, clock_ms, expected, "", sightings=story.sightings)
        story.event_id = event.id
        self.by_id[event.id] = event
        self.add_items(story, sorted(story.members.values(), key=lambda m: (m.at_ms, m.number)))
        self._describe(event)
        event.reason = self._format_reason(event, story)
        event.announced_size = event.size
        self._transitions.append(("fired", clock_ms, event))

    def add_items(self, story: Story, members: Iterable[WindowItem]) -> None:
        """Items joined the story of an event, in this order."""
        event = self.by_id[story.event_id or ""]
        for member in members:
            event.add(member)
        event.peak = max(event.peak, min(story.counted_items, event.size))  # no more than are shown
        self._mark_grown(event)

    def record_sighting(self, story: Story, now_ms: int) -> None:
        """A copy that does not count was seen."""
        event = self.event_of_story(story)
        if event is not None:
            event.sightings += 1
            event.last_seen_ms = max(event.last_seen_ms, now_ms)
            self._updated[event.id] = None

    def absorb(self, story: Story, absorbed: OpenEvent, clock_ms: int) -> None:
        """The event of ``story`` goes on with what ``lost`` has; both are of one story by now."""
        event = self.by_id[story.event_id or ""]
        event.absorb(absorbed)
        event.peak = max(event.peak, min(story.counted_items, event.size))  # no more than are shown
        absorbed.status, absorbed.merged_into, absorbed.pending_numbers = "closed", event.id, []
        self._transitions.append(("merged", clock_ms, absorbed))
        self._mark_grown(event)

    def close(self, story: Story, clock_ms: int) -> None:
        """Nothing of it is left in the window."""
        event = self.by_id.pop(story.event_id or "")
        event.status = "closed"
        self._transitions.append(("closed", clock_ms, event))

    def close_as_merged(self, event_id: str, into: str, clock_ms: int) -> None:
        """Editors gave it to an event that is not open any more."""
        event = self.by_id.pop(event_id)
        event.status, event.merged_into = "closed", into
        self._transitions.append(("merged", clock_ms, event))

    def remove_article(self, article_id: str) -> None:
        """An article is gone; its headline must not stand for an event a moment longer (``refresh``)."""
        for event in self.by_id.values():
            if article_id in event.items:
                event.remove_item(article_id)
                event.title, event.surface_forms = "", {}
                self._mark_grown(event)

    # -- once a minute -------------------------------------------------------------------------

    def run_minute_steps(self) -> Iterator[None]:
        """Update the status of all events, then the headline of each that grew; one step per headline."""
        for event in self.by_id.values():
            self._update_status(event)
        for event in self._still_open(self.needs_headline):
            self._describe(event)
            yield
        self.needs_headline = {}

    def refresh_headlines(self) -> None:
        """Choose the headline of every changed event again, without waiting for the next minute."""
        for event in self._still_open(self._updated):
            self._describe(event)

    def _update_status(self, event: OpenEvent) -> None:
        items = self._stories.by_key[event.story_key].counted_items
        if event.status == "breaking" and items * 2 <= event.peak:
            event.status = "fading"
        elif event.status == "fading" and items > self._rule.items and items * 2 > event.peak:
            event.status = "breaking"
        else:
            return
        self._updated[event.id] = None

    def _still_open(self, ids: Iterable[str]) -> list[OpenEvent]:
        return [self.by_id[id_] for id_ in ids if id_ in self.by_id]

    def _describe(self, event: OpenEvent) -> None:
        """Headline and terms, from the items in the window; a fading event keeps those of its height."""
        if event.status == "fading" and event.title:
            return
        story = self._stories.by_key[event.story_key]
        headline = key_terms.medoid(story, self._weigh)
        event.title, event.headline_id = headline.title, headline.id
        event.terms = key_terms.top_terms(story, self._weigh)
        if not event.surface_forms.keys() >= set(event.terms):
            event.surface_forms = surface_forms.surface_forms(event.terms, story.members.values())
        event.profile = profile.build_profile(story, self._idf)

    def _format_reason(self, event: OpenEvent, story: Story) -> str:
        minutes = (event.last_seen_ms - event.first_seen_ms) // MINUTE_MS
        sources = len(event.sources)
        outlets = f"{sources} source{'s' * (sources != 1)}" if sources else "sources without a name"
        about = ", ".join(event.surface_forms[term] or term for term in event.terms[:3])
        return (
            f"{story.counted_items} items from {outlets} in "
            f"{_format_duration(minutes)} about {about}, where {_format_expectation(event.expected)} in "
            f"{self._rule.window_ms / HOUR_MS:g} h; more than {self._rule.items} make an event."
        )

    def _mark_grown(self, event: OpenEvent) -> None:
        self.needs_headline[event.id] = self._updated[event.id] = None
        if event.announced_size and event.size >= 2 * event.announced_size:
            event.announced_size = event.size
            self._transitions.append(("doubled", event.last_seen_ms, event))


def _format_duration(minutes: int) -> str:
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _format_expectation(expected: float) -> str:
    return "none is usual" if expected < NEGLIGIBLE_DOCUMENTS else f"{expected:.1f} are usual"


def _drain_pending_numbers(event: OpenEvent) -> tuple[int, ...]:
    handed, event.pending_numbers = tuple(event.pending_numbers), []
    return handed
