"""A burst detector fed with generated stream items, at times given in minutes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aggregator.analysis.term_frequencies import TermRates
from aggregator.domain import StreamItem, article_number_at
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule, ChangeKind, DetectedEvent, EventChange
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS

START_MS = 20_000 * DAY_MS + 8 * HOUR_MS
RULE = BurstRule()


def time_ms(minute: float) -> int:
    """Time in ms of a minute of the stream; negative minutes are before its start."""
    return START_MS + round(minute * MINUTE_MS)


class DetectorStream:
    """Builds numbered items, feeds them to a detector and records its changes."""

    def __init__(self, rule: BurstRule = RULE, rates: TermRates | None = None) -> None:
        self.detector = BurstDetector(rule, rates)
        self.changes: list[EventChange] = []
        self.item_count = 0

    def item(self, minute: float, words: str, **fields: Any) -> StreamItem:
        """Return an item of its own outlet with the terms ``words`` and two unique ones.

        ``fields`` override any field.
        """
        self.item_count += 1
        at_ms = time_ms(minute)
        text = f"{words} detail{self.item_count} angle{self.item_count}"
        base = StreamItem(
            number=article_number_at(at_ms, self.item_count),
            first_version=article_number_at(at_ms, self.item_count),
            id=f"a{self.item_count}",
            verdict="new",
            arrived_ms=at_ms,
            title=text.capitalize(),
            source=f"outlet{self.item_count}.example",
            terms=tuple((word, 1.0) for word in text.split()),
        )
        return replace(base, **fields)

    def send(self, minute: float, words: str = "harbour bridge collapse", **fields: Any) -> StreamItem:
        """Feed a new item to the detector."""
        item = self.item(minute, words, **fields)
        self.observe(item)
        return item

    def send_burst(self, count: int = 16, start: float = 0.0, step: float = 1.0, **fields: Any) -> None:
        """Feed ``count`` items of one story, one every ``step`` minutes."""
        for i in range(count):
            self.send(start + i * step, **fields)

    def observe(self, item: StreamItem) -> None:
        """Feed an item at its time of arrival."""
        self.detector.observe(item, item.arrived_ms)
        self.changes += self.detector.drain_changes()

    def tick(self, minute: float) -> None:
        """Advance the detector's clock."""
        list(self.detector.tick(time_ms(minute)))
        self.changes += self.detector.drain_changes()

    def last_event(self) -> DetectedEvent:
        """Event of the latest change, as it was then."""
        return self.changes[-1].event

    def events_of_kind(self, kind: ChangeKind) -> list[DetectedEvent]:
        """Events of all changes of one kind, in order."""
        return [change.event for change in self.changes if change.kind == kind]

    @property
    def fired(self) -> list[DetectedEvent]:
        """Events that fired, as they were then."""
        return self.events_of_kind("fired")
