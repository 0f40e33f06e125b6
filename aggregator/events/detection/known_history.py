"""Known history: the hour since which the counts of a baseline are those of the whole stream.

Late articles (archives, backlogs) extend the history that the detector has seen itself, by whole days back
from its first hour, where they are dense enough to be the stream of those days. Its own history begins where
the stream does: an article that was sent for a trial, days before, is not yet the stream.
"""

from __future__ import annotations

from collections.abc import Mapping

HISTORY_DAYS = 7
HOURS_PER_DAY = 24
# Share of the present volume that articles of earlier days must have for those days to count as known. A feed
# also lists some articles of the last days when it is first read: those are not all that was published.
KNOWN_VOLUME_SHARE = 0.3
# Share of the documents of the fullest day below which the first days are a trial. A weekend has 0.1.
TRIAL_VOLUME_SHARE = 0.05


def find_known_hour(
    documents_by_hour: Mapping[int, int], first_hour: int | None, window_hours: int
) -> int | None:
    """Return the hour since which documents are dense enough; ``first_hour`` where all are live and dense.

    ``first_hour``: hour of the first document that was not late, None without any. Hours are numbered since
    1970 UTC.
    """
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
    """Return the first hour of the first day that is no trial; a history older than that is not changed."""
    if first_hour not in documents_by_hour:
        return first_hour
    days: dict[int, int] = {}
    for hour, documents in documents_by_hour.items():
        day = (hour - first_hour) // HOURS_PER_DAY
        days[day] = days.get(day, 0) + documents
    enough = TRIAL_VOLUME_SHARE * max(days.values())
    start = first_hour + HOURS_PER_DAY * min(day for day, documents in days.items() if documents >= enough)
    return min(hour for hour in documents_by_hour if hour >= start)
