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

from aggregator.time_units import HOUR_MS

HISTORY_DAYS = 7
HOURS_PER_DAY = 24
SAME_WEEKDAY_WEIGHT = 2.0
# What comes once a week is routine too: half of what there was a week ago is expected in any case.
WEEK_AGO_SHARE = 0.5
# Pseudo-documents of a window: below about so many a count is chance. From 2 to 5 little changes.
SMOOTHING_DOCUMENTS = 3.0
MIN_BURST_RATIO = 0.5
# Fewer documents per window than this: none is usual, and one is chance in 20 windows.
NEGLIGIBLE_DOCUMENTS = 0.05
MAX_TERMS_PER_HOUR = 100_000
# Without a past, half of what is seen passes for usual in a stream of so many documents: of so many, an ordinary
# word (one in a hundred) is seen as often as the items of an event.
BUSY_STREAM_DOCUMENTS = 2_000
# Weights are stale once the documents have grown by so many, and by such a share of what they were.
IDF_STALE_GROWTH_DOCUMENTS = 1000
IDF_STALE_GROWTH_RATIO = 0.05
# The number of all documents stands within an hour until it has changed by this share: idf hardly hears of it.
TOTAL_TOLERANCE_RATIO = 0.01
# No word is empty.
ALL_DOCUMENTS = ""


class Baseline:
    """Hourly document counts of terms. Hours are numbered since 1970 UTC."""

    def __init__(self, window_ms: int) -> None:
        self._window_hours = window_ms / HOUR_MS
        self._window_hours_ceil = max(1, ceil(self._window_hours))
        self.counts_by_hour: dict[int, dict[str, int]] = {}
        self.documents_by_hour: dict[int, int] = {}
        self.first_hour: int | None = None
        self._document_frequencies: dict[str, int] = {}
        self._document_count = 0
        self.idf_documents = 0
        self.idf_hour = -1
        self._expected_cache: dict[str, float] = {}
        self._cache_hour = -1
        self._cold_start_share = 0.0
        # Of each of the last days that are known, the latest first: its weight, the counts of this hour's window.
        self._comparison_windows: list[tuple[float, list[dict[str, int]]]] = []

    def add(self, hour: int, terms: Iterable[str]) -> None:
        """Count one document."""
        counts = self.counts_by_hour.get(hour)
        if counts is None:
            counts = self._open_hour(hour)
        totals = self._document_frequencies
        for term in terms:
            if term in counts:
                counts[term] += 1
            elif len(counts) < MAX_TERMS_PER_HOUR:
                counts[term] = 1
            else:
                continue
            totals[term] = totals.get(term, 0) + 1
        self.documents_by_hour[hour] += 1
        self._document_count += 1

    def expected(self, term: str, hour: int) -> float:
        """Documents per window that usually hold ``term`` at this hour; 0.0 without history."""
        if hour != self._cache_hour:
            self._rebuild_cache(hour)
        found = self._expected_cache.get(term)
        if found is None:
            before = self._document_frequencies.get(term, 0)
            if before:
                before -= self._count_between(term, hour - self._window_hours_ceil + 1, hour)
            # Most terms are new: without a past there is nothing to look up.
            found = (
                max(self._mean_at_same_hour(term), self._long_run_mean(before, hour)) if before > 0 else 0.0
            )
            self._expected_cache[term] = found
        return found

    def idf(self, term: str) -> float:
        """log(2 + documents / (1 + documents with the term)), of the last 7 days; documents as last frozen."""
        return log(2 + self.idf_documents / (1 + self._document_frequencies.get(term, 0)))

    def weight(self, term: str, observed: int, hour: int) -> float:
        """idf times the ratio of ``seen`` documents in the window to the expected ones, smoothed."""
        if hour != self._cache_hour:
            self._rebuild_cache(hour)
        usual = self._expected_cache.get(term)
        if usual is None:
            usual = self.expected(term, hour)
        if observed > usual:
            usual += self._cold_start_share * (observed - usual)
        ratio = (observed + SMOOTHING_DOCUMENTS) / (usual + SMOOTHING_DOCUMENTS)
        idf = log(2 + self.idf_documents / (1 + self._document_frequencies.get(term, 0)))
        return idf * (ratio if ratio > MIN_BURST_RATIO else MIN_BURST_RATIO)

    def idf_is_stale(self) -> bool:
        """Whether the documents have become so many since the last ``freeze`` that no weight is what it was."""
        return self._document_count - self.idf_documents >= max(
            IDF_STALE_GROWTH_DOCUMENTS, IDF_STALE_GROWTH_RATIO * self.idf_documents
        )

    def drop_hours_after(self, hour: int) -> None:
        """Drop hours later than ``hour``: they were counted under a wrong clock."""
        for late in [h for h in self.counts_by_hour if h > hour]:
            self._drop_hour(late)
        if self.first_hour is not None and self.first_hour > hour:
            self.first_hour = None
        self._cache_hour = self.idf_hour = -1

    def saved_hours(self) -> list[tuple[int, int, dict[str, int]]]:
        """(hour, documents, counts by term) of each hour, for ``restore_hour``; not copied."""
        return [(h, self.documents_by_hour[h], counts) for h, counts in self.counts_by_hour.items()]

    def restore_hour(self, hour: int, counts: dict[str, int], documents: int) -> None:
        """Put back one saved hour."""
        self.counts_by_hour[hour] = counts
        self.documents_by_hour[hour] = documents
        self._document_count += documents
        for term, count in counts.items():
            self._document_frequencies[term] = self._document_frequencies.get(term, 0) + count

    def refresh_totals(self, hour: int) -> bool:
        """Forget what ``hour`` cannot need, and take the present number of documents as that of all terms.

        False when the last number still stands, which is within a hundredth of it, in the same hour: then the
        weight of a term has changed only with its own counts, and can be remembered.
        """
        if self._totals_are_current(hour):
            return False
        oldest = hour - HISTORY_DAYS * HOURS_PER_DAY - self._window_hours_ceil
        if outlived := [h for h in self.counts_by_hour if h < oldest]:
            for old in outlived:
                self._drop_hour(old)
            # Keys that came and went take room in a dictionary, until its table doubles. A copy is without them.
            self._document_frequencies = dict(self._document_frequencies)
        self.idf_documents, self.idf_hour = self._document_count, hour
        self._cold_start_share = self._compute_cold_start_share(self._cache_hour)
        return True

    def _totals_are_current(self, hour: int) -> bool:
        return (
            hour == self.idf_hour
            and abs(self._document_count - self.idf_documents) <= TOTAL_TOLERANCE_RATIO * self.idf_documents
        )

    def _rebuild_cache(self, hour: int) -> None:
        self._expected_cache, self._cache_hour = {}, hour
        self._comparison_windows, self._cold_start_share = (
            self._windows_at_same_hour(hour),
            self._compute_cold_start_share(hour),
        )

    def _compute_cold_start_share(self, hour: int) -> float:
        """Share of what is seen that passes for usual, 0..1: see the head of this module."""
        missing = (
            0
            if self.first_hour is None
            else self.first_hour + HOURS_PER_DAY + self._window_hours_ceil - 1 - hour
        )
        if missing <= 0:
            return 0.0
        return (
            min(missing, HOURS_PER_DAY)
            / HOURS_PER_DAY
            * self.idf_documents
            / (self.idf_documents + BUSY_STREAM_DOCUMENTS)
        )

    def _open_hour(self, hour: int) -> dict[str, int]:
        if self.first_hour is None or hour < self.first_hour:
            self.first_hour, self._cache_hour = hour, -1
        self.documents_by_hour[hour] = 0
        return self.counts_by_hour.setdefault(hour, {})

    def _drop_hour(self, hour: int) -> None:
        for term, count in self.counts_by_hour.pop(hour).items():
            left = self._document_frequencies[term] - count
            if left:
                self._document_frequencies[term] = left
            else:
                del self._document_frequencies[term]
        self._document_count -= self.documents_by_hour.pop(hour)
        self._cache_hour = -1

    def _windows_at_same_hour(self, hour: int) -> list[tuple[float, list[dict[str, int]]]]:
        first = hour if self.first_hour is None else self.first_hour
        days = []
        for day in range(1, HISTORY_DAYS + 1):
            end = hour - HOURS_PER_DAY * day
            if end < first:
                break
            counts = [
                self.counts_by_hour[h]
                for h in range(end - self._window_hours_ceil, end + 1)
                if h in self.counts_by_hour
            ]
            days.append((SAME_WEEKDAY_WEIGHT if day == HISTORY_DAYS else 1.0, counts))
        return days

    def _mean_at_same_hour(self, term: str) -> float:
        """Of the windows that ended at this hour in the last 7 days: weighted mean, or half of a week ago."""
        documents = weights = 0.0
        found = 0
        for weight, counts in self._comparison_windows:
            found = sum([count[term] for count in counts if term in count])
            documents += weight * found
            weights += weight
        week_ago = WEEK_AGO_SHARE * found if len(self._comparison_windows) == HISTORY_DAYS else 0.0
        usual = max(documents / weights, week_ago) if weights else 0.0
        return usual * self._window_hours / (self._window_hours_ceil + 1)

    def _long_run_mean(self, before: int, hour: int) -> float:
        """Average over what is known before the window; a day at least, or a first hour would set the norm.

        ``before``: documents with the term that are older than the window.
        """
        start = hour - self._window_hours_ceil + 1
        known = start - (hour if self.first_hour is None else self.first_hour)
        return before * self._window_hours / max(HOURS_PER_DAY, min(HISTORY_DAYS * HOURS_PER_DAY, known))

    def _count_between(self, term: str, start: int, end: int) -> int:
        found = 0
        for hour in range(start, end + 1):
            counts = self.counts_by_hour.get(hour)
            if counts is not None:
                found += counts.get(term, 0)
        return found
