"""Baseline: hourly document counts per term over the last 7 days, and what is expected from them.

``expected``: documents per window that usually hold a term at this hour: the larger of its mean over the
windows that ended at this hour on the last 7 days (the same weekday counts double, and half of its count is
expected in any case) and its mean over all hours. ``weight``: after He, Chang & Lim (2007).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import reduce
from math import ceil, log
from operator import or_

from aggregator.events.detection.model import CHANCE_ITEMS, HISTORY_DAYS, HOURS_PER_DAY, NEGLIGIBLE_SHARE
from aggregator.index.keys import term_hash
from aggregator.time_units import HOUR_MS

SAME_WEEKDAY_WEIGHT = 2.0
WEEK_AGO_SHARE = 0.5  # a weekly event is routine too: half of its count a week ago is expected in any case
MAX_TERMS_PER_HOUR = 100_000
HOURS_PER_WEEK = HISTORY_DAYS * HOURS_PER_DAY
# Stream size at which, without history, half of the observed documents count as expected: in 2,000 documents
# an ordinary word (1 in 100) is as frequent as the items of an event.
BUSY_STREAM_DOCUMENTS = 2_000
# Share of the present volume that articles of earlier days must have for those days to count as known. A feed
# also lists some articles of the last days when it is first read: those are not all that was published.
KNOWN_VOLUME_SHARE = 0.3
ALL_DOCUMENTS = ""  # cannot collide: no term is the empty string, or begins with this character


def documents_in(lang: str) -> str:
    """The term that every document of a language holds."""
    return f"\0{lang}"


class TermCache(dict[str, float]):
    """Cache as a dict subclass, not a function: most lookups are hits, without a Python call."""

    def __init__(self, compute: Callable[[str], float]) -> None:
        self._compute = compute

    def __missing__(self, term: str) -> float:
        value = self[term] = self._compute(term)
        return value


class Baseline:
    """Hourly document counts of terms. Hours are numbered since 1970 UTC.

    ``first_hour``: of the first live document; as of ``refresh_totals``: ``known_hour``, first hour of
    the known history, ``idf_documents``, all documents, and ``idf_hour``.
    """

    def __init__(self, window_ms: int) -> None:
        self.window_hours = window_ms / HOUR_MS
        self._window_hours_ceil = max(1, ceil(self.window_hours))
        self.counts_by_hour: dict[int, dict[str, int]] = {}
        self.articles_by_hour: dict[int, array[int]] = {}
        self.first_hour: int | None = None
        self.known_hour: int | None = None
        self._document_frequencies: dict[str, int] = {}
        # By hour with documents: its bit; by term: the bits of the hours that hold it.
        self._bit_of_hour: dict[int, int] = {}
        self._hours_of_term: dict[str, int] = {}
        self.document_count = 0
        self.idf_documents = 0
        self.idf_hour = -1
        self._expected_cache = TermCache(self._compute_expected)
        self._cache_hour = -1
        self._cold_start_share = 0.0
        # (weight, counts of its hours, bits of its hours) of the window that ended at this hour on each known
        # day, latest first, and the bits of all.
        self._comparison_windows: list[tuple[float, list[dict[str, int]], int]] = []
        self._comparison_bits = 0
        self._weight_sum = 0.0
        # Assumed number of known hours before the window.
        self._long_run_hours = HOURS_PER_DAY

    @property
    def documents_by_hour(self) -> dict[int, int]:
        """The documents of each hour."""
        return {hour: len(articles) for hour, articles in self.articles_by_hour.items()}

    def add(self, hour: int, terms: Iterable[str], article: int = 0) -> None:
        """Count the document of an article; terms beyond ``MAX_TERMS_PER_HOUR`` are dropped."""
        if self.first_hour is None or hour < self.first_hour:
            self.first_hour, self._cache_hour = hour, -1
            self.known_hour = hour if self.known_hour is None else min(hour, self.known_hour)
        self._count(hour, terms, article)

    def covers(self, hour: int, clock_hour: int) -> bool:
        """Whether the history at ``clock_hour`` reaches back to an hour."""
        return hour >= clock_hour - HOURS_PER_WEEK - self._window_hours_ceil

    def add_late(self, hour: int, terms: Sequence[str], article: int = 0) -> None:
        """Count the document of an article of an ``hour`` before the window."""
        if hour not in self.counts_by_hour:
            self._cache_hour = -1
        self._count(hour, terms, article)
        for term in terms:
            self._expected_cache.pop(term, None)

    def forget(self, article: int, hashes: Container[int]) -> list[str]:
        """Undo what an article taught, whose terms have these ``term_hash``; returns its terms."""
        hour = next((h for h, articles in self.articles_by_hour.items() if article in articles), None)
        if hour is None:
            return []
        counts, articles = self.counts_by_hour[hour], self.articles_by_hour[hour]
        terms = [term for term in counts if term == ALL_DOCUMENTS or term_hash(term) in hashes]
        self._drop_hour(hour)
        articles.remove(article)
        self.restore_hour(hour, dict(Counter(counts) - Counter(terms)), articles.tobytes())
        self._cache_hour = -1
        return terms

    def _count(self, hour: int, terms: Iterable[str], article: int) -> None:
        counts = self.counts_by_hour.get(hour)
        if counts is None:
            self._skip_silent_weeks(hour)
            counts = self._create_hour(hour, {})
        totals, hours_of_term, bit = self._document_frequencies, self._hours_of_term, self._bit_of_hour[hour]
        for term in terms:
            if term in counts:
                counts[term] += 1
            elif len(counts) < MAX_TERMS_PER_HOUR:
                counts[term] = 1
                hours_of_term[term] = hours_of_term.get(term, 0) | bit
            else:
                continue
            totals[term] = totals.get(term, 0) + 1
        self.articles_by_hour[hour].append(article)
        self.document_count += 1

    def _create_hour(self, hour: int, counts: dict[str, int]) -> dict[str, int]:
        self.counts_by_hour[hour], self.articles_by_hour[hour] = counts, array("Q")
        used = sum(self._bit_of_hour.values())
        self._bit_of_hour[hour] = ~used & (used + 1)  # the lowest free bit
        return counts

    def _skip_silent_weeks(self, hour: int) -> None:
        """Date a history of a day or more by those whole weeks later for which the stream was silent."""
        latest = max(self.counts_by_hour, default=hour)
        shift = (hour - latest) // HOURS_PER_WEEK * HOURS_PER_WEEK
        if shift <= 0:
            return
        self._cache_hour = self.idf_hour = -1
        self.first_hour = self.known_hour = hour
        if latest - min(self.counts_by_hour) < HOURS_PER_DAY:
            return
        self.counts_by_hour = {h + shift: counts for h, counts in self.counts_by_hour.items()}
        self.articles_by_hour = {h + shift: articles for h, articles in self.articles_by_hour.items()}
        self._bit_of_hour = {h + shift: bit for h, bit in self._bit_of_hour.items()}

    def expected(self, term: str, hour: int) -> float:
        """Return how many documents per window usually hold ``term`` at this hour; 0.0 without history."""
        return self.expectations(hour)[term]

    def expectations(self, hour: int) -> Mapping[str, float]:
        """``expected`` of each term at this hour as a mapping, for many terms; valid until the next call."""
        if hour != self._cache_hour:
            self._rebuild_cache(hour)
        return self._expected_cache

    def _compute_expected(self, term: str) -> float:
        before, hour = self._document_frequencies.get(term, 0), self._cache_hour
        if before:
            before -= self.count_between(term, hour - self._window_hours_ceil + 1, hour)
        # Most terms are new: without history there is nothing to compute.
        if before <= 0:
            return 0.0
        return max(self._mean_at_same_hour(term), before * self.window_hours / self._long_run_hours)

    def on_a_day(self, term: str, hour: int) -> float:
        """Return how many documents hold ``term`` on a usual day before the last 24 hours."""
        latest = self.count_between(term, hour - HOURS_PER_DAY, hour)
        return (self._document_frequencies.get(term, 0) - latest) * HOURS_PER_DAY / self._long_run_hours

    def idf(self, term: str) -> float:
        """Return log(2 + ``idf_documents`` / (1 + documents with the term)) over the last 7 days."""
        return log(2 + self.idf_documents / (1 + self._document_frequencies.get(term, 0)))

    def weight(self, term: str, observed: int, hour: int, in_general: float = 0.0) -> float:
        """Return idf times the smoothed ratio of observed documents to expected ones."""
        # Called for millions of terms: ``expected`` and ``idf`` are inlined.
        if hour != self._cache_hour:
            self._rebuild_cache(hour)
        expected = self._expected_cache[term]
        if observed > expected:
            expected += self._cold_start_share * (observed - expected)
        if in_general:
            expected = max(expected, in_general)
        idf = log(2 + self.idf_documents / (1 + self._document_frequencies.get(term, 0)))
        return idf * (observed + CHANCE_ITEMS) / (expected + CHANCE_ITEMS)

    def drop_hours_after(self, hour: int) -> None:
        """Drop hours later than ``hour``, which were counted under a wrong clock."""
        for late in [h for h in self.counts_by_hour if h > hour]:
            self._drop_hour(late)
        if self.first_hour is not None and self.first_hour > hour:
            self.first_hour = None
        self.known_hour = find_known_hour(self.documents_by_hour, self.first_hour, self._window_hours_ceil)
        self._cache_hour = self.idf_hour = -1

    def restore_hour(self, hour: int, counts: dict[str, int], articles: bytes) -> None:
        """Add one saved hour."""
        self._create_hour(hour, counts)
        self.articles_by_hour[hour].frombytes(articles)
        self.document_count += len(self.articles_by_hour[hour])
        totals, hours_of_term, bit = self._document_frequencies, self._hours_of_term, self._bit_of_hour[hour]
        for term, count in counts.items():
            totals[term] = totals.get(term, 0) + count
            hours_of_term[term] = hours_of_term.get(term, 0) | bit

    def refresh_totals(self, hour: int) -> bool:
        """Drop old hours and set ``idf_documents``; False if it is kept, within an hour and 5 % of change."""
        change = abs(self.document_count - self.idf_documents)
        if hour == self.idf_hour and change <= NEGLIGIBLE_SHARE * self.idf_documents:
            return False
        latest = max(self.articles_by_hour, default=hour)
        oldest = min(hour, latest + HOURS_PER_DAY) - HOURS_PER_WEEK - self._window_hours_ceil
        if expired := [h for h in self.counts_by_hour if h < oldest]:
            for old in expired:
                self._drop_hour(old)
            if hour // HOURS_PER_DAY != self.idf_hour // HOURS_PER_DAY:
                # Deleted keys keep their slots in a dictionary until it is resized; a copy is compact.
                self._document_frequencies = dict(self._document_frequencies)
                self._hours_of_term = dict(self._hours_of_term)
        self.idf_documents, self.idf_hour = self.document_count, hour
        known_hour = find_known_hour(self.documents_by_hour, self.first_hour, self._window_hours_ceil)
        if known_hour != self.known_hour:
            self.known_hour, self._cache_hour = known_hour, -1
        self._cold_start_share = self._compute_cold_start_share(self._cache_hour)
        return True

    def _rebuild_cache(self, hour: int) -> None:
        self._expected_cache, self._cache_hour = TermCache(self._compute_expected), hour
        self._comparison_windows = self._windows_at_same_hour(hour)
        self._cold_start_share = self._compute_cold_start_share(hour)
        self._comparison_bits = reduce(or_, [bits for _, _, bits in self._comparison_windows], 0)
        self._weight_sum = sum(weight for weight, _, _ in self._comparison_windows)
        # At least a day is assumed known.
        start = hour - self._window_hours_ceil + 1
        known = start - (hour if self.known_hour is None else self.known_hour)
        self._long_run_hours = max(HOURS_PER_DAY, min(HOURS_PER_WEEK, known))

    def missing_share(self, hour: int) -> float:
        """Return the part of the first day that is not known yet, 1.0 to 0.0; 1.0 without any history."""
        if self.known_hour is None:
            return 1.0
        missing = self.known_hour + HOURS_PER_DAY + self._window_hours_ceil - 1 - hour
        return max(0, min(missing, HOURS_PER_DAY)) / HOURS_PER_DAY

    def _compute_cold_start_share(self, hour: int) -> float:
        documents = self.idf_documents
        return self.missing_share(hour) * documents / (documents + BUSY_STREAM_DOCUMENTS)

    def _drop_hour(self, hour: int) -> None:
        bit = self._bit_of_hour.pop(hour)
        for term, count in self.counts_by_hour.pop(hour).items():
            remaining = self._document_frequencies[term] - count
            if remaining:
                self._document_frequencies[term] = remaining
                self._hours_of_term[term] ^= bit
            else:
                del self._document_frequencies[term], self._hours_of_term[term]
        self.document_count -= len(self.articles_by_hour.pop(hour))
        self._cache_hour = -1

    def _windows_at_same_hour(self, hour: int) -> list[tuple[float, list[dict[str, int]], int]]:
        first = hour if self.known_hour is None else self.known_hour
        days = []
        for day in range(1, HISTORY_DAYS + 1):
            end = hour - HOURS_PER_DAY * day
            if end < first:
                break
            hours = [h for h in range(end - self._window_hours_ceil, end + 1) if h in self.counts_by_hour]
            weight = SAME_WEEKDAY_WEIGHT if day == HISTORY_DAYS else 1.0
            bits = sum(self._bit_of_hour[h] for h in hours)
            days.append((weight, [self.counts_by_hour[h] for h in hours], bits))
        return days

    def _mean_at_same_hour(self, term: str) -> float:
        """Weighted mean of the windows that ended at this hour, at least half the count of a week ago."""
        bits = self._hours_of_term[term] & self._comparison_bits
        if not bits:
            return 0.0  # most terms: 4 us -> 0.2 us
        documents, found = 0.0, 0
        for weight, counts, window_bits in self._comparison_windows:
            found = sum([count[term] for count in counts if term in count]) if bits & window_bits else 0
            documents += weight * found
        week_ago = WEEK_AGO_SHARE * found if len(self._comparison_windows) == HISTORY_DAYS else 0.0
        mean = max(documents / self._weight_sum, week_ago)
        return mean * self.window_hours / (self._window_hours_ceil + 1)

    def count_between(self, term: str, start: int, end: int, least: int = 0) -> int:
        """Documents with the term in the hours ``start`` to ``end``; 0 where fewer than ``least`` have it."""
        if self._document_frequencies.get(term, 0) < least:
            return 0
        hours = map(self.counts_by_hour.get, range(start, end + 1))
        return sum([counts.get(term, 0) for counts in hours if counts is not None])


def find_known_hour(
    documents_by_hour: Mapping[int, int], first_hour: int | None, window_hours: int
) -> int | None:
    """Return the hour since which all is counted, with dense days of late articles, without a trial."""
    if not documents_by_hour:
        return first_hour
    live_from = max(documents_by_hour) + 1 if first_hour is None else first_hour
    if min(documents_by_hour) >= live_from:
        return _skip_trial(documents_by_hour, live_from)
    days = Counter[int]()  # documents by number of days before live_from, from 1
    live = 0
    for hour, documents in documents_by_hour.items():
        if hour >= live_from:
            live += documents
        else:
            days[(live_from - 1 - hour) // HOURS_PER_DAY + 1] += documents
    live_hours = max(window_hours, max(documents_by_hour) + 1 - live_from)
    volume = max(live / live_hours * HOURS_PER_DAY, *days.values())
    known_days = late = 0
    for day in range(1, HISTORY_DAYS + 2):
        late += days[day]
        if days[day] and late >= KNOWN_VOLUME_SHARE * volume * day:
            known_days = day
    if not known_days:
        return first_hour
    oldest = live_from - known_days * HOURS_PER_DAY
    return min(hour for hour in documents_by_hour if hour >= oldest)


def _skip_trial(documents_by_hour: Mapping[int, int], first_hour: int) -> int:
    if first_hour not in documents_by_hour:
        return first_hour
    days = Counter[int]()
    for hour, documents in documents_by_hour.items():
        days[(hour - first_hour) // HOURS_PER_DAY] += documents
    enough = NEGLIGIBLE_SHARE * max(days.values())
    start = first_hour + HOURS_PER_DAY * min(day for day, documents in days.items() if documents >= enough)
    return min(hour for hour in documents_by_hour if hour >= start)
