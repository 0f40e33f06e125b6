"""The numbers of an event, all from the items that it has: whatever shows one takes it from here.

An item has the time of its publication as decided when it joined: a date long before the arrival that nobody
declared as past is a claim, and the arrival is its time. In the course of the event, which decides its rates
and state, a claim counts as stated, since it is no fresh news, but not before the first item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from aggregator.analysis.source import outlet_key, outlet_name
from aggregator.domain import arrival_ms_of
from aggregator.events.detection.model import DetectedEvent

TIMELINE_BUCKET_MS = 600_000
E = TypeVar("E", bound=DetectedEvent)


class Item(NamedTuple):
    """Similarity on joining, 0..1; time; source; claim if it is the arrival; first version; doubt; update."""

    cosine: float
    at_ms: int
    source: str
    claim_ms: int | None = None
    number: int = 0
    doubtful: bool = False
    updated_ms: int = 0


def first_ms(items: Collection[Item], further: Iterable[int], empty_ms: int = 0) -> int:
    """Time of the first item; if all are doubtful, of the first of those."""
    sure = [*(item.at_ms for item in items if not item.doubtful), *further]
    return min(sure or (item.at_ms for item in items), default=empty_ms)


def course(items: Collection[Item], further: Iterable[int]) -> tuple[int, ...]:
    """When items count in the course of their event, in ms."""
    since_ms = first_ms(items, further)
    return (*(min(i.at_ms, max(since_ms, i.claim_ms)) if i.claim_ms else i.at_ms for i in items), *further)


def counted(
    items: Mapping[str, Item],
    further: Iterable[int],
    window_ms: int,
    developments: Sequence[tuple[int, object]],
    empty_ms: int,
) -> dict[str, Any]:
    """The fields of an event that its items decide; ``further``: times of items that it does not list.

    ``empty_ms``: first and last time without any item.
    """
    times, counts_at = (*(item.at_ms for item in items.values()), *further), course(items.values(), further)
    keys = [outlet_key(item.source) for item in items.values()]
    names: dict[str, str] = {}
    latest: dict[str, int] = {}
    for key, item, at_ms in zip(keys, items.values(), counts_at, strict=False):
        names.setdefault(key, outlet_name(item.source))
        latest[key] = max(at_ms, latest.get(key, at_ms))
    names.pop("", None)
    position = {key: n for n, key in enumerate(names)}
    since_ms = developments[-1][0] - window_ms if developments else min(times, default=0)
    recent = [at_ms for at_ms in counts_at if at_ms >= since_ms]
    return {
        "items": tuple(items),
        "cosines": tuple(round(item.cosine, 3) for item in items.values()),
        "times": times,
        "claims": {id_: item.claim_ms for id_, item in items.items() if item.claim_ms is not None},
        "outlets": tuple(position.get(key, -1) for key in keys),
        "numbers": tuple(item.number for item in items.values()),
        "updates": {id_: item.updated_ms for id_, item in items.items() if item.updated_ms},
        "doubtful": tuple(id_ for id_, item in items.items() if item.doubtful),
        "sources": tuple(names.values()),
        "size": len(times),
        "first_seen_ms": first_ms(items.values(), further, empty_ms),
        "last_seen_ms": max(counts_at, default=empty_ms),
        "peak": peak(recent, window_ms),
        "rate": max(Counter(map(bucket, recent)).values(), default=0),
        "timeline": tuple(sorted(Counter(map(bucket, counts_at)).items())),
        "voices": tuple(sorted(Counter(map(bucket, latest.values())).items())),
    }


def items_of(event: DetectedEvent) -> dict[str, Item]:
    """The listed items of an event by article id, in order of joining."""
    names = (*event.sources, "")
    numbers, doubtful = event.numbers or (0,) * len(event.items), set(event.doubtful)
    rows = zip(event.items, event.cosines, event.times, event.outlets, numbers, strict=False)
    claims, updates = event.claims.get, event.updates.get
    return {i: Item(c, ms, names[o], claims(i), n, i in doubtful, updates(i, 0)) for i, c, ms, o, n in rows}


def times_of(event: DetectedEvent) -> dict[str, int]:
    """When each listed item of an event was published, by article id."""
    return dict(zip(event.items, event.times, strict=False))


def headline_times(event: DetectedEvent) -> dict[str, int]:
    """When each listed item said its headline, by article id: as updated, else as published."""
    return {i: item.updated_ms or item.claim_ms or item.at_ms for i, item in items_of(event).items()}


def arrivals_of(event: DetectedEvent) -> tuple[int, ...]:
    """When an editor could see each item: when it arrived, if that is known, else when it was published."""
    listed = (max(at_ms, arrival_ms_of(n)) for at_ms, n in zip(event.times, event.numbers, strict=False))
    return *listed, *event.times[len(event.numbers) :]


def course_of(event: DetectedEvent) -> tuple[int, ...]:
    """When its items count, the listed ones first."""
    return course(items_of(event).values(), event.times[len(event.items) :]) if event.claims else event.times


def items_within(event: DetectedEvent, since_ms: int, until_ms: int) -> int:
    """Items of an event that count within a period; it belongs to each day on which it has any."""
    return sum(since_ms <= at_ms < until_ms for at_ms in course_of(event))


def end_of(event: DetectedEvent, at_ms: int) -> tuple[bool, bool]:
    """Of the first or the last item, by its time: whether only its arrival is known, and its doubt."""
    found = {id_ for id_, time_ms in times_of(event).items() if (event.claims.get(id_) or time_ms) == at_ms}
    sure = found.difference(event.doubtful)
    return bool(found) and all(event.claims.get(i) == 0 for i in sure or found), bool(found) and not sure


def with_items(event: E, items: Mapping[str, Item], further: Iterable[int]) -> E:
    """The event with these items instead, and all that they decide."""
    return replace(event, **counted(items, further, event.window_ms, event.developments, event.last_seen_ms))


def bucket(at_ms: int) -> int:
    """Start of the bucket of the timeline that a time is in."""
    return at_ms // TIMELINE_BUCKET_MS * TIMELINE_BUCKET_MS


def peak(times: Collection[int], window_ms: int) -> int:
    """The most of these times within one window; one of exactly its length counts."""
    ordered = sorted(times)
    start = most = 0
    for end, at_ms in enumerate(ordered):
        while ordered[start] < at_ms - window_ms:
            start += 1
        most = max(most, end + 1 - start)
    return most


def size_text(event: DetectedEvent) -> str:
    """Its items and outlets, such as "21 items from 3 outlets"."""
    outlets = len(event.sources)
    return f"{event.size} items" + (f" from {outlets} outlet{'s' * (outlets != 1)}" if outlets else "")


def independent(outlets: Sequence[str], families: Iterable[Sequence[str]]) -> int:
    """The number of outlets with each family counted once; families have no common member."""
    return len(outlets) - sum(len(members) - 1 for members in families)
