"""Known history: since when the counts of a baseline are those of the whole stream; learning status.

Late articles extend it by whole days back from the first live hour, where they are dense enough; an article
that was sent for a trial, days before, is not yet the stream. For the status each of the last seven periods
of 24 h counts by its hours with documents, fully from ``FULL_DAY_HOURS`` or the most of any period on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from aggregator.time_units import HOUR_MS

HISTORY_DAYS = 7
HOURS_PER_DAY = 24
# Share of the present volume that articles of earlier days must have for those days to count as known. A feed
# also lists some articles of the last days when it is first read: those are not all that was published.
KNOWN_VOLUME_SHARE = 0.3
# Share of the documents of the fullest day below which the first days are a trial. A weekend has 0.1.
TRIAL_VOLUME_SHARE = 0.05
FULL_DAY_HOURS = 6
# From this age on, days without documents are a habit of the stream, unless they are most of the week.
HABIT_DAYS = 14


def find_known_hour(
    documents_by_hour: Mapping[int, int], first_hour: int | None, window_hours: int
) -> int | None:
    """Return the hour since which documents are dense enough; ``first_hour``: of the first live one."""
    if not documents_by_hour:
        return first_hour
    live_from = max(documents_by_hour) + 1 if first_hour is None else first_hour
    if min(documents_by_hour) >= live_from:
        return _skip_trial(documents_by_hour, live_from)
    days: dict[int, int] = {}  # documents by number of days before live_from, from 1
    live = 0
    for hour, documents in documents_by_hour.items():
        if hour >= live_from:
            live += documents
        else:
            day = (live_from - 1 - hour) // HOURS_PER_DAY + 1
            days[day] = days.get(day, 0) + documents
    live_hours = max(window_hours, max(documents_by_hour) + 1 - live_from)
    volume = max(live / live_hours * HOURS_PER_DAY, *days.values())
    known_days = late = 0
    for day in range(1, HISTORY_DAYS + 2):
        late += days.get(day, 0)
        if day in days and late >= KNOWN_VOLUME_SHARE * volume * day:
            known_days = day
    if not known_days:
        return first_hour
    oldest = live_from - known_days * HOURS_PER_DAY
    return min(hour for hour in documents_by_hour if hour >= oldest)


def _skip_trial(documents_by_hour: Mapping[int, int], first_hour: int) -> int:
    if first_hour not in documents_by_hour:
        return first_hour
    days: dict[int, int] = {}
    for hour, documents in documents_by_hour.items():
        day = (hour - first_hour) // HOURS_PER_DAY
        days[day] = days.get(day, 0) + documents
    enough = TRIAL_VOLUME_SHARE * max(days.values())
    start = first_hour + HOURS_PER_DAY * min(day for day, documents in days.items() if documents >= enough)
    return min(hour for hour in documents_by_hour if hour >= start)


@dataclass(frozen=True, slots=True)
class LearningStatus:
    """How many of the last days a detector knows, 0 to 7."""

    known_days: float
    needed_days: int = HISTORY_DAYS

    @property
    def is_complete(self) -> bool:
        """Whether all days are known."""
        return self.known_days >= self.needed_days

    def __str__(self) -> str:
        return f"learning: {int(self.known_days)} of {self.needed_days} days"


class LearnedHistory(msgspec.Struct, array_like=True, frozen=True):
    """What a baseline knows, without terms; ``known_hour``: the first, since 1970; None: no document."""

    known_hour: int | None
    documents_by_hour: dict[int, int]

    def status(self, now_ms: int) -> LearningStatus:
        """Return the status at a time in ms since 1970 UTC."""
        if self.known_hour is None:
            return LearningStatus(0.0)
        now_hour = now_ms // HOUR_MS
        hours = [0] * HISTORY_DAYS
        for hour in self.documents_by_hour:
            if self.known_hour <= hour <= now_hour and now_hour - hour < HISTORY_DAYS * HOURS_PER_DAY:
                hours[(now_hour - hour) // HOURS_PER_DAY] += 1
        full = max(1, min(FULL_DAY_HOURS, max(hours)))
        days = sum(min(1.0, count / full) for count in hours)
        passed = (now_hour + 1 - self.known_hour) / HOURS_PER_DAY
        if passed >= HABIT_DAYS and days >= HISTORY_DAYS / 2:
            return LearningStatus(float(HISTORY_DAYS))
        return LearningStatus(max(0.0, min(days, passed)))
