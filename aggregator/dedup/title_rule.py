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

ALIKE, UNLIKE = 0.2, 0.1
TEXTS_OF_ALIKE, TEXTS_BETWEEN, TEXTS_OF_UNLIKE = 0.2, 0.7, 0.85


def required_similarity(titles: float) -> float:
    """Least similarity of two texts, 0..1, whose headlines have this similarity, 0..1."""
    if titles > ALIKE:
        return TEXTS_OF_ALIKE
    return TEXTS_BETWEEN if titles >= UNLIKE else TEXTS_OF_UNLIKE


def title_similarity(a: str, a_lang: str, b: str, b_lang: str) -> float:
    """Cosine of the headlines' index terms, counted, 0..1; 0 when one has none."""
    first, second = _counts(a, a_lang), _counts(b, b_lang)
    product = sum(n * second[term] for term, n in first.items())
    # One root of the product: headlines of two and of ten terms can then meet a boundary exactly.
    return product / math.sqrt(_square(first) * _square(second)) if product else 0.0


@lru_cache(maxsize=4096)
def _counts(title: str, lang: str) -> Counter[str]:
    return Counter(tokenizer.tokenize(title, lang))


def _square(counts: Counter[str]) -> int:
    return sum(n * n for n in counts.values())
