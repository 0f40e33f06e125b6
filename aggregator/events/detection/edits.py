"""Editor actions applied to events, and their transfer to the detector's next version of an event. Pure.

The detector does not know acknowledgements, mutes, false alarms, storylines, notes, assignments and chosen
headlines: ``carry_forward`` copies them from the stored version to the detected one. An action that changes
nothing returns the same object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from aggregator.events.detection.model import ChosenHeadline, EditorAction, Event
from aggregator.events.detection.notes import add_note, append_action, delete_note, merge_notes
from aggregator.events.detection.open_event import MAX_EVENT_ITEMS, MAX_EVENT_SOURCES


def apply_action(event: Event, action: EditorAction, headline: str = "") -> Event:
    """Return the event after one action on it alone. ``headline``: that of the article that was chosen.

    Raises ValueError for "merge", Conflict for a note beyond the limits, NotFound for an unknown note.
    """
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
    return replace(changed, actions=append_action(event.actions, replace(action, text=None)))


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
    survivor = take_over_work(absorb(into, absorbed), absorbed)
    return (
        replace(survivor, actions=append_action((*into.actions, *absorbed.actions), action)),
        replace(
            absorbed,
            status="closed",
            merged_into=into.id,
            actions=append_action(absorbed.actions, action),
        ),
    )


def take_over_work(into: Event, absorbed: Event) -> Event:
    """Return ``into`` with the notes of ``absorbed``, and its assignment unless ``into`` has one."""
    is_free = into.work_status == "open" and not into.assignee
    return replace(
        into,
        notes=merge_notes(into.notes, absorbed.notes),
        assignee=absorbed.assignee if is_free else into.assignee,
        work_status=absorbed.work_status if is_free else into.work_status,
    )


def absorb(into: Event, absorbed: Event) -> Event:
    """Return ``into`` with the items and counts of ``absorbed``. A common item counts once."""
    present = set(into.items)
    new = [(i, c) for i, c in zip(absorbed.items, absorbed.cosines, strict=True) if i not in present]
    added = new[: max(0, MAX_EVENT_ITEMS - len(into.items))]
    timeline = Counter(dict(into.timeline)) + Counter(dict(absorbed.timeline))
    return replace(
        into,
        first_seen_ms=min(into.first_seen_ms, absorbed.first_seen_ms),
        last_seen_ms=max(into.last_seen_ms, absorbed.last_seen_ms),
        size=into.size + absorbed.size - (len(absorbed.items) - len(new)),
        sightings=into.sightings + absorbed.sightings,
        items=into.items + tuple(i for i, _ in added),
        cosines=into.cosines + tuple(c for _, c in added),
        sources=_union(into.sources, absorbed.sources)[:MAX_EVENT_SOURCES],
        languages=_union(into.languages, absorbed.languages),
        timeline=tuple(sorted(timeline.items())),
        rate=max(timeline.values(), default=0),
        absorbed=_union(into.absorbed, (absorbed.id, *absorbed.absorbed)),
        removed=_union(into.removed, absorbed.removed),
    )


def remove_item(event: Event, item: str) -> Event:
    """Return the event without one article.

    If it gave the headline that an editor chose, the automatic one returns; if it gave that one, the key
    terms replace it.
    """
    if item not in event.items:
        return event
    if event.chosen_headline is not None:
        event = _without_chosen_article(event, event.chosen_headline, item)
    kept = [(i, c) for i, c in zip(event.items, event.cosines, strict=True) if i != item]
    lost_headline = event.headline_id in (item, "")
    return replace(
        event,
        title=", ".join(event.terms) if lost_headline else event.title,
        headline_id="" if lost_headline else event.headline_id,
        size=event.size - 1,
        items=tuple(i for i, _ in kept),
        cosines=tuple(c for _, c in kept),
        removed=(*event.removed, item),
    )


def _without_chosen_article(event: Event, chosen: ChosenHeadline, item: str) -> Event:
    if chosen.automatic_item in (item, ""):
        chosen = replace(chosen, automatic_item="", automatic_title=", ".join(event.terms))
    event = replace(event, chosen_headline=chosen)
    return _choose_headline(event, None, "") if chosen.item == item else event


def carry_forward(detected: Event, saved: Event, absorbed_by_editors: Iterable[Event] = ()) -> Event:
    """Return the detector's version of an event with all that editors changed in the ``saved`` one.

    ``absorbed_by_editors``: events that ``saved`` absorbed and ``detected`` did not.
    """
    for absorbed in absorbed_by_editors:
        detected = absorb(detected, absorbed)
    for item in saved.removed:
        detected = remove_item(detected, item)
    chosen = saved.chosen_headline
    if chosen is not None and chosen.item in detected.items:
        detected = _choose_headline(detected, chosen.item, chosen.title)
    return replace(
        detected,
        story_id=saved.story_id,
        translation_of=saved.translation_of,
        acknowledged_by=saved.acknowledged_by,
        muted=saved.muted,
        false_alarm=saved.false_alarm,
        removed=saved.removed,
        actions=saved.actions,
        notes=saved.notes,
        assignee=saved.assignee,
        work_status=saved.work_status,
        revision=saved.revision,
    )


def _union(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a, *b)))
