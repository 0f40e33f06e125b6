"""State of the leading detector between two calls: how far it is ahead of its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.events.detection import BurstDetector, EventChange
from aggregator.events.repository import decode_overrides


class LeaderState:
    """The leader's detector between two calls, and how far it is ahead of the checkpoint."""

    def __init__(
        self, detector: BurstDetector, streams: dict[bytes, bytes], saved: bytes | None, checkpoint: int = 0
    ) -> None:
        self.detector = detector
        self.streams = streams
        self.saved_position = saved
        self.checkpoint = checkpoint
        self.checkpoint_at_ms = 0
        self.unsaved_items = 0
        self.pending_changes: list[EventChange] = []
        self.published: list[EventChange] = []
        self.deleted_articles: dict[int, str] = {}
        # b"" is never stored, so the first call applies the overrides.
        self.overrides_value: bytes | None = b""
        self.overrides_changed = False

    def apply_overrides(self, overrides_value: bytes | None) -> None:
        """Apply the stored editor overrides to the detector when they changed."""
        if overrides_value != self.overrides_value:
            self.overrides_changed = bool(self.overrides_value)
            self.overrides_value = overrides_value
            self.detector.set_overrides(decode_overrides(overrides_value))
            self.pending_changes += self.detector.drain_changes()

    def checkpoint_is_due(self, now_ms: int, interval_ms: int) -> bool:
        """Return whether to save now, at least every ``interval_ms``; alerts and deletions at once."""
        if (
            self.deleted_articles
            or self.overrides_changed
            or any(change.kind != "updated" for change in self.pending_changes)
        ):
            return True
        interval_over = not 0 <= now_ms - self.checkpoint_at_ms < interval_ms
        return interval_over and bool(self.unsaved_items or self.pending_changes)

    def mark_saved(self, position: bytes, number: int, now_ms: int, published: Sequence[EventChange]) -> None:
        """Record that checkpoint ``number`` was committed."""
        self.saved_position, self.checkpoint, self.checkpoint_at_ms = position, number, now_ms
        self.published += published
        self.unsaved_items, self.pending_changes = 0, []
        self.deleted_articles, self.overrides_changed = {}, False
