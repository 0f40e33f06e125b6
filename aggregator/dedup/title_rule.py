"""How much alike must two texts be, given their headlines?

The title-dependent rule of the literature on news deduplication by TF-IDF: where the headlines agree, little
agreement of the texts is enough; where they do not, the texts must be nearly one.

    similarity of the headlines    text similarity that makes "the same"
    above .2                       .2
    .1 to .2, both included        .7
    below .1                       .85
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from aggregator.analysis.text import tokenizer

SIMILAR_TITLES_ABOVE, DIFFERENT_TITLES_BELOW = 0.2, 0.1
REQUIRED_IF_TITLES_SIMILAR, REQUIRED_IF_TITLES_AMBIGUOUS, REQUIRED_IF_TITLES_DIFFERENT = 0.2, 0.7, 0.85


def required_similarity(headline_similarity: float) -> float:
    """Least similarity of two texts, 0..1, whose headlines have this similarity, 0..1."""
    if headline_similarity > SIMILAR_TITLES_ABOVE:
        return REQUIRED_IF_TITLES_SIMILAR
    return (
        REQUIRED_IF_TITLES_AMBIGUOUS
        if headline_similarity >= DIFFERENT_TITLES_BELOW
        else REQUIRED_IF_TITLES_DIFFERENT
    )


def title_similarity(a: str, a_lang: str, b: str, b_lang: str) -> float:
    """Cosine of the headlines' index terms, counted, 0..1; 0 when one has none."""
    first, second = _term_counts(a, a_lang), _term_counts(b, b_lang)
    product = sum(n * second[term] for term, n in first.items())
    # One root of the product: headlines of two and of ten terms can then meet a boundary exactly.
    return product / math.sqrt(_squared_norm(first) * _squared_norm(second)) if product else 0.0


@lru_cache(maxsize=4096)
def _term_counts(title: str, lang: str) -> Counter[str]:
    return Counter(tokenizer.tokenize(title, lang))


def _squared_norm(counts: Counter[str]) -> int:
    return sum(n * n for n in counts.values())
