"""Copies that are in the data already: pairs of texts with a Jaccard similarity of shingles of at least 0.8.

Found without the service and without its sketches, by prefix filtering (Chaudhuri, Ganti & Kaushik 2006):
two such sets share one of the rarest shingles of each.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from aggregator.analysis.text.tokenizer import words
from aggregator_lab.evaluation.duplicate_stream import (
    MIN_HEADLINE_SIMILARITY,
    StreamArticle,
    headline_similarity,
    is_needless,
    text_shingles,
)

MIN_JACCARD = 0.8


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


def count(stored: Mapping[str, StreamArticle]) -> dict[str, dict[str, int]]:
    """Copies, those called duplicates, those kept without need; again for those with like headlines."""
    counts = {name: {"copies": 0, "found": 0, "needless": 0} for name in ("all", "like_headlines")}
    for id_, other in natural_copies(stored):
        answer = stored[id_].answer
        titles = stored[id_].article.title, stored[other].article.title
        like = titles[0] == titles[1] or headline_similarity(*titles) >= MIN_HEADLINE_SIMILARITY
        for row in (counts["all"], counts["like_headlines"]) if like else (counts["all"],):
            row["copies"] += 1
            row["found"] += answer.outcome.verdict == "duplicate"
            row["needless"] += is_needless(answer)
    return counts
