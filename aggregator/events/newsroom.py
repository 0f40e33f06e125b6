"""The newsroom's half of an event: editor actions applied to it, notes, and its audit trail. Pure.

An action that changes nothing returns the same object. A note beyond the limits is refused, because an editor
relies on it; of the audit trail the oldest entries are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import count
from operator import itemgetter

import xxhash

from aggregator.errors import Conflict, NotFound
from aggregator.events.detection.lifecycle import MAX_EVENT_ITEMS
from aggregator.events.detection.model import DetectedEvent, FirstReport
from aggregator.events.detection.numbers import Item, items_of, with_items
from aggregator.events.event import ChosenHeadline, EditorAction, Event, Note, detected_half
from aggregator.events.selection import SETTLED, since_handled

MAX_NOTES = 100
MAX_NOTES_BYTES = 32_000  # of the texts of all notes of an event, in UTF-8
MAX_ACTIONS = 300
STATUS_FIELDS = {"acknowledged_by", "assignee", "work_status"}
# Fields of an event that an action sets and its undoing restores.
UNDONE = *sorted(STATUS_FIELDS), "muted", "false_alarm", "story_id", "translation_of", "chosen_headline"


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
        case "undo":
            undone = undoable_actions(event)[action.of or 0]
            notes = [*(n for n in event.notes if n.id != undone.note), *filter(None, [undone.deleted])]
            notes.sort(key=lambda note: note.at_ms)
            old = replace(event, notes=tuple(notes), **undone.before)  # type: ignore[arg-type]
            changed = _with_choice(replace(old, chosen_headline=event.chosen_headline), old.chosen_headline)
        case "note":
            changed = replace(event, notes=add_note(event.notes, action, event.revision))
        case "delete_note":
            changed = replace(event, notes=delete_note(event.notes, action.note))
        case "assign" | "set_work_status":
            changed = _assign(event, action)
        case "choose_headline":
            changed = _choose_headline(event, action.item, headline)
        case _:
            raise ValueError(f"{action.action} may change more than one event.")
    renews = action.action == "acknowledge" or action.work_status in ("seen", *SETTLED)
    renews = changed == event and renews and since_handled(event).is_back  # what came since is handled now
    if changed == event and not renews and action.action != "undo":
        return event
    kept = STATUS_FIELDS if changed == event else ()
    before = {n: v for n in UNDONE if (v := getattr(event, n)) != getattr(changed, n) or n in kept}
    note = next(iter({*event.notes} ^ {*changed.notes}), None)
    deleted = note if note in event.notes else None
    action = replace(action, note=note.id if note else None, deleted=deleted)
    return record_action(changed, replace(action, text=None, before=before, tolls=event.tolls))


def record_action(event: Event, action: EditorAction) -> Event:
    """Return the event with an action in its audit trail."""
    return replace(event, actions=(*event.actions, action)[-MAX_ACTIONS:])


def action_id(action: EditorAction, *events: Event) -> int:
    """An id for the action, larger than those of all actions of the events."""
    return max(action.at_ms, *(other.id + 1 for event in events for other in event.actions), 0)


def undoable_actions(event: Event) -> dict[int, EditorAction]:
    """By id the actions that can be undone: nothing that they changed was changed again, but for undone."""
    found, later = dict[int, EditorAction](), set[str]()
    undoings = {action.id for action in event.actions if action.action == "undo"}
    for action in reversed([action for action in event.in_force if action.actor]):
        merged = {action.event} if action.action == "merge" else set()
        note = f"note {action.note}" if action.note else ""
        touched = merged or {*action.before, *action.items, action.item or "", note} - {""}
        touched |= STATUS_FIELDS if touched & STATUS_FIELDS else set()  # they are shown as one
        is_own = event.id in (action.event, action.into) and event.merged_into is None
        can_return = action.before or note or action.action in ("merge", "remove_item", "move_items")
        if is_own and can_return and later.isdisjoint({*touched, action.event, action.into}):
            found[action.id] = action
        later |= set() if action.id in undoings and action.of not in undoings else touched
    return found


def _assign(event: Event, action: EditorAction) -> Event:
    """The editor who begins work on an event that is assigned to nobody takes it."""
    if action.work_status is None:
        return replace(event, assignee=action.assignee or "")
    match action.work_status:
        case "new" | "seen" as status:
            seen_by = (event.acknowledged_by or action.actor) if status == "seen" else None
            return replace(event, acknowledged_by=seen_by, assignee="", work_status="open")
        case status:
            assignee = action.assignee or event.assignee or (action.actor if status == "on_it" else "")
            return replace(event, work_status=status, assignee=assignee)


def _choose_headline(event: Event, item: str | None, headline: str) -> Event:
    """The event under the headline of one of its articles; ``item`` None: under the automatic one."""
    chosen = event.chosen_headline or ChosenHeadline("", "", event.headline_id, event.title)
    automatic = chosen.automatic_item, chosen.automatic_title
    if item is None:
        return replace(event, headline_id=automatic[0], title=automatic[1], chosen_headline=None)
    choice = ChosenHeadline(item, headline, *automatic)
    return replace(event, headline_id=item, title=headline, chosen_headline=choice)


def _with_choice(event: Event, chosen: ChosenHeadline | None) -> Event:
    """The event under a headline that was chosen before, if it has the article, else the automatic one."""
    item = chosen.item if chosen and chosen.item in event.items else None
    return _choose_headline(event, item, chosen.title if chosen else "")


def merge_events(into: Event, absorbed: Event, action: EditorAction) -> tuple[Event, Event]:
    """Return both events after an editor's merge, survivor first; an action of both is listed once."""
    survivor = merge_newsroom_state(merge_into(into, absorbed), absorbed)
    actions = sorted(dict.fromkeys((*into.actions, *absorbed.actions)), key=lambda a: a.at_ms)
    action = replace(action, held={i: item for i, item in items_of(absorbed).items() if item.doubtful})
    return (
        record_action(replace(survivor, actions=tuple(actions)), action),
        record_action(replace(absorbed, status="closed", merged_into=into.id), action),
    )


def separate(survivor: Event, absorbed: Event, merge: EditorAction) -> tuple[Event, Event]:
    """Undo a merge but for the articles: the absorbed event, now without any, is as open as it was before.

    If the survivor ended meanwhile, the absorbed event ends too.
    """
    theirs = {(note.actor, note.at_ms, note.text) for note in absorbed.notes}
    notes = tuple(n for n in survivor.notes if (n.actor, n.at_ms, n.text) not in theirs)
    is_theirs = (survivor.assignee, survivor.work_status) == (absorbed.assignee, absorbed.work_status)
    own = {n: merge.before[n] for n in ("assignee", "work_status") if is_theirs and n in merge.before}
    gone = {a.id for a in absorbed.actions if survivor.id not in (a.event, a.into)}
    actions = tuple(a for a in survivor.actions if a.id not in gone or survivor.id in (a.event, a.into))
    if own.get("work_status", survivor.work_status) != "published":
        actions = tuple(a for a in actions if a.actor or a.at_ms < merge.at_ms)
    survivor = replace(survivor, notes=notes, actions=actions, **own)  # type: ignore[arg-type]
    status = "closed" if survivor.status == "closed" else merge.before.get("status", survivor.status)
    kept = tuple(id_ for id_ in survivor.absorbed if id_ not in (absorbed.id, *absorbed.absorbed))
    left = tuple(id_ for id_ in absorbed.items if id_ not in survivor.items)
    reopened = with_items(absorbed, {}, absorbed.times[len(absorbed.items) :])
    reopened = replace(reopened, removed=_union(absorbed.removed, left), added={}, merged_into=None)
    return (
        replace(survivor, absorbed=kept, sightings=max(0, survivor.sightings - absorbed.sightings)),
        replace(reopened, status=status),  # type: ignore[arg-type]
    )


def split_off(event: Event, action: EditorAction) -> Event:
    """A new event without articles, for those of ``action``, detected with ``event``."""
    reason = "As part of an event that an editor split."
    id_, at_ms = _split_id(action), event.detected_at_ms
    new = Event(id_, "", event.status, at_ms, at_ms, at_ms, 0, 0, 0, 0, 0.0, (), (), (), (), (), reason)
    return replace(new, window_ms=event.window_ms, needed=event.needed)


def is_split(action: EditorAction) -> bool:
    """Whether the action split articles off an event into a new one."""
    return action.into == _split_id(action)


def _split_id(action: EditorAction) -> str:
    seed = f"{action.event}:{action.items[0] if action.items else ''}:{action.at_ms}"
    return xxhash.xxh3_64_hexdigest(seed.encode("utf-8", "surrogatepass"))


def are_apart(a: Event, b: Event) -> bool:
    """Whether editors kept two events apart: split off, out of one storyline, or joined and that undone."""
    actions, stories = (*a.actions, *b.actions), {a.story_id, b.story_id}
    undone = {action.of for action in actions}
    ends = [{action.event, action.into} for action in actions if action.id in undone or is_split(action)]
    left = {action.before.get("story_id") for action in actions}
    return {a.id, b.id} in ends or (len(stories) > 1 and not left.isdisjoint(stories))


def merge_newsroom_state(into: Event, absorbed: Event) -> Event:
    """Return ``into`` with the notes of ``absorbed``, and its assignment unless ``into`` has one."""
    notes = merge_notes(into.notes, absorbed.notes)
    of = absorbed if into.work_status == "open" and not into.assignee else into
    return replace(into, notes=notes, assignee=of.assignee, work_status=of.work_status)


def merge_into(into: Event, absorbed: Event) -> Event:
    """Return ``into`` with the items and counts of ``absorbed``. A common item counts once."""
    own = items_of(into)
    both = own | {i: own.get(i, item)._replace(doubtful=False) for i, item in items_of(absorbed).items()}
    further = [item.at_ms for item in list(both.values())[MAX_EVENT_ITEMS:]]
    further += (*into.times[len(into.items) :], *absorbed.times[len(absorbed.items) :])
    return replace(
        with_items(into, dict(list(both.items())[:MAX_EVENT_ITEMS]), further),
        expected=max(into.expected, absorbed.expected),
        sightings=into.sightings + absorbed.sightings,
        languages=_union(into.languages, absorbed.languages),
        absorbed=_union(into.absorbed, (absorbed.id, *absorbed.absorbed)),
        first=min(filter(None, (into.first, absorbed.first)), default=None),
        developments=tuple(sorted({*into.developments, *absorbed.developments})),
        removed=tuple(i for i in _union(into.removed, absorbed.removed) if i not in both),
        added=absorbed.added | into.added,
    )


def remove_items(event: Event, items: Collection[str]) -> Event:
    """Return the event without articles; of a lost headline the automatic one or the terms return."""
    gone = set(items).intersection(event.items)
    if not gone:
        return event
    kept = {id_: facts for id_, facts in items_of(event).items() if id_ not in gone}
    chosen = event.chosen_headline if kept else None  # without articles an event keeps its last headline
    if chosen is not None and chosen.automatic_item in {*gone, ""}:
        chosen = replace(chosen, automatic_item="", automatic_title=", ".join(event.terms))
    event = replace(event, chosen_headline=chosen)
    if chosen is not None and chosen.item in gone:
        event = _choose_headline(event, None, "")
    lost_headline = bool(kept) and (event.headline_id in gone or not event.headline_id)
    first = event.first
    if first and first[1] in gone:  # what an editor had added replaced the earliest of the others
        reports = [(i.at_ms, id_, i.source) for id_, i in kept.items() if not i.doubtful]
        first = min(reports, default=None) if first[1] in event.added else None
    return replace(
        with_items(event, kept, event.times[len(event.items) :]),
        title=", ".join(event.terms) if lost_headline else event.title,
        headline_id="" if lost_headline else event.headline_id,
        first=first,
        removed=_union(event.removed, tuple(id_ for id_ in event.items if id_ in gone)),
        added={id_: item for id_, item in event.added.items() if id_ not in gone},
    )


def add_items(event: Event, items: Mapping[str, Item], first: FirstReport | None = None) -> Event:
    """Return the event with more articles, which it keeps; an earlier one, or ``first``, is its first one."""
    if not items:
        return event
    reports = [event.first, first if first and first[1] in items else None]
    sure = {id_: i for id_, i in items.items() if not i.doubtful and (event.first or not event.items)}
    reports += [(i.at_ms, id_, i.source) for id_, i in sure.items()]
    return replace(
        with_items(event, {**items_of(event), **items}, event.times[len(event.items) :]),
        first=min(filter(None, reports), key=itemgetter(0), default=None),
        removed=tuple(id_ for id_ in event.removed if id_ not in items),
        added={**event.added, **items},
    )


def restore_items(event: Event, items: Mapping[str, Item], left: EditorAction) -> Event:
    """Return the event with articles that ``left`` took out of it, and what it lost with them."""
    event = add_items(event, items, left.first)
    id_, title, is_chosen = left.headline or ("", "", False)
    if id_ not in items or event.chosen_headline:
        return event
    return _choose_headline(event, id_, title) if is_chosen else replace(event, headline_id=id_, title=title)


def rejoin(detected: DetectedEvent, saved: Event, absorbed_by_editors: Iterable[Event] = ()) -> Event:
    """Join a new detector's half with the newsroom's half of ``saved``, and apply its edits again."""
    kept = [] if detected.reason else ["reason", "detected_at_ms", "expected", "window_ms", "needed"]
    kept += ["status", "merged_into"] if saved.merged_into and not detected.merged_into else []
    half = detected_half(detected) | {name: getattr(saved, name) for name in kept}
    event = replace(saved, **half, chosen_headline=None)
    for absorbed in absorbed_by_editors:
        event = merge_into(event, absorbed)
    event = add_items(remove_items(event, saved.removed), saved.added, saved.first)
    has_lost = not detected.title or detected.headline_id in saved.removed
    if has_lost and not (event.items and (saved.chosen_headline or saved.headline_id not in event.items)):
        event = replace(event, headline_id=saved.headline_id, title=saved.title)
    return _with_choice(replace(event, removed=saved.removed, added=saved.added), saved.chosen_headline)


def _union(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a, *b)))


def add_note(notes: tuple[Note, ...], action: EditorAction, revision: int) -> tuple[Note, ...]:
    """Return the notes with that of ``action``, unless the last is the same. Raises Conflict."""
    text = action.text or ""
    if notes and (notes[-1].actor, notes[-1].text) == (action.actor, text):
        return notes
    used = _text_bytes(notes)
    if len(notes) >= MAX_NOTES or used + len(text.encode()) > MAX_NOTES_BYTES:
        limits = f"{len(notes)} of at most {MAX_NOTES} notes, {used} of at most {MAX_NOTES_BYTES} bytes"
        raise Conflict(f"text: the event has {limits}; shorten the note, or delete one first.")
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
