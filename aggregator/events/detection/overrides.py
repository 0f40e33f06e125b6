"""Editor overrides: persistent instructions (mute, merge, removed item) for the detector.

They describe a desired state, so the detector can apply them repeatedly.
"""

from __future__ import annotations

import msgspec

from aggregator.domain import StreamItem, arrival_ms_of
from aggregator.events.detection.key_terms import Profile, is_same_story
from aggregator.events.detection.model import MuteScope
from aggregator.time_units import DAY_MS

# A muted story may continue in new events for this time; then its baseline covers it. A routine has no limit.
STORY_MUTE_MS = 7 * DAY_MS
# Merges and removed items expire with the history of the detector, which cannot bring back anything older.
OVERRIDE_RETENTION_MS = 7 * DAY_MS


class Mute(msgspec.Struct, frozen=True, array_like=True):
    """Suppresses alerts for events with a similar profile, until ``until_ms`` (None: indefinitely)."""

    event_id: str
    scope: MuteScope
    profile: tuple[tuple[str, float], ...]
    until_ms: int | None = None


class EditorOverrides(msgspec.Struct, frozen=True, array_like=True):
    """All overrides in force. The order of the fields is part of the stored format.

    revision       incremented by every editor action
    merges         absorbed event id -> (id of the surviving event, time of the action in ms)
    removed_items  article id -> its first version: articles that belong to no event
    """

    revision: int = 0
    mutes: tuple[Mute, ...] = ()
    merges: dict[str, tuple[str, int]] = {}
    removed_items: dict[str, int] = {}

    def is_removed(self, item: StreamItem) -> bool:
        """Whether an editor removed this article (any version of it) from an event."""
        return self.removed_items.get(item.id) == item.first_version

    def mute_scope(self, profile: Profile, now_ms: int) -> MuteScope | None:
        """Return the scope of the mute that covers a new event with this profile, or None."""
        for mute in self.mutes:
            if (mute.until_ms is None or now_ms <= mute.until_ms) and is_same_story(mute.profile, profile):
                return mute.scope
        return None

    def next_revision(self, now_ms: int, **changed: object) -> EditorOverrides:
        """Return the next revision with the fields ``changed``, without expired overrides."""
        overrides = msgspec.structs.replace(self, revision=self.revision + 1, **changed)
        oldest_ms = now_ms - OVERRIDE_RETENTION_MS
        return msgspec.structs.replace(
            overrides,
            mutes=tuple(m for m in overrides.mutes if m.until_ms is None or now_ms <= m.until_ms),
            merges={id_: merge for id_, merge in overrides.merges.items() if merge[1] >= oldest_ms},
            removed_items={
                id_: number
                for id_, number in overrides.removed_items.items()
                if arrival_ms_of(number) >= oldest_ms
            },
        )
