"""What an editor's action makes of an event, and how it outlives the detector's next version. Pure.

The detector knows nothing of acknowledgements, mutes and false alarms: ``carried`` copies them from the
version in the log to the one the detector hands over. An action that changes nothing gives the same event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from aggregator.events.detection.model import Action, Event
from aggregator.events.detection.open_event import MAX_ITEMS, MAX_SOURCES


def edited(event: Event, action: Action) -> Event:
    """The event after one action that concerns it alone (all but "merge")."""
    match action.action:
        case "acknowledge":
            changed = replace(event, acknowledged_by=event.acknowledged_by or action.actor)
        case "mute":
            changed = replace(event, muted=action.scope or "story")
        case "unmute":
            changed = replace(event, muted=None, false_alarm=False)
        case "false_alarm":
            changed = replace(event, muted=event.muted or "story", false_alarm=True)
        case "remove_item":
            changed = without(event, action.item or "")
        case _:
            raise ValueError(f"{action.action} concerns more than one event.")
    return event if changed == event else replace(changed, actions=(*event.actions, action))


def merged(into: Event, lost: Event, action: Action) -> tuple[Event, Event]:
    """Both events after an editor merged them: the one that goes on, and the one it took over."""
    going_on = absorbed(into, lost)
    return (
        replace(going_on, actions=(*into.actions, *lost.actions, action)),
        replace(lost, status="closed", merged_into=into.id, actions=(*lost.actions, action)),
    )


def absorbed(into: Event, lost: Event) -> Event:
    """``into`` with what ``lost`` has. An item of both counts once."""
    have = set(into.items)
    new = [(i, c) for i, c in zip(lost.items, lost.cosines, strict=True) if i not in have]
    room = new[: max(0, MAX_ITEMS - len(into.items))]
    timeline = Counter(dict(into.timeline)) + Counter(dict(lost.timeline))
    return replace(
        into,
        first_seen_ms=min(into.first_seen_ms, lost.first_seen_ms),
        last_seen_ms=max(into.last_seen_ms, lost.last_seen_ms),
        size=into.size + lost.size - (len(lost.items) - len(new)),
        sightings=into.sightings + lost.sightings,
        items=into.items + tuple(i for i, _ in room),
        cosines=into.cosines + tuple(c for _, c in room),
        sources=_union(into.sources, lost.sources)[:MAX_SOURCES],
        languages=_union(into.languages, lost.languages),
        timeline=tuple(sorted(timeline.items())),
        rate=max(timeline.values(), default=0),
        absorbed=_union(into.absorbed, (lost.id, *lost.absorbed)),
        removed=_union(into.removed, lost.removed),
    )


def without(event: Event, item: str) -> Event:
    """The event without one article, for good. If it was the headline's, the terms stand in for it."""
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


def carried(fresh: Event, saved: Event, absorbed_by_editors: Iterable[Event] = ()) -> Event:
    """The detector's version ``fresh`` with all that editors did to the ``saved`` one.

    ``absorbed_by_editors``: the events that ``saved`` took over and ``fresh`` does not have.
    """
    for lost in absorbed_by_editors:
        fresh = absorbed(fresh, lost)
    for item in saved.removed:
        fresh = without(fresh, item)
    return replace(
        fresh,
        acknowledged_by=saved.acknowledged_by,
        muted=saved.muted,
        false_alarm=saved.false_alarm,
        removed=saved.removed,
        actions=saved.actions,
        revision=saved.revision,
    )


def _union(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a, *b)))
