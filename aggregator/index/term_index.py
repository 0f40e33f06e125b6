"""Term index: keys under which articles on the same topic find one another.

Reports of one event in different words are further apart than any lookup radius and share no wording, but
they share names and nouns that are rare elsewhere. So an article is indexed under its few heaviest terms and
looked up under all that are stored as strings. Per term only the newest articles are kept: readers want
recent ones, and a term with thousands of articles says nothing that the rarer terms do not
(docs/design/related-articles.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import xxhash

INDEXED_TERMS = 6
QUERY_TERMS = 24
MAX_ARTICLES_PER_TERM = 32
_HASH_SEED = 0x70
_HASH_BITS = 44
_WEIGHT_BITS = 8
_WEIGHT_MASK = (1 << _WEIGHT_BITS) - 1


def index_keys(terms: Sequence[tuple[str, float]]) -> list[int]:
    """Index keys of an article with these (term, weight), heaviest first: 44 bits of hash, 8 of weight."""
    return [term_hash(term) | max(1, round(weight * _WEIGHT_MASK)) for term, weight in terms[:INDEXED_TERMS]]


def query_weights(terms: Sequence[tuple[str, float]]) -> dict[int, float]:
    """Hashes of the terms to look up, with the weight of each in the query."""
    return {term_hash(term): weight for term, weight in terms[:QUERY_TERMS]}


@lru_cache(maxsize=1 << 16)
def term_hash(term: str) -> int:
    """52 bits, of which the lowest 8 are zero: an index key holds the weight there."""
    hashed = xxhash.xxh3_64_intdigest(term.encode("utf-8", "surrogatepass"), _HASH_SEED)
    return hashed >> (64 - _HASH_BITS) << _WEIGHT_BITS
