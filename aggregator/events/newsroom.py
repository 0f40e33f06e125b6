"""The newsroom's half of an event: editor actions applied to it, notes, and its audit trail. Pure.

An action that changes nothing returns the same object. A note beyond the limits is refused, because an editor
relies on it; of the audit trail the oldest entries are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from aggregator.errors import Conflict, NotFound
from aggregator.events.detection.lifecycle import MAX_EVENT_ITEMS
from aggregator.events.detection.model import DetectedEvent
from aggregator.events.detection.numbers import items_of, with_items
from aggregator.events.event import ChosenHeadline, EditorAction, Event, Note

MAX_NOTES = 100
MAX_NOTES_BYTES = 32_000  # of the texts of all notes of an event, in UTF-8
MAX_ACTIONS = 300


def apply_action(event: Event, action: EditorAction, headline: str = "") -> Event:
    """Return the event after one action on it alone. Raises Conflict at the limits, NotFound for a note."""
    match action.action:
        case "acknowledge" | "unacknowledge" as name:
            actor = event.acknowledged_by or action.actor
            changed = replace(event, acknowledged_by=actor if name == "acknowledge" else None)
        case "mute":
            changed = replace(event, muted=action.scope or "story")
        case "unmute":
            changed = replace(event, muted=None, false_alarm=False)
        case "false_alarm":
            changed = replace(event, muted=event.muted or "story", false_alarm=True)
        case "unlink":
            changed = replace(event, story_id=event.story_id and event.id, translation_of=None)
        case "remove_item":
            changed = remove_item(event, action.item or "")
        case "note":
            changed = replace(event, notes=add_note(event.notes, action, event.revision))
        case "delete_note":
            changed = replace(event, notes=delete_note(event.notes, action.note))
        case "assign" | "set_work_status":
            changed = _assign(event, action)
        case "choose_headline":
            changed = _choose_headline(event, action.item, headline)
        case _:
            raise ValueError(f"{action.action} changes more than one event; use merge_events().")
    if changed == event:
        return event
    return replace(changed, actions=(*event.actions, replace(action, text=None))[-MAX_ACTIONS:])


def _assign(event: Event, action: EditorAction) -> Event:
    """The editor who begins work on an event that is assigned to nobody takes it."""
    if action.work_status is None:
        return replace(event, assignee=action.assignee or "")
    status = action.work_status
    takes_it = status == "on_it" and not event.assignee
    return replace(event, work_status=status, assignee=action.actor if takes_it else event.assignee)


def _choose_headline(event: Event, item: str | None, headline: str) -> Event:
    """The event under the headline of one of its articles; ``item`` None: under the automatic one."""
    chosen = event.chosen_headline
    automatic = (
        (chosen.automatic_item, chosen.automatic_title) if chosen else (event.headline_id, event.title)
    )
    if item is None:
        return replace(event, headline_id=automatic[0], title=automatic[1], chosen_headline=None)
    return replace(
        event, headline_id=item, title=headline, chosen_headline=ChosenHeadline(item, headline, *automatic)
    )


def merge_events(into: Event, absorbed: Event, action: EditorAction) -> tuple[Event, Event]:
    """Return both events after an editor's merge: the surviving one and the absorbed one."""
    survivor = merge_newsroom_state(merge_into(into, absorbed), absorbed)
    return (
        replace(survivor, actions=(*into.actions, *absorbed.actions, action)[-MAX_ACTIONS:]),
        replace(
            absorbed, status="closed", merged_into=into.id, actions=(*absorbed.actions, action)[-MAX_ACTIONS:]
        ),
    )


def merge_newsroom_state(into: Event, absorbed: Event) -> Event:
    """Return ``into`` with the notes of ``absorbed``, and its assignment unless ``into`` has one."""
    is_free = into.work_status == "open" and not into.assignee
    return replace(
        into,
        notes=merge_notes(into.notes, absorbed.notes),
        assignee=absorbed.assignee if is_free else into.assignee,
        work_status=absorbed.work_status if is_free else into.work_status,
    )


def merge_into(into: Event, absorbed: Event) -> Event:
    """Return ``into`` with the items and counts of ``absorbed``. A common item counts once."""
    own = items_of(into)
    items = list((own | {id_: i for id_, i in items_of(absorbed).items() if id_ not in own}).items())
    further = [item.at_ms for _, item in items[MAX_EVENT_ITEMS:]]
    further += (*into.times[len(into.items) :], *absorbed.times[len(absorbed.items) :])
    return replace(
        with_items(into, dict(items[:MAX_EVENT_ITEMS]), further),
        expected=max(into.expected, absorbed.expected),
        sightings=into.sightings + absorbed.sightings,
        languages=_union(into.languages, absorbed.languages),
        absorbed=_union(into.absorbed, (absorbed.id, *absorbed.absorbed)),
        first=min(filter(None, (into.first, absorbed.first)), default=None),
        developments=tuple(sorted({*into.developments, *absorbed.developments})),
        removed=_union(into.removed, absorbed.removed),
    )


def remove_item(event: Event, item: str) -> Event:
    """Return the event without one article; of a lost headline the automatic one or the terms return."""
    if item not in event.items:
        return event
    if event.chosen_headline is not None:
        event = _without_chosen_article(event, event.chosen_headline, item)
    lost_headline = event.headline_id in (item, "")
    kept = {id_: facts for id_, facts in items_of(event).items() if id_ != item}
    return replace(
        with_items(event, kept, event.times[len(event.items) :]),
        title=", ".join(event.terms) if lost_headline else event.title,
        headline_id="" if lost_headline else event.headline_id,
        first=None if event.first and event.first[1] == item else event.first,
        removed=(*event.removed, item),
    )


def _without_chosen_article(event: Event, chosen: ChosenHeadline, item: str) -> Event:
    if chosen.automatic_item in (item, ""):
        chosen = replace(chosen, automatic_item="", automatic_title=", ".join(event.terms))
    event = replace(event, chosen_headline=chosen)
    return _choose_headline(event, None, "") if chosen.item == item else event


def rejoin(detected: DetectedEvent, saved: Event, absorbed_by_editors: Iterable[Event] = ()) -> Event:
    """Join a new detector's half with the newsroom's half of ``saved``, and apply its edits again."""
    event = replace(saved.with_detected(detected), chosen_headline=None)
    for absorbed in absorbed_by_editors:
        event = merge_into(event, absorbed)
    for item in saved.removed:
        event = remove_item(event, item)
    chosen = saved.chosen_headline
    if chosen is not None and chosen.item in event.items:
        event = _choose_headline(event, chosen.item, chosen.title)
    return replace(event, removed=saved.removed)


def _union(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a, *b)))


def add_note(notes: tuple[Note, ...], action: EditorAction, revision: int) -> tuple[Note, ...]:
    """Return the notes with that of ``action``, unless the last is the same. Raises Conflict."""
    text = action.text or ""
    if notes and (notes[-1].actor, notes[-1].text) == (action.actor, text):
        return notes
    if len(notes) >= MAX_NOTES:
        raise Conflict(f"text: the event has {MAX_NOTES} notes, which is the limit; delete one first.")
    used = _text_bytes(notes)
    if used + len(text.encode()) > MAX_NOTES_BYTES:
        raise Conflict(
            f"text: the notes of the event have {used} of at most {MAX_NOTES_BYTES} bytes; "
            "shorten the note, or delete one first."
        )
    id_ = max(revision, *(note.id for note in notes)) + 1 if notes else revision + 1
    return (*notes, Note(id_, action.actor, action.at_ms, text))


def delete_note(notes: tuple[Note, ...], note_id: int | None) -> tuple[Note, ...]:
    """Return the notes without one. Raises NotFound."""
    kept = tuple(note for note in notes if note.id != note_id)
    if len(kept) == len(notes):
        raise NotFound(f"note: the event has no note {note_id}; it may have been deleted.")
    return kept


def merge_notes(into: tuple[Note, ...], absorbed: tuple[Note, ...]) -> tuple[Note, ...]:
    """Return the notes of two events in order of time, the newest within the limits, with distinct ids."""
    if not absorbed:
        return into
    kept: list[Note] = []
    for note in sorted((*into, *absorbed), key=lambda n: n.at_ms, reverse=True):
        if len(kept) == MAX_NOTES or _text_bytes((*kept, note)) > MAX_NOTES_BYTES:
            break
        kept.append(note)
    own = set(into)
    free_ids = count(max(note.id for note in (*into, *absorbed)) + 1)
    return tuple(note if note in own else replace(note, id=next(free_ids)) for note in reversed(kept))


def _text_bytes(notes: Iterable[Note]) -> int:
    return sum(len(note.text.encode()) for note in notes)
