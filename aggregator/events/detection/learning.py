"""Learning status: how many of the last seven days the baseline knows.

Each of the last seven periods of 24 h counts by its hours with documents, and fully from ``FULL_DAY_HOURS``
on, or from the most that any period has: an outlet may publish in office hours only. No more days count than
have passed since the known history began::

    started 30 h ago, documents in every hour             1.25 days
    ... and two days without documents in between         1.25 days: those hours count for nothing
    an archive of four days was learned                   4 days and the hours since then
    every day for a month, none on Saturday and Sunday    7 days: a habit, see ``HABIT_DAYS``
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from aggregator.events.detection.known_history import HISTORY_DAYS, HOURS_PER_DAY
from aggregator.time_units import HOUR_MS

FULL_DAY_HOURS = 6
# From this age on, days without documents are a habit of the stream, unless they are most of the week.
HABIT_DAYS = 14


@dataclass(frozen=True, slots=True)
class LearningStatus:
    """``known_days``: 0 to 7."""

    known_days: float
    needed_days: int = HISTORY_DAYS

    @property
    def is_complete(self) -> bool:
        """Whether all days are known."""
        return self.known_days >= self.needed_days

    def __str__(self) -> str:
        return f"learning: {int(self.known_days)} of {self.needed_days} days"


class LearnedHistory(msgspec.Struct, array_like=True, frozen=True):
    """What a baseline knows, without its terms. Hours are numbered since 1970 UTC.

    known_hour         first hour of the known history; None: no document yet
    documents_by_hour  documents of each hour that has any
    """

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
