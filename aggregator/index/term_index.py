"""Under which terms do articles on the same matter find one another?

Reports of one event in other words are further apart than any fingerprint reaches, and share no
wording; but they share the names and nouns that are rare elsewhere. So an article stands under its few
heaviest terms, and is looked for under some more. Per term only the newest articles are kept: a
reader wants recent ones, and a term with thousands of articles tells nothing that its rarer neighbours
do not (ARCHITECTURE.md, "Related").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import xxhash

INDEXED = 6
PROBED = 12
KEPT = 64  # of a term, the newest
_SEED = 0x70
_HASH_BITS = 44
_WEIGHT_BITS = 8
_FULL = (1 << _WEIGHT_BITS) - 1


def indexed(terms: Sequence[tuple[str, float]]) -> list[int]:
    """What an article with these terms, heaviest first, is found under: values of 52 bits for ``store.entries``."""
    return [term_hash(term) | max(1, round(weight * _FULL)) for term, weight in terms[:INDEXED]]


def probed(terms: Sequence[tuple[str, float]]) -> dict[int, float]:
    """Hashes of the terms to look under, and what each weighs here."""
    return {term_hash(term): weight for term, weight in terms[:PROBED]}


def split(value: int) -> tuple[int, float]:
    """Term hash and weight (0..1) of an indexed value."""
    return value & ~_FULL, (value & _FULL) / _FULL


@lru_cache(maxsize=1 << 16)
def term_hash(term: str) -> int:
    """52 bits, of which the lowest eight are zero: there an entry keeps the weight."""
    hashed = xxhash.xxh3_64_intdigest(term.encode("utf-8", "surrogatepass"), _SEED)
    return hashed >> (64 - _HASH_BITS) << _WEIGHT_BITS
