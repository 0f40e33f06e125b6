"""Title-dependent duplicate rule: the more similar two headlines, the less similar the texts must be.

The rule of the literature on news deduplication by TF-IDF. With headlines that disagree, the texts must be
nearly identical:

    headline similarity    required text similarity
    above 0.2              0.2
    0.1 to 0.2 inclusive   0.7
    below 0.1              0.85
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from aggregator.analysis.text import tokenizer


def required_similarity(headline_similarity: float) -> float:
    """Return the least text similarity, 0..1, of two articles with this headline similarity, 0..1."""
    if headline_similarity > 0.2:
        return 0.2
    return 0.7 if headline_similarity >= 0.1 else 0.85


def title_similarity(a: str, a_lang: str, b: str, b_lang: str) -> float:
    """Cosine of the counted index terms of two headlines, 0..1; 0 when one of them has no terms."""
    first, second = _term_counts(a, a_lang), _term_counts(b, b_lang)
    product = sum(n * second[term] for term, n in first.items())
    # One square root of the product: headlines of 2 and of 10 terms can then meet a boundary exactly.
    return product / math.sqrt(_squared_norm(first) * _squared_norm(second)) if product else 0.0


@lru_cache(maxsize=4096)
def _term_counts(title: str, lang: str) -> Counter[str]:
    return Counter(tokenizer.tokenize(title, lang))


def _squared_norm(counts: Counter[str]) -> int:
    return sum(n * n for n in counts.values())
