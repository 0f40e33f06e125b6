"""Similarity of two headlines by their index terms. Pure."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from aggregator.analysis.text import tokenizer


def title_similarity(a: str, a_lang: str, b: str, b_lang: str) -> float:
    """Cosine of the counted index terms of two headlines, 0..1; 0 when one of them has no terms."""
    first, second = _term_counts(a, a_lang), _term_counts(b, b_lang)
    product = sum(first[term] * second[term] for term in first.keys() & second.keys())
    norms = [sum(n * n for n in counts.values()) for counts in (first, second)]
    # One square root of the product: headlines of 2 and of 10 terms can then meet a boundary exactly.
    return product / math.sqrt(norms[0] * norms[1]) if product else 0.0


@lru_cache(maxsize=4096)
def _term_counts(title: str, lang: str) -> Counter[str]:
    return Counter(tokenizer.tokenize(title, lang))


def title_terms(title: str, lang: str) -> frozenset[str]:
    """The distinct index terms of a headline."""
    return frozenset(_term_counts(title, lang))
