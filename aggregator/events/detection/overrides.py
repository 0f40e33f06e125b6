"""What editors want of the detector: standing orders, not commands.

They say what shall hold, so they can be carried out again at any time: after another leader took over,
after a state was lost, or when an event that they name opens only later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aggregator.domain import StreamItem, arrival_ms_of
from aggregator.events.detection.model import Scope
from aggregator.events.detection.profile import Profile, is_alike

if TYPE_CHECKING:
    from aggregator.events.detection.detector import BurstDetector

DAY_MS = 86_400_000
# For so long a muted story may go on in new events; then it is known as usual. A routine is muted for good.
STORY_MS = 7 * DAY_MS
# The detector's memory: what happened to items and events before is nothing it could undo.
MEMORY_MS = 7 * DAY_MS


class Mute(msgspec.Struct, frozen=True, array_like=True):
    """Events like this one are no alerts (``until_ms`` None: ever)."""

    event: str
    scope: Scope
    profile: tuple[tuple[str, float], ...]
    until_ms: int | None = None


class Orders(msgspec.Struct, frozen=True, array_like=True):
    """All orders in force.

    revision  grows with every action of an editor
    merged    event -> (event that goes on instead, time of the order in ms)
    removed   article id -> its first number: items that belong to no event
    """

    revision: int = 0
    mutes: tuple[Mute, ...] = ()
    merged: dict[str, tuple[str, int]] = {}
    removed: dict[str, int] = {}

    def has_removed(self, item: StreamItem) -> bool:
        """Whether a version of this article was taken out of an event."""
        return self.removed.get(item.id) == item.first

    def scope_of(self, profile: Profile, now_ms: int) -> Scope | None:
        """Whether an event with this profile is muted from its beginning, and why."""
        for mute in self.mutes:
            if (mute.until_ms is None or now_ms <= mute.until_ms) and is_alike(mute.profile, profile):
                return mute.scope
        return None

    def next(self, now_ms: int, **changed: object) -> Orders:
        """These orders with some replaced, without those that have had their effect."""
        orders = msgspec.structs.replace(self, revision=self.revision + 1, **changed)
        return msgspec.structs.replace(
            orders,
            mutes=tuple(m for m in orders.mutes if m.until_ms is None or now_ms <= m.until_ms),
            merged={lost: by for lost, by in orders.merged.items() if by[1] >= now_ms - MEMORY_MS},
            removed={i: n for i, n in orders.removed.items() if arrival_ms_of(n) >= now_ms - MEMORY_MS},
        )


def enforce(detector: BurstDetector, orders: Orders) -> None:
    """Make the detector's events what the orders say."""
    book = detector.book
    for id_, first in orders.removed.items():
        if any(id_ in event.items for event in book.open.values()):
            detector.take_out(id_, first)
    for lost, (into, _) in orders.merged.items():
        if lost not in book.open:
            continue
        story = detector.stories.open[book.open[lost].story]
        if into in book.open:
            detector.unite(detector.stories.open[book.open[into].story], story)
        else:
            book.end(lost, into, detector.clock_ms)
            detector.disband(story)
