"""Editor actions applied to events, and their transfer to the detector's next version of an event. Pure.

The detector does not know acknowledgements, mutes, false alarms and storylines: ``carry_forward`` copies them
from the stored version to the detected one. An action that changes nothing returns the same object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from aggregator.events.detection.model import EditorAction, Event
from aggregator.events.detection.open_event import MAX_EVENT_ITEMS, MAX_EVENT_SOURCES


def apply_action(event: Event, action: EditorAction) -> Event:
    """Return the event after one action on it alone. Raises ValueError for "merge"."""
    match action.action:
        case "acknowledge":
            changed = replace(event, acknowledged_by=event.acknowledged_by or action.actor)
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
        case _:
            raise ValueError(f"{action.action} changes more than one event; use merge_events().")
    return event if changed == event else replace(changed, actions=(*event.actions, action))


def merge_events(into: Event, absorbed: Event, action: EditorAction) -> tuple[Event, Event]:
    """Return both events after an editor's merge: the surviving one and the absorbed one."""
    survivor = absorb(into, absorbed)
    return (
        replace(survivor, actions=(*into.actions, *absorbed.actions, action)),
        replace(absorbed, status="closed", merged_into=into.id, actions=(*absorbed.actions, action)),
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
    """Return the event without one article. If it gave the headline, the key terms replace the title."""
    if item not in event.items:
        return event
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


def carry_forward(detected: Event, saved: Event, absorbed_by_editors: Iterable[Event] = ()) -> Event:
    """Return the detector's version of an event with all that editors changed in the ``saved`` one.

    ``absorbed_by_editors``: events that ``saved`` absorbed and ``detected`` did not.
    """
    for absorbed in absorbed_by_editors:
        detected = absorb(detected, absorbed)
    for item in saved.removed:
        detected = remove_item(detected, item)
    return replace(
        detected,
        story_id=saved.story_id,
        translation_of=saved.translation_of,
        acknowledged_by=saved.acknowledged_by,
        muted=saved.muted,
        false_alarm=saved.false_alarm,
        removed=saved.removed,
        actions=saved.actions,
        revision=saved.revision,
    )


def _union(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a, *b)))
