"""How often is a term usual at this time of the week? Counts by hour over the last 7 days.

Two questions are answered from them. ``expected``: how many documents per window hold a term *now*,
judged by the same hours of the last 7 days (the same weekday counts double, and half of it is expected in any
case) and by its average over all of them, whichever is more. ``weight``: how much a term says about a story now, after the bursty features of
He, Chang & Lim (2007): its idf in the stream times how much more often it is seen than expected. A
template's words are as frequent as ever and say little; the place where something happens says
nearly everything, although it may be no rare word.

Before a day is known, that ratio misleads: no word was expected, so common ones, seen most, would seem to
burst most. In a stream of few documents what is seen most does burst; in a busy one names would drown. So as
much of the day as is missing, and the busier the stream the more, what is seen of a term counts as expected.

``EVERY`` is counted as a term of each document, so that the volume of the whole stream has its usual too.

History is bounded by 7 days plus a window; an hour keeps at most ``MAX_TERMS`` terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log

from aggregator.events.detection.model import HOUR_MS

DAYS = 7
DAY_HOURS = 24
SAME_WEEKDAY = 2.0
# What comes once a week is routine too: half of what there was a week ago is expected in any case.
WEEK_AGO = 0.5
# Pseudo-documents of a window: below about so many a count is chance. From 2 to 5 little changes.
PRIOR = 3.0
LEAST_RATIO = 0.5
# Fewer documents per window than this: none is usual, and one is chance in 20 windows.
NONE_USUAL = 0.05
MAX_TERMS = 100_000
# Without a past, half of what is seen passes for usual in a stream of so many documents: of so many, an ordinary
# word (one in a hundred) is seen as often as the items of an event.
BUSY = 2_000
# Weights are stale once the documents have grown by so many, and by such a share of what they were.
GROWN = 1000
GROWN_SHARE = 0.05
# The number of all documents stands within an hour until it has changed by this share: idf hardly hears of it.
STALE = 0.01
# No word is empty.
EVERY = ""


class Background:
    """Hourly document counts of terms. Hours are numbered since 1970 UTC."""

    def __init__(self, window_ms: int) -> None:
        self._window_h = window_ms / HOUR_MS
        self._reach = max(1, ceil(self._window_h))
        self.hours: dict[int, dict[str, int]] = {}
        self.documents: dict[int, int] = {}
        self.first_hour: int | None = None
        self._totals: dict[str, int] = {}
        self._all = 0
        self.frozen = 0
        self.frozen_hour = -1
        self._memo: dict[str, float] = {}
        self._memo_hour = -1
        self._unknown_share = 0.0
        # Of each of the last days that are known, the latest first: its weight, the counts of this hour's window.
        self._days: list[tuple[float, list[dict[str, int]]]] = []

    def add(self, hour: int, terms: Iterable[str]) -> None:
        """Count one document."""
        counts = self.hours.get(hour)
        if counts is None:
            counts = self._open(hour)
        totals = self._totals
        for term in terms:
            if term in counts:
                counts[term] += 1
            elif len(counts) < MAX_TERMS:
                counts[term] = 1
            else:
                continue
            totals[term] = totals.get(term, 0) + 1
        self.documents[hour] += 1
        self._all += 1

    def expected(self, term: str, hour: int) -> float:
        """Documents per window that usually hold ``term`` at this hour; 0.0 without history."""
        if hour != self._memo_hour:
            self._look_back(hour)
        found = self._memo.get(term)
        if found is None:
            before = self._totals.get(term, 0)
            if before:
                before -= self._within(term, hour - self._reach + 1, hour)
            # Most terms are new: without a past there is nothing to look up.
            found = max(self._same(term), self._mean(before, hour)) if before > 0 else 0.0
            self._memo[term] = found
        return found

    def idf(self, term: str) -> float:
        """log(2 + documents / (1 + documents with the term)), of the last 7 days; documents as last frozen."""
        return log(2 + self.frozen / (1 + self._totals.get(term, 0)))

    def weight(self, term: str, seen: int, hour: int) -> float:
        """idf times the ratio of ``seen`` documents in the window to the expected ones, smoothed."""
        if hour != self._memo_hour:
            self._look_back(hour)
        usual = self._memo.get(term)
        if usual is None:
            usual = self.expected(term, hour)
        if seen > usual:
            usual += self._unknown_share * (seen - usual)
        ratio = (seen + PRIOR) / (usual + PRIOR)
        idf = log(2 + self.frozen / (1 + self._totals.get(term, 0)))
        return idf * (ratio if ratio > LEAST_RATIO else LEAST_RATIO)

    def has_outgrown(self) -> bool:
        """Whether the documents have become so many since the last ``freeze`` that no weight is what it was."""
        return self._all - self.frozen >= max(GROWN, GROWN_SHARE * self.frozen)

    def forget_after(self, hour: int) -> None:
        """Drop hours later than ``hour``: they were counted under a wrong clock."""
        for late in [h for h in self.hours if h > hour]:
            self._drop(late)
        if self.first_hour is not None and self.first_hour > hour:
            self.first_hour = None
        self._memo_hour = self.frozen_hour = -1

    def restore(self, hour: int, counts: dict[str, int], documents: int) -> None:
        """Put back one saved hour."""
        self.hours[hour] = counts
        self.documents[hour] = documents
        self._all += documents
        for term, count in counts.items():
            self._totals[term] = self._totals.get(term, 0) + count

    def freeze(self, hour: int) -> bool:
        """Forget what ``hour`` cannot need, and take the present number of documents as that of all terms.

        False when the last number still stands, which is within a hundredth of it, in the same hour: then the
        weight of a term has changed only with its own counts, and can be remembered.
        """
        if self._is_frozen(hour):
            return False
        oldest = hour - DAYS * DAY_HOURS - self._reach
        if outlived := [h for h in self.hours if h < oldest]:
            for old in outlived:
                self._drop(old)
            # Keys that came and went take room in a dictionary, until its table doubles. A copy is without them.
            self._totals = dict(self._totals)
        self.frozen, self.frozen_hour = self._all, hour
        self._unknown_share = self._unknown(self._memo_hour)
        return True

    def _is_frozen(self, hour: int) -> bool:
        return hour == self.frozen_hour and abs(self._all - self.frozen) <= STALE * self.frozen

    def _look_back(self, hour: int) -> None:
        self._memo, self._memo_hour = {}, hour
        self._days, self._unknown_share = self._same_hours(hour), self._unknown(hour)

    def _unknown(self, hour: int) -> float:
        """Share of what is seen that passes for usual, 0..1: see the head of this module."""
        missing = 0 if self.first_hour is None else self.first_hour + DAY_HOURS + self._reach - 1 - hour
        if missing <= 0:
            return 0.0
        return min(missing, DAY_HOURS) / DAY_HOURS * self.frozen / (self.frozen + BUSY)

    def _open(self, hour: int) -> dict[str, int]:
        if self.first_hour is None or hour < self.first_hour:
            self.first_hour, self._memo_hour = hour, -1
        self.documents[hour] = 0
        return self.hours.setdefault(hour, {})

    def _drop(self, hour: int) -> None:
        for term, count in self.hours.pop(hour).items():
            left = self._totals[term] - count
            if left:
                self._totals[term] = left
            else:
                del self._totals[term]
        self._all -= self.documents.pop(hour)
        self._memo_hour = -1

    def _same_hours(self, hour: int) -> list[tuple[float, list[dict[str, int]]]]:
        first = hour if self.first_hour is None else self.first_hour
        days = []
        for day in range(1, DAYS + 1):
            end = hour - DAY_HOURS * day
            if end < first:
                break
            counts = [self.hours[h] for h in range(end - self._reach, end + 1) if h in self.hours]
            days.append((SAME_WEEKDAY if day == DAYS else 1.0, counts))
        return days

    def _same(self, term: str) -> float:
        """Of the windows that ended at this hour in the last 7 days: weighted mean, or half of a week ago."""
        documents = weights = 0.0
        found = 0
        for weight, counts in self._days:
            found = sum([count[term] for count in counts if term in count])
            documents += weight * found
            weights += weight
        week_ago = WEEK_AGO * found if len(self._days) == DAYS else 0.0
        usual = max(documents / weights, week_ago) if weights else 0.0
        return usual * self._window_h / (self._reach + 1)

    def _mean(self, before: int, hour: int) -> float:
        """Average over what is known before the window; a day at least, or a first hour would set the norm.

        ``before``: documents with the term that are older than the window.
        """
        start = hour - self._reach + 1
        known = start - (hour if self.first_hour is None else self.first_hour)
        return before * self._window_h / max(DAY_HOURS, min(DAYS * DAY_HOURS, known))

    def _within(self, term: str, start: int, end: int) -> int:
        found = 0
        for hour in range(start, end + 1):
            counts = self.hours.get(hour)
            if counts is not None:
                found += counts.get(term, 0)
        return found
