"""Events as they are stored and shown: the detector's half and the newsroom's half, joined; their text.

The detector knows nothing of storylines, acknowledgements, mutes, notes, assignments and chosen headlines.
``newsroom.rejoin`` joins each of its versions with the newsroom's half of the stored one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import quote

import msgspec

from aggregator.events.detection.model import DetectedEvent, FirstReport, MuteScope
from aggregator.events.detection.numbers import Item, size_text
from aggregator.events.figures import Toll, newer_figures
from aggregator_client.wire import ActionName, NewWorkStatus, WorkStatus


@dataclass(frozen=True, slots=True)
class EditorAction:
    """One editor action, as recorded in the audit trail of every event it changed (``into``: of a merge).

    actor  "" for a new automatic headline of an event that was marked as published
    scope  of a mute: this story while it continues, or every similar story indefinitely ("routine")
    item   id of the removed article, or of the one whose headline was chosen (None: automatic again)
    text   of a note, while the action is carried out; note: id of the note that it added or deleted
    items  ids of the moved articles; id: unique within the event; of: id of the undone action
    before the fields of the event that it changed, as they were; ``tolls``: of the event then
    held   of articles that leave ``event``, what it held of them (of merged and moved ones: the doubtful);
           ``first``, ``headline`` (article, title, whether chosen): those that it had
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
    work_status: NewWorkStatus | None = None
    items: tuple[str, ...] = ()
    of: int | None = None
    id: int = field(default=0, compare=False)
    before: dict[str, str | bool | ChosenHeadline | None] = field(default_factory=dict, compare=False)
    tolls: tuple[Toll, ...] = field(default=(), compare=False)
    held: dict[str, Item] = field(default_factory=dict, compare=False)
    first: FirstReport | None = field(default=None, compare=False)
    headline: tuple[str, str, bool] | None = field(default=None, compare=False)
    deleted: Note | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Note:
    """What an editor wrote about an event. ``id``: unique within the event."""

    id: int
    actor: str
    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class ChosenHeadline:
    """A headline (of article ``item``) that an editor chose, and the automatic one behind it."""

    item: str
    title: str
    automatic_item: str
    automatic_title: str


@dataclass(frozen=True, slots=True)
class Event(DetectedEvent):
    """One version of an event, with what editors set. The order of the fields is that of the stored JSON.

    story_id        storyline, the id of its first event (``storylines.py``); "" before it is linked
    translation_of  event that reports the same in another language and fired before; this one does not alert
    removed, added  articles that editors took out and put in
    revision        number of this version in the repository, from 1
    """

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
    added: dict[str, Item] = field(default_factory=dict)
    revision: int = 0

    @property
    def status_key(self) -> str:
        """Status of the menu of editors: "new" while nobody has seen it or is on it."""
        unfinished = "on_it" if self.assignee else "seen" if self.acknowledged_by else "new"
        return unfinished if self.work_status == "open" else self.work_status

    @property
    def in_force(self) -> list[EditorAction]:
        """The actions that were not undone, but for those whose undoing was undone."""
        undone = set[int | None]()
        for action in reversed(self.actions):
            undone |= {action.of} if action.id not in undone else set()
        return [action for action in self.actions if action.id not in undone]

    @classmethod
    def of(cls, detected: DetectedEvent) -> Event:
        """The event of a detector's half that the newsroom has not touched; an ``Event`` as it is."""
        return detected if isinstance(detected, Event) else cls(**detected_half(detected))


class EventSummary(msgspec.Struct, array_like=True):
    """Entry of one event in the index of events: equal fields of the event."""

    status: str
    detected_at_ms: int
    last_seen_ms: int
    merged_into: str | None = None
    story_id: str = ""
    size: int = 0
    first_seen_ms: int = 0


def detected_half(event: DetectedEvent) -> dict[str, Any]:
    """The fields of the detector's half."""
    return {name: getattr(event, name) for name in DetectedEvent.__slots__}


def title_of(event: Event) -> str:
    """The headline; without one, as its article was deleted, the terms, or that there is none."""
    return event.title or ", ".join(event.terms) or "(no headline)"


def newest_figures(event: Event) -> str:
    """What two outlets report by now where its headline is outdated: "2+ outlets: 31 dead"."""
    found = chain(*(newer_figures(event.title, lang, event.tolls).items() for lang in event.languages))
    said = ", ".join(f"{number:,} {kind}".replace(",", "\u202f") for kind, number in sorted({*found}))
    return f"2+ outlets: {said}" if said else ""


def current_title(event: Event) -> str:
    """The title, with what two outlets say by now: "Quake kills 9 (2+ outlets: 31 dead)"."""
    figures = newest_figures(event)
    return f"{title_of(event)} ({figures})" if figures else title_of(event)


def event_url(event: Event, base_url: str) -> str:
    """URL of the event's page. ``base_url``: public URL of the service, without a trailing slash."""
    return f"{base_url}/events/{quote(event.id, safe='')}"


def size_summary(event: Event) -> str:
    """Numbers, and what the last development brought: "21 items from 3 outlets, new: reserves"."""
    new = ", ".join(event.developments[-1][1]) if event.developments else ""
    return f"{size_text(event)}, new: {new}" if new else size_text(event)
