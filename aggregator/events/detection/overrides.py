"""What editors want of the detector: standing orders, not commands.

They say what shall hold, so they can be carried out again at any time: after another leader took over,
after a state was lost, or when an event that they name opens only later.
"""

from __future__ import annotations

import msgspec

from aggregator.domain import StreamItem, arrival_ms_of
from aggregator.events.detection.model import MuteScope
from aggregator.events.detection.profile import Profile, is_same_story
from aggregator.time_units import DAY_MS

# For so long a muted story may go on in new events; then it is known as usual. A routine is muted for good.
STORY_MUTE_MS = 7 * DAY_MS
# The detector's memory: what happened to items and events before is nothing it could undo.
OVERRIDE_RETENTION_MS = 7 * DAY_MS


class Mute(msgspec.Struct, frozen=True, array_like=True):
    """Events like this one are no alerts (``until_ms`` None: ever)."""

    event_id: str
    scope: MuteScope
    profile: tuple[tuple[str, float], ...]
    until_ms: int | None = None


class EditorOverrides(msgspec.Struct, frozen=True, array_like=True):
    """All orders in force.

    revision  grows with every action of an editor
    merged    event -> (event that goes on instead, time of the order in ms)
    removed   article id -> its first number: items that belong to no event
    """

    revision: int = 0
    mutes: tuple[Mute, ...] = ()
    merges: dict[str, tuple[str, int]] = {}
    removed_items: dict[str, int] = {}

    def is_removed(self, item: StreamItem) -> bool:
        """Whether a version of this article was taken out of an event."""
        return self.removed_items.get(item.id) == item.first_version

    def mute_scope(self, profile: Profile, now_ms: int) -> MuteScope | None:
        """Whether an event with this profile is muted from its beginning, and why."""
        for mute in self.mutes:
            if (mute.until_ms is None or now_ms <= mute.until_ms) and is_same_story(mute.profile, profile):
                return mute.scope
        return None

    def next_revision(self, now_ms: int, **changed: object) -> EditorOverrides:
        """These orders with some replaced, without those that have had their effect."""
        orders = msgspec.structs.replace(self, revision=self.revision + 1, **changed)
        return msgspec.structs.replace(
            orders,
            mutes=tuple(m for m in orders.mutes if m.until_ms is None or now_ms <= m.until_ms),
            merges={
                lost: by for lost, by in orders.merges.items() if by[1] >= now_ms - OVERRIDE_RETENTION_MS
            },
            removed_items={
                i: n
                for i, n in orders.removed_items.items()
                if arrival_ms_of(n) >= now_ms - OVERRIDE_RETENTION_MS
            },
        )
