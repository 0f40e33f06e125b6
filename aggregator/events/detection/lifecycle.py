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
from aggregator.events.detection.baseline import NONE_USUAL
from aggregator.events.detection.clustering import Member, Stories, Story, Weigh
from aggregator.events.detection.model import HOUR_MS, BurstRule, Change, Event, Kind
from aggregator.events.detection.open_event import OpenEvent

MINUTE_MS = 60_000


class EventBook:
    """Events by id, in order of detection. ``weigh``: what a term says now; ``idf``: what it says at any time."""

    def __init__(self, rule: BurstRule, stories: Stories, weigh: Weigh, idf: Weigh) -> None:
        self.open: dict[str, OpenEvent] = {}
        self.grown: dict[str, None] = {}
        self._rule = rule
        self._stories = stories
        self._weigh = weigh
        self._idf = idf
        self._touched: dict[str, None] = {}
        self._turns: list[tuple[Kind, int, OpenEvent]] = []

    def of(self, story: Story) -> OpenEvent | None:
        """The event that this story has become."""
        return None if story.event is None else self.open[story.event]

    def changes(self) -> list[Change]:
        """What happened since the last call, in order; each with the event as it stands now."""
        turned = [Change(kind, at_ms, event.shown(), _handed(event)) for kind, at_ms, event in self._turns]
        told = {change.event.id for change in turned}
        grown = [
            Change("updated", event.last_seen_ms, event.shown(), _handed(event))
            for event in (self.open[e] for e in self._touched if e in self.open)
            if event.id not in told
        ]
        self._turns, self._touched = [], {}
        return turned + grown

    def shown(self) -> list[Event]:
        """The values that readers get."""
        return [event.shown() for event in self.open.values()]

    # -- what happens to an event --------------------------------------------------------------

    def fire(self, story: Story, clock_ms: int, expected: float) -> None:
        """The story becomes an event."""
        event = OpenEvent(story.id, story.key, clock_ms, expected, "", sightings=story.sightings)
        story.event = event.id
        self.open[event.id] = event
        self.extend(story, sorted(story.members.values(), key=lambda m: (m.at_ms, m.number)))
        self._describe(event)
        event.reason = self._reason(event, story)
        event.told_size = event.size
        self._turns.append(("fired", clock_ms, event))

    def extend(self, story: Story, members: Iterable[Member]) -> None:
        """Items joined the story of an event, in this order."""
        event = self.open[story.event or ""]
        for member in members:
            event.add(member)
        event.peak = max(event.peak, min(story.firing, event.size))  # no more than are shown
        self._mark(event)

    def sight(self, story: Story, now_ms: int) -> None:
        """A copy that does not count was seen."""
        event = self.of(story)
        if event is not None:
            event.sightings += 1
            event.last_seen_ms = max(event.last_seen_ms, now_ms)
            self._touched[event.id] = None

    def take_over(self, story: Story, lost: OpenEvent, clock_ms: int) -> None:
        """The event of ``story`` goes on with what ``lost`` has; both are of one story by now."""
        event = self.open[story.event or ""]
        event.absorb(lost)
        event.peak = max(event.peak, min(story.firing, event.size))  # no more than are shown
        lost.status, lost.merged_into, lost.arrivals = "closed", event.id, []
        self._turns.append(("merged", clock_ms, lost))
        self._mark(event)

    def close(self, story: Story, clock_ms: int) -> None:
        """Nothing of it is left in the window."""
        event = self.open.pop(story.event or "")
        event.status = "closed"
        self._turns.append(("closed", clock_ms, event))

    def end(self, event_id: str, into: str, clock_ms: int) -> None:
        """Editors gave it to an event that is not open any more."""
        event = self.open.pop(event_id)
        event.status, event.merged_into = "closed", into
        self._turns.append(("merged", clock_ms, event))

    def take_down(self, article_id: str) -> None:
        """An article is gone; its headline must not stand for an event a moment longer (``refresh``)."""
        for event in self.open.values():
            if article_id in event.items:
                event.remove(article_id)
                event.title, event.words = "", {}
                self._mark(event)

    # -- house-keeping -------------------------------------------------------------------------

    def keep(self) -> Iterator[None]:
        """Once a minute: breaking or fading, and the headlines of what grew; in pieces, one event each."""
        for event in self.open.values():
            self._age(event)
        yield from self._describe_all(self.grown)
        self.grown = {}

    def refresh(self) -> None:
        """Choose the headlines of all events that changed again, at once."""
        for _ in self._describe_all(self._touched):
            pass

    def _age(self, event: OpenEvent) -> None:
        items = self._stories.open[event.story].firing
        if event.status == "breaking" and items * 2 <= event.peak:
            event.status = "fading"
        elif event.status == "fading" and items > self._rule.items and items * 2 > event.peak:
            event.status = "breaking"
        else:
            return
        self._touched[event.id] = None

    def _describe_all(self, ids: Iterable[str]) -> Iterator[None]:
        for id_ in ids:
            if id_ in self.open:
                self._describe(self.open[id_])
                yield

    def _describe(self, event: OpenEvent) -> None:
        """Headline and terms, from the items in the window; a fading event keeps those of its height."""
        if event.status == "fading" and event.title:
            return
        story = self._stories.open[event.story]
        headline = key_terms.medoid(story, self._weigh)
        event.title, event.headline_id = headline.title, headline.id
        event.terms = key_terms.heaviest(story, self._weigh)
        if not event.words.keys() >= set(event.terms):
            event.words = surface_forms.words(event.terms, story.members.values())
        event.profile = profile.of(story, self._idf)

    def _reason(self, event: OpenEvent, story: Story) -> str:
        minutes = (event.last_seen_ms - event.first_seen_ms) // MINUTE_MS
        sources = len(event.sources)
        outlets = f"{sources} source{'s' * (sources != 1)}" if sources else "sources without a name"
        about = ", ".join(event.words[term] or term for term in event.terms[:3])
        return (
            f"{story.firing} items from {outlets} in "
            f"{_duration(minutes)} about {about}, where {_usual(event.expected)} in "
            f"{self._rule.window_ms / HOUR_MS:g} h; more than {self._rule.items} make an event."
        )

    def _mark(self, event: OpenEvent) -> None:
        self.grown[event.id] = self._touched[event.id] = None
        if event.told_size and event.size >= 2 * event.told_size:
            event.told_size = event.size
            self._turns.append(("doubled", event.last_seen_ms, event))


def _duration(minutes: int) -> str:
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _usual(expected: float) -> str:
    return "none is usual" if expected < NONE_USUAL else f"{expected:.1f} are usual"


def _handed(event: OpenEvent) -> tuple[int, ...]:
    handed, event.arrivals = tuple(event.arrivals), []
    return handed
