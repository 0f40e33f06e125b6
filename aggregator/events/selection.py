"""Which events are shown, and in what order; their severity. Pure.

**Severity**: how fast outlets report now, in one word. The first condition that holds decides:

    ended      the detector closed the event: no item within the window of the rule
    fading     the detector calls it fading (at most half its peak in the window), no item in the last hour,
               or not fast and in the last 2 hours at most at half the rate of its peak
    breaking   fast (10 items or a third of the peak in the last hour, not 1; not most items are doubtful; not
               of chance), new (detected or developed under 2 h ago)
    growing    fast, and at least twice as many items in the last hour as in the hour before
    emerging   new, not fast, and no fewer items in the last hour than in the hour before
    running    any other open event

**Urgency** is the order of the front page: items and voices of about the last 30 minutes against the usual
number, in doublings. What is usual is what was expected when the event fired, and half of what it had in a
half-hour of the three hours before the last one. More items in the last hour never lower it. Fading events
come after the others, last those without items in the last hour; then those of chance (3 items or less, as
after a split); then handled ones. An event that was seen, published or dropped is **back** when it developed
since, a toll of two outlets grew or was corrected, or as many items came as an alert needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, zip_longest
from math import exp2, log2, sqrt
from typing import Literal, NamedTuple, get_args
from urllib.parse import parse_qsl

import msgspec

from aggregator.analysis.source import outlet_key
from aggregator.analysis.text.normalization import normalize
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.domain import StreamItem
from aggregator.events.detection.model import CHANCE_ITEMS, EventStatus
from aggregator.events.detection.numbers import TIMELINE_BUCKET_MS, arrivals_of, course_of, items_within
from aggregator.events.detection.top_stories import TopStory, story_size
from aggregator.events.event import EditorAction, Event, EventSummary
from aggregator.events.figures import Toll
from aggregator.time_units import HOUR_MS, MINUTE_MS
from aggregator_client.wire import ActionName, WorkStatus

Severity = Literal["emerging", "breaking", "growing", "running", "fading", "ended"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

NEW_MS = 2 * HOUR_MS
FAST_ITEMS, FAST_PEAK_PARTS, GROWING_RATIO = 10, 3, 2
# What is older by this time weighs half: in all, a steady rate weighs as much as its last half-hour.
HALF_LIFE_MS = 20 * MINUTE_MS
OWN_RATE_SHARE = 0.5
SETTLED: tuple[WorkStatus, ...] = ("published", "dropped")
STATUS_ACTIONS: tuple[ActionName, ...] = ("acknowledge", "assign", "set_work_status")
EventOrder = Literal["time", "novelty", "size", "surprise", "growth"]
PAGED_ORDERS: tuple[EventOrder, ...] = ("time", "novelty", "size")
# Sort key of an event in a paged order: a number, a time that decides between equal ones (ms), the id.
PageKey = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions that an event must all meet; an empty one matches every event.

    term      substring of the headline, or words that are all among the terms, in any case and width
    source    name of an outlet that reported the event, in any case; ``lang``: primary subtag of an item
    and_also, any_of, none_of   filters that must all match too, of which one must, of which none may
    """

    term: str = ""
    source: str = ""
    lang: str = ""
    min_size: int = 0
    status: EventStatus | None = None
    and_also: tuple[EventFilter, ...] = ()
    any_of: tuple[EventFilter, ...] = ()
    none_of: tuple[EventFilter, ...] = ()

    @classmethod
    def parse(cls, text: str) -> EventFilter:
        """The filter of a saved query string, which was validated when it was saved."""
        return msgspec.convert({k: value.strip() for k, value in parse_qsl(text)}, cls, strict=False)

    def matches(self, event: Event) -> bool:
        """Whether the event meets all conditions."""
        subtag = self.lang.replace("_", "-").partition("-")[0].lower()
        return (
            all(other.matches(event) for other in self.and_also)
            and (not self.any_of or any(other.matches(event) for other in self.any_of))
            and not any(other.matches(event) for other in self.none_of)
            and event.size >= self.min_size
            and self.status in (None, event.status)
            and (not self.source or outlet_key(self.source) in map(outlet_key, event.sources))
            and (not subtag or subtag in event.languages)
            and (not self.term or _matches_term(event, self.term))
        )

    def matches_article(self, item: StreamItem) -> bool:
        """Whether an article meets all conditions, whatever the size and status of its event."""
        terms = tuple(term for term, _ in item.terms)
        event = Event(
            item.id, item.title, self.status or "breaking", 0, 0, 0, 10**9, 0, 0, 0, 0.0, (item.source,),
            (), (), terms, (), "", languages=(item.lang,),
        )  # fmt: skip
        return self.matches(event)


_words_of = lru_cache(1024)(tokenize)  # of the terms of desks


def _matches_term(event: Event, term: str) -> bool:
    if normalize(term) in normalize(event.title):
        return True
    event_terms = set(event.terms)
    # Terms are stems of the event's languages, so the words are tokenized in each of them.
    candidates = (_words_of(term, lang) for lang in event.languages or ("en",))
    return any(words and event_terms.issuperset(words) for words in candidates)


class RankedStory(NamedTuple):
    """A story with its items and voices since a time."""

    story: TopStory
    items: int
    voices: int


def largest_stories(stories: Iterable[TopStory], wanted: EventFilter, since_ms: int) -> list[RankedStory]:
    """The stories that match and have items since a time, the largest first."""
    found = list[RankedStory]()
    for story in stories:
        outlets = zip_longest(story.event.times, story.event.outlets, fillvalue=-1)
        recent = [outlet for at_ms, outlet in outlets if at_ms > since_ms]
        if recent and wanted.matches(Event.of(story.event)):
            found.append(RankedStory(story, len(recent), len({*recent})))
    return sorted(found, key=lambda found: (-story_size(found.voices, found.items), found.story.event.id))


class Growth(NamedTuple):
    """Items in the course of an event in the last hour and in the hour before."""

    last_hour: int
    hour_before: int


def growth(event: Event, now_ms: int) -> Growth:
    """Items in the two hours before ``now_ms``; later ones count as of the last hour."""
    ages = [now_ms - at_ms for at_ms in course_of(event)]
    last_hour = sum(age_ms < HOUR_MS for age_ms in ages)
    if now_ms - event.first_seen_ms < HOUR_MS:  # with it count those that state an earlier date
        last_hour -= sum(0 < claim_ms <= now_ms - HOUR_MS for claim_ms in event.claims.values())
    return Growth(last_hour, sum(HOUR_MS <= age_ms < 2 * HOUR_MS for age_ms in ages))


def news_ms(event: Event) -> int:
    """Time of the last news of an event: of its detection or its last development, in ms since 1970."""
    return max([event.detected_at_ms, *(at_ms for at_ms, _ in event.developments)])


def severity(event: Event, now_ms: int) -> Severity:
    """The severity at ``now_ms``; see the module."""
    last, before = growth(event, now_ms)
    if event.status == "closed":
        return "ended"
    is_new, is_sure = now_ms - news_ms(event) < NEW_MS, 2 * len(event.doubtful) <= event.size
    is_fast = is_sure and not _is_chance(event) and 1 < last >= min(event.peak / FAST_PEAK_PARTS, FAST_ITEMS)
    is_slow = not is_fast and (last + before) * event.window_ms <= event.peak * HOUR_MS
    if event.status == "fading" or not last or is_slow:
        return "fading"
    if is_fast and (is_new or last >= GROWING_RATIO * before):
        return "breaking" if is_new else "growing"
    return "emerging" if is_new and last >= before else "running"


def _is_chance(event: Event) -> bool:
    """Whether so few items are left of the event that they would be none."""
    return event.size <= min(event.needed, CHANCE_ITEMS)


def urgency(event: Event, now_ms: int) -> tuple[float, float]:
    """Items and voices of the last half-hour: doublings above the usual, then their number."""
    items, voices = _recent(event.timeline, now_ms), _recent(event.voices, now_ms)
    own = items_within(event, now_ms - 4 * HOUR_MS, now_ms - HOUR_MS) / 6
    usual = event.expected * HOUR_MS / 2 / event.window_ms + OWN_RATE_SHARE * own
    # The geometric mean of items and voices; the usual items have as many voices as the recent ones.
    share = sqrt(voices / items) if items else 0.0
    return max(0.0, log2((items * share + 1) / (usual * share + 1))), items * share


def _recent(timeline: Iterable[tuple[int, int]], now_ms: int) -> float:
    ages = ((max(0, now_ms - TIMELINE_BUCKET_MS - at_ms), count) for at_ms, count in timeline)
    return sum(count * exp2(-age_ms / HALF_LIFE_MS) for age_ms, count in ages)


class CameSince(NamedTuple):
    """Items since a time, whether an event handled then is back, new tolls (then, now), updates of others."""

    items: int = 0
    is_back: bool = False
    tolls: Mapping[str, tuple[int, int]] = {}
    updates: int = 0


def last_decision(event: Event) -> EditorAction | None:
    """The last action in force that says where editors are with the event."""
    return next((action for action in reversed(event.in_force) if action.action in STATUS_ACTIONS), None)


def since_handled(event: Event) -> CameSince:
    """What came since editors saw or finished an event; nothing of others."""
    if not (event.acknowledged_by or event.work_status in SETTLED):
        return CameSince()
    last = last_decision(event)
    return came_since(event, *((last.at_ms, last.tolls) if last else (event.detected_at_ms, ())))


def came_since(event: Event, since_ms: int, known: Sequence[Toll] | None = None) -> CameSince:
    """What came after a time. ``known``: tolls that two outlets had reported then; None: those before it."""
    known = [toll for toll in event.tolls if toll[0] <= since_ms] if known is None else known
    is_new = [at_ms > since_ms for at_ms in arrivals_of(event)]
    new, items = {*compress(event.items, is_new)}, sum(is_new)
    updates = sum(at_ms > since_ms for id_, at_ms in event.updates.items() if id_ not in new)
    has_developed = any(at_ms > since_ms for at_ms, _ in event.developments)
    # What one outlet had reported then counts as known, though another one confirmed it later.
    then = {kind: number for at_ms, kind, number in sorted({*known, *event.tolls}) if at_ms <= since_ms}
    old, now = ({kind: number for _, kind, number in tolls} for tolls in (known, event.tolls))
    tolls = {kind: (then.get(kind, 0), n) for kind, n in now.items() if n != old.get(kind)}
    return CameSince(items, bool(tolls) or has_developed or 0 < event.needed < items, tolls, updates)


def is_handled(event: Event) -> bool:
    """Whether an editor has seen the event and it is not back since, or it is settled."""
    return is_settled(event) or (bool(event.acknowledged_by) and not since_handled(event).is_back)


def is_settled(event: Event) -> bool:
    """Whether editors are done with the event: muted, or published or dropped and not back since."""
    is_done = event.work_status in SETTLED and not since_handled(event).is_back
    return event.muted is not None or event.false_alarm or is_done


def page_key(entry: Event | EventSummary, event_id: str, order: EventOrder = "time") -> PageKey:
    """Sort key of an event in one of ``PAGED_ORDERS``, larger first."""
    number, last_ms = entry.size if order == "size" else entry.detected_at_ms, entry.last_seen_ms
    return (last_ms, number, event_id) if order == "time" else (number, last_ms, event_id)


def sort_events(events: Iterable[Event], order: EventOrder, now_ms: int) -> list[Event]:
    """The events in an order at ``now_ms``; equal ones by detection, the newest first."""
    return sorted(events, key=lambda e: (*_key(e, order, now_ms), e.detected_at_ms, e.id), reverse=True)


def _key(event: Event, order: EventOrder, now_ms: int) -> tuple[float, ...]:
    if order in PAGED_ORDERS:
        return (page_key(event, event.id, order)[0],)
    last_hour, hour_before = growth(event, now_ms)
    if order == "growth":
        return (last_hour - hour_before,)
    goes_on = severity(event, now_ms) not in ("fading", "ended")
    return not is_handled(event), not _is_chance(event), goes_on, last_hour > 0, *urgency(event, now_ms)
