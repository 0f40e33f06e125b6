"""What a lookup found: article numbers by fingerprint and by sketch keys, and which of them to compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from aggregator.index.codec.postings import (
    NO_COUNTS,
    NO_NUMBERS,
    ArticleNumbers,
    Counts,
    Distances,
    KeyMatches,
)

# Limit for candidates per article: the nearest and those that share most sketch keys come first.
MAX_CANDIDATES = 64
# Limit for candidates that share only one sketch key: usually a common phrase, so their number grows with the
# corpus. Those whose key says most come first (``rank_single_key_matches``).
MAX_SINGLE_KEY_MATCHES = 8
# A key says less than the one before it by this factor: the candidate has none of the lookup's smaller keys.
KEY_RANK_FACTOR = 1.25


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What one lookup found, each array (n,): numbers with distances, numbers with shared sketch keys.

    ``by_single_key``: those that shared a single key, best first (``rank_single_key_matches``).
    """

    by_bits: tuple[ArticleNumbers, Distances]
    by_sketch: tuple[ArticleNumbers, Counts]
    by_single_key: ArticleNumbers = field(default_factory=lambda: NO_NUMBERS)

    @property
    def ranked_numbers(self) -> list[int]:
        """The nearest and those that share most sketch keys, at most ``MAX_CANDIDATES``; ties: earlier first.

        Both lists alternate, so that neither hides the other. Of those that share one key, the latest of the
        batch come first, then ``by_single_key``.
        """
        (near, distances), (sharing, shared) = self.by_bits, self.by_sketch
        if not len(near) and not len(sharing):  # true of most articles
            return []
        by_distance: list[int] = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        several = shared > 1
        by_keys: list[int] = sharing[several][np.argsort(-shared[several], kind="stable")].tolist()
        by_keys = [*by_keys, *self._best_by_single_key(sharing[~several])][:MAX_CANDIDATES]
        if not by_distance or not by_keys:
            return by_distance or by_keys
        alternating = (n for pair in zip_longest(by_distance, by_keys) for n in pair if n is not None)
        return list(dict.fromkeys(alternating))[:MAX_CANDIDATES]

    def _best_by_single_key(self, sharing_one: ArticleNumbers) -> list[int]:
        ranked: list[int] = self.by_single_key.tolist()
        left: list[int] = sharing_one.tolist()
        appended, left_set = set(left).difference(ranked), set(left)
        best = [*sorted(appended, reverse=True), *(n for n in ranked if n in left_set)]
        return best[:MAX_SINGLE_KEY_MATCHES]


EMPTY_RESULT = LookupResult((NO_NUMBERS, NO_COUNTS), (NO_NUMBERS, NO_COUNTS))


def rank_single_key_matches(found: KeyMatches) -> ArticleNumbers:
    """Those that share a single key, the likeliest copies first; ties: latest first.

    Rare keys first, and the lookup's first keys: a copy is likely to share the smallest hashes.
    """
    (single,) = (found.counts == 1).nonzero()
    single = single[::-1]  # latest first
    commonness = found.key_entries[single] * KEY_RANK_FACTOR ** found.key_ranks[single]
    best_first: ArticleNumbers = found.numbers[single[commonness.argsort(kind="stable")]]
    return best_first
