"""Routine: one text filled in with many names, timed releases, press releases, and series that return.

Notices of a month or a year are unusual by the last seven days. Their headlines show what they are: the same
words in the same order around exchanged names and figures, from one publisher, often at round times. An event
of one publisher has at most 2.75 common words per headline, then 31 % in the same order.

Capital letters inside a headline show names where it is written as a sentence ("At least 12 dead in Thornby
market fire"), not In Title Case, as press releases are, and not in Chinese or Arabic.

**Series** (``SeriesMemory``) come back after weeks, at the same hour, in the same words; half of the earlier
peak is then expected. One common term recurs by chance, so it must have come back twice.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice, takewhile

import msgspec

from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Cluster, WindowItem, latest_counted_items
from aggregator.events.detection.items import terms_of_word
from aggregator.time_units import DAY_MS, MINUTE_MS

# Share of the words of a headline that begin with a small letter, whose capital letters show names.
MIN_LOWER_CASE_SHARE = 0.3
# Fewer words do not show a style.
MIN_WORDS = 3
# Share of the occurrences of a name that are capitalized.
CAPITALIZED_SHARE = 0.7
_PREFIX_CHARS = 3
MAX_CACHED_STYLES = 4_096
_TOKEN = re.compile(r"[^\W_]+")
_PART_BREAK = re.compile(r"[:;?!|–—]\s|\s--?\s")
# Share of the headlines that hold a common word.
COMMON_WORD_SHARE = 0.6
# (common words per headline, share of the headlines that have them in the same order): either pair is enough.
TEMPLATES = ((2.4, 0.65), (2.8, 0.25))
# The same for a template of two words, which must also begin or end this share of the headlines: the two
# words of a name are in any position.
SHORT_TEMPLATE = (1.4, 0.8)
EDGE_SHARE = 0.8
# Share of the items of one publisher from which a cluster is its series; what many outlets repeat is news.
ONE_PUBLISHER_SHARE = 0.5
# Share of items published at a multiple of 15 min: 7 % by chance, at most 38 % in an event.
ROUND_MINUTES = 15
ROUND_TIME_SHARE = 0.5
# A stream that rounds its own times to hours or days says nothing about one cluster.
MAX_USUAL_ROUND_SHARE = 0.4
# Share of the headlines In Title Case. Of the alerts of one year 45 have more, all but one routine.
TITLE_CASE_SHARE = 0.6
# A source that writes most of its headlines so says nothing by it. The latest of the window are counted.
MAX_USUAL_TITLE_CASE_SHARE = 0.8
MAX_WINDOW_ITEMS = 2_000
MAX_CACHED_HEADLINES = 1_024
_WORD = re.compile(r"[^\W\d_]{3,}")
_FUNCTION_WORDS = frozenset(("the", "and", "for", "with", "from", "its", "says"))
MAX_ENTRIES = 4_000
MAX_AGE_MS = 400 * DAY_MS
# Younger bursts are in the baseline, or are the same story.
MIN_AGE_MS = 6 * DAY_MS
# Summer time moves a series by an hour.
SAME_TIME_MS = 90 * MINUTE_MS
# Share of its earlier peak that is expected when a series returns, as for weekly events (``baseline.py``).
PEAK_SHARE = 0.5
COMMON_TERM_SHARE = 0.6
MIN_JACCARD = 0.5
MIN_RETURNS_OF_ONE_TERM = 2


@lru_cache(maxsize=MAX_CACHED_STYLES)
def shows_names(title: str) -> bool:
    """Whether capital letters show names in this headline: it is written as a sentence."""
    words: list[str] = _TOKEN.findall(title)
    if not words or words[0][0].islower():
        return False
    small = sum(word[0].islower() for word in words)
    return small >= MIN_LOWER_CASE_SHARE * sum(word[0].isalpha() for word in words) and small > 0


def occurrences_inside(term: str, items: Iterable[WindowItem]) -> Iterator[str]:
    """Yield the occurrences of ``term`` inside headlines where a capital letter shows a name."""
    for item in items:
        if term not in item.terms or not shows_names(item.title):
            continue
        for number, part in enumerate(_PART_BREAK.split(item.title)):
            for position, word in enumerate(_TOKEN.findall(part)):
                # Comparing the prefixes first avoids most calls of the tokenizer.
                if word[:_PREFIX_CHARS].casefold() != term[:_PREFIX_CHARS]:
                    continue
                if not position and (not number or not word[0].islower()):
                    continue
                if term in terms_of_word(word, item.lang):
                    yield word


def title_case_share(members: Collection[WindowItem]) -> float:
    """Return the share of the headlines that are In Title Case or in capitals, 0..1; 0.0 without items."""
    return sum(_is_title_case(member.title) for member in members) / len(members) if members else 0.0


# Each item of a cluster in Title Case has the latest headlines of the window examined again.
@lru_cache(maxsize=MAX_CACHED_STYLES)
def _is_title_case(title: str) -> bool:
    words: list[str] = [word for word in _TOKEN.findall(title) if word[0].isalpha()]
    capitals = sum(word[0].isupper() for word in words)
    return len(words) >= MIN_WORDS and capitals > (1.0 - MIN_LOWER_CASE_SHARE) * len(words)


def is_routine(cluster: Cluster, window: deque[WindowItem]) -> bool:
    """Whether it is one publisher's template, releases at round times, or press releases."""
    members = latest_counted_items(cluster)
    if not members:
        return False
    publisher, items = Counter(member.source for member in members).most_common(1)[0]
    if items < ONE_PUBLISHER_SHARE * len(members):
        return False
    if is_template(member.title for member in members):
        return True
    if round_time_share(members) >= ROUND_TIME_SHARE and round_time_share(window) <= MAX_USUAL_ROUND_SHARE:
        return True
    if title_case_share(members) < TITLE_CASE_SHARE:
        return False
    latest = [item for item in islice(reversed(window), MAX_WINDOW_ITEMS) if item.source == publisher]
    return title_case_share(latest) <= MAX_USUAL_TITLE_CASE_SHARE


def is_template(titles: Iterable[str]) -> bool:
    """Whether the headlines are one text with exchanged names and figures."""
    headlines = [_words(title) for title in titles]
    counts = Counter(word for words in headlines for word in words)
    common = {word for word, count in counts.items() if count >= COMMON_WORD_SHARE * len(headlines)}
    if not common:
        return False
    frames = [tuple(word for word in words if word in common) for words in headlines]
    words_per_headline = sum(map(len, frames)) / len(frames)
    same_frame = Counter(frames).most_common(1)[0][1] / len(frames)
    if any(words_per_headline >= words and same_frame >= share for words, share in TEMPLATES):
        return True
    begins = sum(words[0] in common for words in headlines if words)
    ends = sum(words[-1] in common for words in headlines if words)
    return (
        words_per_headline >= SHORT_TEMPLATE[0]
        and same_frame >= SHORT_TEMPLATE[1]
        and max(begins, ends) >= EDGE_SHARE * len(headlines)
    )


def round_time_share(members: Collection[WindowItem]) -> float:
    """Return the share of items at a multiple of 15 min, 0..1; 0.0 without items."""
    round_items = sum([member.at_ms // MINUTE_MS % ROUND_MINUTES == 0 for member in members])
    return round_items / len(members) if members else 0.0


# A cluster is examined each time it grows, so the same headlines return.
@lru_cache(maxsize=MAX_CACHED_HEADLINES)
def _words(title: str) -> tuple[str, ...]:
    words = dict.fromkeys(_WORD.findall(title.casefold()))
    return tuple(word for word in words if word not in _FUNCTION_WORDS)


class Burst(msgspec.Struct, array_like=True):
    """One burst of a cluster: start, most items, common terms, language, and what voices told of it."""

    cluster_key: int
    at_ms: int
    peak: int
    terms: list[str]
    lang: str = ""
    told: int = 0


class SeriesMemory:
    """Bursts in order of time."""

    def __init__(self) -> None:
        self.bursts: list[Burst] = []

    def record(self, cluster: Cluster, items: int, lang: str, told: int, now_ms: int) -> int:
        """Add the burst of this cluster, or raise the peak of its own; returns when it began, in ms."""
        burst = self._burst_of(cluster.key, now_ms - DAY_MS)
        if burst is not None:
            burst.peak, burst.told = max(burst.peak, items), max(burst.told, told)
            return burst.at_ms
        self.bursts.append(Burst(cluster.key, now_ms, items, common_terms(cluster), lang, told))
        if len(self.bursts) > MAX_ENTRIES or self.bursts[0].at_ms < now_ms - MAX_AGE_MS:
            del self.bursts[0]
        return now_ms

    def raise_peak(self, cluster_key: int, peak: int, told: int) -> None:
        """Set the final peak of a burst, if this cluster had one."""
        burst = self._burst_of(cluster_key)
        if burst is not None:
            burst.peak, burst.told = max(burst.peak, peak), max(burst.told, told)

    def peaks(self, lang: str, since_ms: int) -> list[int]:
        """What voices told of each burst in a language since then, largest first."""
        found = takewhile(lambda burst: burst.at_ms >= since_ms, reversed(self.bursts))
        return sorted((burst.told for burst in found if burst.lang == lang), reverse=True)

    def _burst_of(self, cluster_key: int, since_ms: int = 0) -> Burst | None:
        """Latest burst of a cluster; one that began before ``since_ms`` may be missed."""
        for burst in reversed(self.bursts):
            if burst.cluster_key == cluster_key:
                return burst
            if burst.at_ms < since_ms:
                return None
        return None

    def expected_items(self, cluster: Cluster, began_ms: int) -> float:
        """Return the items that earlier bursts in these terms at this time of day let expect, or 0."""
        terms = set(common_terms(cluster))
        if not terms:
            return 0.0
        returns = [
            burst.peak
            for burst in self.bursts
            if began_ms - burst.at_ms >= MIN_AGE_MS
            and _time_of_day_distance(began_ms, burst.at_ms) <= SAME_TIME_MS
            and _jaccard(terms, burst.terms) >= MIN_JACCARD
        ]
        enough = MIN_RETURNS_OF_ONE_TERM if len(terms) == 1 else 1
        return PEAK_SHARE * max(returns) if len(returns) >= enough else 0.0


def common_terms(cluster: Cluster) -> list[str]:
    """Return the terms that most items hold, in a fixed order."""
    required = COMMON_TERM_SHARE * MAX_TERM_WEIGHT * len(cluster.members)
    return sorted(term for term, total in cluster.term_sums.items() if total >= required)


def _time_of_day_distance(a_ms: int, b_ms: int) -> int:
    distance = abs(a_ms - b_ms) % DAY_MS
    return min(distance, DAY_MS - distance)


def _jaccard(terms: set[str], others: list[str]) -> float:
    common = sum(term in terms for term in others)
    return common / (len(terms) + len(others) - common) if common else 0.0
