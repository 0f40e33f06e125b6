"""Conversion of stream items to items of the detector's window: terms, time, and whether they count.

On a timeline (window 4 h)::

    published 09:30, arrives 12:00           counts at 09:30
    published 08:00, arrives 12:00:00.001    over 4 h old: late; may teach what is usual (``late.py``)
    in the future, without a time, or not dated   counts at its arrival
    backfill, published at any time          late, also within the window; ignored without a date
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import split_headline
from aggregator.domain import StreamItem
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, WindowItem
from aggregator.index.keys import term_hash
from aggregator.time_units import HOUR_MS, MINUTE_MS

VARIANTS = table("variant", "en")
MAX_PER_MINUTE = 3_000  # limit that no stream exceeds: at that rate a day has 4 million
# Limit of a small stream. The first visit of a crawler to its feeds brings that many.
MIN_PER_MINUTE = 300
SENTENCE_SHARE = 0.3  # share of words with a small letter in a sentence
NAME_SHARE = 0.67  # share of the words of a name inside sentences that begin with a capital letter
LATEST_ITEMS = 2_000  # latest items of the window, that show the habits of the stream
_WORD = re.compile(r"\b[^\W\d_][^\W_]*")
_PART_BREAK = re.compile(r"[:;?!|–—]\s|\s--?\s")


def terms_of_word(word: str, lang: str) -> list[str]:
    """Return the terms of a word of a headline: several in a script without spaces, none for a stop word."""
    return [VARIANTS.get(term, term) for term in tokenizer.tokenize(word, lang)]


# Each item of a cluster has the latest headlines of the window examined again.
@lru_cache(maxsize=2 * LATEST_ITEMS)
def case_shares(title: str) -> tuple[float, float]:
    """Shares of the words that begin with a capital and with a small letter."""
    words: list[str] = _WORD.findall(title)
    count = len(words) or 1
    return sum([w[0].isupper() for w in words]) / count, sum([w[0].islower() for w in words]) / count


def occurrences_inside(term: str, items: Iterable[WindowItem]) -> Iterator[str]:
    """Yield the words of a term inside sentences, where a capital letter shows a name: not In Title Case."""
    for item in items:
        if term not in item.terms or item.title[:1].islower() or case_shares(item.title)[1] < SENTENCE_SHARE:
            continue
        for number, part in enumerate(_PART_BREAK.split(item.title)):
            for position, word in enumerate(_WORD.findall(part)):
                begins = not position and (not number or not word[0].islower())
                # Comparing the prefixes first avoids most calls of the tokenizer.
                if not begins and word[:3].casefold() == term[:3] and term in terms_of_word(word, item.lang):
                    yield word


def is_name(term: str, items: Iterable[WindowItem]) -> bool:
    """Whether nothing shows that a term is no name: digits, small letters inside sentences."""
    capitals = [word[0].isupper() for word in occurrences_inside(term, items)]
    return sum(capitals) >= NAME_SHARE * len(capitals) and not any(map(str.isdigit, term))


def to_window_item(item: StreamItem, at_ms: int, clock_ms: int, window_ms: int) -> WindowItem:
    """Convert an item of ``at_ms``; late ones and backfills get ``clock_ms``, and do not count."""
    desk_prefix, title = split_headline(item.title)
    late = item.backfill or at_ms < clock_ms - window_ms
    return WindowItem(
        number=item.number,
        first_version=item.first_version,
        id=item.id,
        at_ms=clock_ms if late else at_ms,
        source=item.source,
        title=title,
        terms=_to_integer_weights(item.terms),
        is_counted=not late,
        published_ms=at_ms if item.backfill else 0,
        claim_ms=at_ms if late and not item.backfill else None if at_ms == item.published_at_ms else 0,
        cosine=1.0,
        cluster_key=-1,
        lang=item.lang,
        desk_prefix=desk_prefix,
    )


def deleted_hashes(item: StreamItem) -> set[int]:
    """The hashes of the terms that a deleted item had."""
    hashes = set(item.deleted_terms)
    return hashes | {term_hash(name) for variant, name in VARIANTS.items() if term_hash(variant) in hashes}


def _to_integer_weights(terms: Iterable[tuple[str, float]]) -> dict[str, int]:
    largest = max([weight for _, weight in terms], default=0.0)
    weights: dict[str, int] = {}
    for variant, weight in terms:
        if weight > 0:
            term = VARIANTS.get(variant, variant)
            weights[term] = max(weights.get(term, 0), round(MAX_TERM_WEIGHT * weight / largest) or 1)
    return weights


class UndatedArticles(msgspec.Struct, array_like=True):
    """Undated articles of the present minute, and of a bulk load. The order is part of the saved state."""

    minute: int = 0
    count: int = 0
    ignored: int = 0

    def is_bulk(self, now_ms: int, baseline: Baseline) -> bool:
        """Count an undated article that arrives at ``now_ms``; return whether it belongs to a bulk load."""
        limit, minute = limit_per_minute(baseline, now_ms // HOUR_MS), now_ms // MINUTE_MS
        if minute != self.minute:
            if minute > self.minute + 1 or self.count <= limit:
                self.ignored = 0
            self.minute, self.count = minute, 0
        self.count += 1
        if not self.ignored and self.count <= limit:
            return False
        self.ignored += 1
        return True


def limit_per_minute(baseline: Baseline, hour: int) -> float:
    """Return the undated articles of one minute above which they are a bulk load."""
    if baseline.missing_share(hour):
        return MAX_PER_MINUTE
    return min(MAX_PER_MINUTE, max(MIN_PER_MINUTE, baseline.expected(ALL_DOCUMENTS, hour)))
