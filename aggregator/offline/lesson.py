"""Lesson of an archive: a replay of dated articles, of which only what the detector learned is kept.

What an article can teach depends on its age:

    in the future, or a date without a time      nothing
    younger than the window (4 h)                nothing yet: the service counts it when it is ingested
    up to 7 days                                 what is usual, and series
    up to 400 days                               series: what returns after weeks at the same time of day
    older                                        nothing

Series need the order of time: an article over one window older than the one before it teaches what is usual
only.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aggregator.errors import InvalidInput
from aggregator.events.detection import BurstRule, Lesson
from aggregator.events.detection.known_history import HISTORY_DAYS
from aggregator.events.detection.series import MAX_AGE_MS
from aggregator.offline import jsonl
from aggregator.offline.replay import Row, make_detector, parse_time_ms, read_items
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS

Use = Literal["usual", "series", "recent", "old", "undated", "refused"]
MAX_REFUSALS = 20


@dataclass(slots=True)
class ArchiveReader:
    """Reads article files in order of time, and counts what each row is used for.

    ``counts``: rows by ``Use``; ``refusals``: (location, reason) of the first ``MAX_REFUSALS`` refused rows;
    ``disordered``: used rows over one window older than an earlier one.
    """

    now_ms: int
    rule: BurstRule
    max_line_bytes: int = 64 * 1024 * 1024
    counts: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    disordered: int = 0

    def rows(self, files: Sequence[str], progress: Callable[[int], None] | None = None) -> Iterator[Row]:
        """Yield the rows that are used. ``progress`` is called with the number of bytes read."""
        latest_ms = 0
        for at_ms, row in heapq.merge(*(self._dated_rows(f, progress) for f in files), key=lambda r: r[0]):
            self.disordered += at_ms < latest_ms - self.rule.window_ms
            latest_ms = max(latest_ms, at_ms)
            yield row

    def _dated_rows(self, file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row]]:
        for line in jsonl.read_lines([file], max_line_bytes=self.max_line_bytes, progress=progress):
            try:
                row = jsonl.decode_row(line)
                use, at_ms = self._use_of(row)
            except InvalidInput as error:
                self.counts["refused"] += 1
                if len(self.refusals) < MAX_REFUSALS:
                    self.refusals.append((line.location, str(error)))
                continue
            self.counts[use] += 1
            if use in ("usual", "series"):
                yield at_ms, row

    def _use_of(self, row: dict[str, Any]) -> tuple[Use, int]:
        """What a row teaches, and its time in ms. Raises InvalidInput naming the field."""
        title, date = row.get("title"), row.get("published_at")
        if not (isinstance(title, str) and title.strip()):
            raise InvalidInput("title: missing; the detector learns from headlines.")
        if date is None or date == "":
            return "undated", 0
        at_ms = parse_time_ms(date)
        if at_ms is None:
            raise InvalidInput(
                f"published_at: expected an RFC 3339 time, found {json.dumps(date, default=str)[:60]}."
            )
        if at_ms > self.now_ms:
            raise InvalidInput("published_at: in the future.")
        if at_ms % DAY_MS == 0:
            raise InvalidInput("published_at: a date without a time of day does not say what is usual when.")
        age_ms = self.now_ms - at_ms
        if age_ms <= self.rule.window_ms:
            return "recent", at_ms
        if age_ms <= HISTORY_DAYS * DAY_MS:
            return "usual", at_ms
        return ("series" if age_ms <= MAX_AGE_MS else "old"), at_ms


def build_lesson(rows: Iterable[Row], rule: BurstRule, now_ms: int) -> Lesson:
    """The lesson of dated ``rows`` in order of time, read like those of ``aggregator replay``.

    Without the hours that a detector at ``now_ms`` no longer remembers.
    """
    detector = make_detector(rule)
    minute = 0
    for item in read_items(rows, detector):
        detector.observe(item, item.arrived_ms)
        if item.arrived_ms // MINUTE_MS != minute:
            minute = item.arrived_ms // MINUTE_MS
            detector.drain_changes()
    oldest_hour = (now_ms - HISTORY_DAYS * DAY_MS - rule.window_ms) // HOUR_MS
    return Lesson([hour for hour in detector.lesson.hours if hour[0] >= oldest_hour], detector.lesson.bursts)
