"""Value types of the detector: the operator's burst rule, events, their changes and editor actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from aggregator.time_units import HOUR_MS

EventStatus = Literal["emerging", "breaking", "fading", "closed"]
ChangeKind = Literal["fired", "updated", "doubled", "merged", "closed"]
ActionName = Literal[
    "acknowledge",
    "unacknowledge",
    "mute",
    "unmute",
    "merge",
    "remove_item",
    "false_alarm",
    "unlink",
    "note",
    "delete_note",
    "assign",
    "set_work_status",
    "choose_headline",
]
# What the newsroom does with an event; "open": nothing yet.
WorkStatus = Literal["open", "on_it", "published", "dropped"]
MuteScope = Literal["story", "routine"]
RuleMode = Literal["stories", "literal"]


@dataclass(frozen=True, slots=True)
class BurstRule:
    """A story fires with more than ``items`` items within ``window_ms``; an item of exactly that age counts.

    min_sources   distinct sources that a firing story needs
    sensitivity   a story must have 4 / sensitivity times its expectation
    family_of     source -> name of its syndication family, which then counts as one source
    mode          "stories", or "literal" for the rule of Hu & You (2017): an item with more than ``items``
                  items (itself included) within 7 bits in the window fires
    """

    items: int = 15
    window_ms: int = 4 * HOUR_MS
    min_sources: int = 1
    sensitivity: float = 1.0
    mode: RuleMode = "stories"
    family_of: Mapping[str, str] = field(default_factory=dict, compare=False)  # what is learned is no setting


@dataclass(frozen=True, slots=True)
class EditorAction:
    """One editor action, as recorded in the audit trail of every event it changed.

    event  id of the event it was requested for
    scope  of a mute: this story while it continues, or every similar story indefinitely ("routine")
    into   id of the surviving event of a merge
    item   id of the removed article, or of the one whose headline was chosen (None: automatic again)
    text   of a note, while the action is carried out: the audit trail does not repeat it
    note   id of the note that was deleted
    assignee     of an assignment, "" for nobody
    work_status  the new one
    """

    action: ActionName
    actor: str
    at_ms: int
    event: str
    scope: MuteScope | None = None
    into: str | None = None
    item: str | None = None
    text: str | None = None
    note: int | None = None
    assignee: str | None = None
    work_status: WorkStatus | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What an editor wrote about an event. ``id``: unique within the event."""

    id: int
    actor: str
    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class ChosenHeadline:
    """A headline that an editor chose, and the automatic one, which returns when the choice is undone.

    ``item`` and ``automatic_item`` are article ids.
    """

    item: str
    title: str
    automatic_item: str
    automatic_title: str


@dataclass(frozen=True, slots=True)
class Event:
    """One version of an event. Its id never changes; every other field may.

    status        see the package docstring; "emerging" is reserved for stories that have not fired
    size          number of items, of any age; ``sightings``: duplicates that do not count
    peak          maximum number of items within one window so far
    rate          maximum number of items within one bucket of ``timeline``
    expected      items per window that were expected for this story when it fired
    sources       names in order of joining; ``languages``: ISO 639-1 codes
    items         article ids in order of joining (the first MAX_EVENT_ITEMS)
    cosines       by item: similarity to the story when it joined, 0..1 (1.0 for a duplicate)
    terms         most distinctive terms, heaviest first
    timeline      (start of 10 minutes in ms, items in them), without empty buckets
    reason        why it fired, one sentence
    merged_into   the event that absorbed it, if it was closed by a merge
    headline_id   article whose headline is the title (``headline_choice.py``)
    profile       (term, weight) of the common terms, of norm 1, to recognize the story later
    absorbed      events that it absorbed
    story_id      storyline, the id of its first event (``events/storylines.py``); "" from the detector
    translation_of  event that reports the same in another language and fired before; this one does not alert

    The following fields are set by editors, not by the detector; the event repository carries them over from
    one version to the next:

    acknowledged_by, muted (scope), false_alarm, removed (ids of removed articles), actions (audit trail),
    notes, assignee ("" for nobody), work_status, chosen_headline (then also title and headline_id)

    revision      number of this version in the repository, from 1
    """

    id: str
    title: str
    status: EventStatus
    detected_at_ms: int
    first_seen_ms: int
    last_seen_ms: int
    size: int
    sightings: int
    peak: int
    rate: int
    expected: float
    sources: tuple[str, ...]
    items: tuple[str, ...]
    cosines: tuple[float, ...]
    terms: tuple[str, ...]
    timeline: tuple[tuple[int, int], ...]
    reason: str
    merged_into: str | None = None
    languages: tuple[str, ...] = ()
    headline_id: str = ""
    profile: tuple[tuple[str, float], ...] = ()
    absorbed: tuple[str, ...] = ()
    story_id: str = ""
    translation_of: str | None = None
    acknowledged_by: str | None = None
    muted: MuteScope | None = None
    false_alarm: bool = False
    removed: tuple[str, ...] = ()
    actions: tuple[EditorAction, ...] = ()
    notes: tuple[Note, ...] = ()
    assignee: str = ""
    work_status: WorkStatus = "open"
    chosen_headline: ChosenHeadline | None = None
    revision: int = 0

    def items_between(self, after_ms: float, until_ms: float) -> int:
        """Items in the buckets of the timeline that begin after ``after_ms`` and until ``until_ms``."""
        return sum(items for at_ms, items in self.timeline if after_ms < at_ms <= until_ms)


@dataclass(frozen=True, slots=True)
class EventChange:
    """A change of an event since it was last drained.

    kind             "doubled": twice the size it had when it fired or last doubled
    article_numbers  articles that joined; released_numbers: articles that left, as another topic
    """

    kind: ChangeKind
    at_ms: int
    event: Event
    article_numbers: tuple[int, ...] = ()
    released_numbers: tuple[int, ...] = ()
