"""Copies that are in the data already: pairs of texts with a Jaccard similarity of shingles of at least 0.8.

Found without the service and without its sketches, by prefix filtering (Chaudhuri, Ganti & Kaushik 2006):
two such sets share one of the rarest shingles of each.
"""

from __future__ import annotations

import math
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
    (``wrong_kinds.py``): a notice below several headlines is no copy.
    """
    counts: dict[str, dict[str, Any]] = {
        name: {"copies": 0, "found": 0, "needless": 0, "missed": []}
        for name in ("all", "like headlines", "long")
    }
    pairs = list(natural_copies(stored))
    judged = [_judged(stored[id_], stored[other].article) for id_, other in pairs]
    suspected = {pair.article.id for found in wrong_kinds(judged, stored).values() for pair in found}
    for id_, other in pairs:
        article, answer = stored[id_].article, stored[id_].answer
        titles = article.title, stored[other].article.title
        like = titles[0] == titles[1] or headline_similarity(*titles) >= MIN_HEADLINE_SIMILARITY
        long = id_ not in suspected and len(words(article.text, stored[id_].lang)) >= LONG_WORDS
        found = answer.outcome.verdict == "duplicate"
        for name, applies in (("all", True), ("like headlines", like), ("long", long)):
            row = counts[name]
            row["copies"] += applies
            row["found"] += applies and found
            row["needless"] += applies and is_needless(answer)
            row["missed"] += [(id_, other)] * (applies and not found)
    return counts


def _judged(item: StreamArticle, other: Article) -> DuplicatePair:
    return DuplicatePair(item.article, other, item.lang, judge_pair(item.article, other, item.lang))
