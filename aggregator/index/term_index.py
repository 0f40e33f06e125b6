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

INDEXED_TERMS = 6
QUERY_TERMS = 12
MAX_ARTICLES_PER_TERM = 64  # of a term, the newest
_HASH_SEED = 0x70
_HASH_BITS = 44
_WEIGHT_BITS = 8
_WEIGHT_MASK = (1 << _WEIGHT_BITS) - 1


def index_keys(terms: Sequence[tuple[str, float]]) -> list[int]:
    """What an article with these terms, heaviest first, is found under: values of 52 bits for ``store.entries``."""
    return [term_hash(term) | max(1, round(weight * _WEIGHT_MASK)) for term, weight in terms[:INDEXED_TERMS]]


def query_weights(terms: Sequence[tuple[str, float]]) -> dict[int, float]:
    """Hashes of the terms to look under, and what each weighs here."""
    return {term_hash(term): weight for term, weight in terms[:QUERY_TERMS]}


def split_index_key(value: int) -> tuple[int, float]:
    """Term hash and weight (0..1) of an indexed value."""
    return value & ~_WEIGHT_MASK, (value & _WEIGHT_MASK) / _WEIGHT_MASK


@lru_cache(maxsize=1 << 16)
def term_hash(term: str) -> int:
    """52 bits, of which the lowest eight are zero: there an entry keeps the weight."""
    hashed = xxhash.xxh3_64_intdigest(term.encode("utf-8", "surrogatepass"), _HASH_SEED)
    return hashed >> (64 - _HASH_BITS) << _WEIGHT_BITS
