"""What a lookup found: article numbers by fingerprint and by sketch keys, and which of them to compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, zip_longest

import numpy as np

from aggregator.index.codec.postings import NO_COUNTS, NO_NUMBERS, ArticleNumbers, Counts, Distances

# Limit for candidates per article: the nearest and those that share most sketch keys come first.
MAX_CANDIDATES = 64
# Limit for candidates that share only one sketch key: usually a common phrase, so their number grows with the
# corpus.
MAX_SINGLE_KEY_MATCHES = 16
# Limit for those among them whose key is full: then nearly all are unrelated, and each is read and compared.
MAX_COMMON_KEY_MATCHES = 4


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What one lookup found: article numbers, each array (n,).

    ``by_bits``: those within ``RADIUS_BITS``, and their distances. ``by_sketch``: those that share sketch
    keys, and how many. ``by_common_key``: those of them that share a single key, which is full or nearly so
    (``sketch_buckets.KEPT_KEY_ENTRIES``).
    """

    by_bits: tuple[ArticleNumbers, Distances]
    by_sketch: tuple[ArticleNumbers, Counts]
    by_common_key: ArticleNumbers = field(default_factory=lambda: NO_NUMBERS)

    @property
    def ranked_numbers(self) -> list[int]:
        """The nearest and those that share most sketch keys, at most ``MAX_CANDIDATES``; ties: earlier first.

        Both lists alternate, so that neither many near fingerprints hide a duplicate that only its wording
        reveals, nor common wording a near fingerprint. Of those that share one key the
        ``MAX_SINGLE_KEY_MATCHES`` latest: a duplicate arrives soon after its original. Among them the
        ``MAX_COMMON_KEY_MATCHES`` latest that share a common key.
        """
        (near, distances), (sharing, shared) = self.by_bits, self.by_sketch
        if not len(near) and not len(sharing):  # true of most articles
            return []
        by_distance: list[int] = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        several = shared > 1
        by_keys: list[int] = sharing[several][np.argsort(-shared[several], kind="stable")].tolist()
        older_common = set(self.by_common_key[:-MAX_COMMON_KEY_MATCHES].tolist())
        latest = (n for n in reversed(sharing[~several].tolist()) if n not in older_common)
        by_keys = [*by_keys, *islice(latest, MAX_SINGLE_KEY_MATCHES)][:MAX_CANDIDATES]
        if not by_distance or not by_keys:
            return by_distance or by_keys
        alternating = (n for pair in zip_longest(by_distance, by_keys) for n in pair if n is not None)
        return list(dict.fromkeys(alternating))[:MAX_CANDIDATES]


EMPTY_RESULT = LookupResult((NO_NUMBERS, NO_COUNTS), (NO_NUMBERS, NO_COUNTS))
