"""Copies that are in the data already: pairs of texts with a Jaccard similarity of shingles of at least 0.8.

Found without the service and without its sketches, by prefix filtering (Chaudhuri, Ganti & Kaushik 2006):
two such sets share one of the rarest shingles of each.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from aggregator.analysis.text.tokenizer import words
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import (
    MIN_HEADLINE_SIMILARITY,
    DuplicatePair,
    StreamArticle,
    headline_similarity,
    is_needless,
    judge_pair,
    text_shingles,
)
from aggregator_lab.evaluation.wrong_kinds import wrong_kinds

MIN_JACCARD = 0.8
LONG_WORDS = 40
_NUMBER = re.compile(r"\d+")


def natural_copies(stored: Mapping[str, StreamArticle]) -> Iterator[tuple[str, str]]:
    """Ids of each article with such an earlier one, and of the most similar of these."""
    sets = {
        id_: frozenset(
            map(hash, text_shingles(words(item.article.text or item.article.title, item.lang), item.lang))
        )
        for id_, item in stored.items()
    }
    frequency = Counter(shingle for own in sets.values() for shingle in own)
    earlier: dict[int, list[str]] = defaultdict(list)
    for id_, own in sets.items():
        rarest = sorted(own, key=lambda shingle: (frequency[shingle], shingle))
        prefix = rarest[: len(own) - math.ceil(MIN_JACCARD * len(own)) + 1]
        candidates = {other for shingle in prefix for other in earlier[shingle]}
        similar = {other: len(own & sets[other]) / len(own | sets[other]) for other in candidates}
        best = max(similar, key=lambda other: (similar[other], other), default=None)
        if best is not None and similar[best] >= MIN_JACCARD:
            yield id_, best
        for shingle in prefix:
            earlier[shingle].append(id_)


def count(stored: Mapping[str, StreamArticle]) -> dict[str, dict[str, Any]]:
    """Copies, those called duplicates, those kept without need, and the pairs that were not found.

    Again for pairs with like headlines, and for texts of at least 40 words that are not suspected
    (``wrong_kinds.py``): a notice below several headlines is no copy. Bare headlines with other numbers
    (of another day or round) are no copies and count apart.
    """
    counts: dict[str, dict[str, Any]] = {
        name: {"copies": 0, "found": 0, "needless": 0, "missed": []}
        for name in ("all", "like headlines", "long", "other numbers")
    }
    pairs = list(natural_copies(stored))
    judged = [_judged(stored[id_], stored[other].article) for id_, other in pairs]
    suspected = {pair.article.id for found in wrong_kinds(judged, stored).values() for pair in found}
    for id_, other_id in pairs:
        article, answer = stored[id_].article, stored[id_].answer
        titles = article.title, stored[other_id].article.title
        like = titles[0] == titles[1] or headline_similarity(*titles) >= MIN_HEADLINE_SIMILARITY
        long = id_ not in suspected and len(words(article.text, stored[id_].lang)) >= LONG_WORDS
        found = answer.outcome.verdict == "duplicate"
        other = not (article.text or stored[other_id].article.text) and _numbers_differ(*titles)
        names = {"all": True, "like headlines": like, "long": long} if not other else {"other numbers": True}
        for row in (counts[name] for name, applies in names.items() if applies):
            row["copies"] += 1
            row["found"] += found
            row["needless"] += is_needless(answer)
            row["missed"] += [(id_, other_id)] * (not found)
    return counts


def _numbers_differ(a: str, b: str) -> bool:
    """Whether each headline has a number that the other lacks."""
    first, second = set(_NUMBER.findall(a)), set(_NUMBER.findall(b))
    return bool(first - second) and bool(second - first)


def _judged(item: StreamArticle, other: Article) -> DuplicatePair:
    return DuplicatePair(item.article, other, item.lang, judge_pair(item.article, other, item.lang))
