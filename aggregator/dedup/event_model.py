"""Pair model of the policy ``same-event``: the probability that two articles report one event. Pure.

Logistic regression over what is stored of two articles:

    profile   cosine of the square roots of the stored terms' weights, terms compared by prefixes of 5
    terms     cosine of the stored terms
    titles    similarity of the headlines (``title_similarity``)
    names     share of a headline's terms among the other article's stored terms: mean of both directions
    figures   share of the numbers of the article with fewer that the other has too; dates in the text count
    shared    ln(1 + number of common stored terms)
    wording   containment of the shingles, at most ``MAX_WORDING``: more says "copy", not "event"

Fitted on the 20 development topics of ECB+ (docs/benchmarks/duplicates.md), which have no publication
times. All features are 0 between two languages, so only copies of the wording can match there.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from aggregator.analysis.term_profile import PREFIX_CHARS
from aggregator.analysis.text import tokenizer
from aggregator.dedup.copy_rule import Comparable, Evidence


def title_similarity(a: str, a_lang: str, b: str, b_lang: str) -> float:
    """Cosine of the counted index terms of two headlines, 0..1; 0 when one of them has no terms."""
    first, second = _term_counts(a, a_lang), _term_counts(b, b_lang)
    product = sum(first[term] * second[term] for term in first.keys() & second.keys())
    # One square root of the product: headlines of 2 and of 10 terms can then meet a boundary exactly.
    return product / math.sqrt(_squared_norm(first) * _squared_norm(second)) if product else 0.0


@lru_cache(maxsize=4096)
def _term_counts(title: str, lang: str) -> Counter[str]:
    return Counter(tokenizer.tokenize(title, lang))


def _squared_norm(counts: Counter[str]) -> int:
    return sum(n * n for n in counts.values())


FEATURES = ("profile", "terms", "titles", "names", "figures", "shared", "wording")
WEIGHTS = (2.861, 3.978, 2.019, 0.335, 2.512, 1.354, 28.179)
BIAS = -7.212
MIN_PROBABILITY = 0.8
MAX_WORDING = 0.2
MIN_TERM_COSINE = 0.08  # pairs below are no candidates of the fit; probability 0


def features(a: Comparable, b: Comparable, evidence: Evidence) -> tuple[float, ...]:
    """The values of ``FEATURES``, in either order of the articles."""
    first, second = dict(a.terms), dict(b.terms)
    names = _coverage(a.title, a.lang, second) + _coverage(b.title, b.lang, first)
    fewest = min(len(a.figures), len(b.figures))
    return (
        _profile_cosine(first, second),
        evidence.similarity,
        title_similarity(a.title, a.lang, b.title, b.lang),
        names / 2,
        len(set(a.figures) & set(b.figures)) / fewest if fewest else 0.0,
        math.log1p(len(first.keys() & second.keys())),
        min(MAX_WORDING, evidence.overlap.containment),
    )


def same_event_probability(a: Comparable, b: Comparable, evidence: Evidence) -> float:
    """Probability that both report one event, 0..1; 0 if their terms have next to nothing in common."""
    if evidence.similarity < MIN_TERM_COSINE:
        return 0.0
    values = features(a, b, evidence)
    return 1 / (1 + math.exp(-BIAS - sum(w * v for w, v in zip(WEIGHTS, values, strict=True))))


def _profile_cosine(first: dict[str, float], second: dict[str, float]) -> float:
    a, b = _by_prefix(first), _by_prefix(second)
    product = sum(weight * b[prefix] for prefix, weight in a.items() if prefix in b)
    norms = math.sqrt(sum(w * w for w in a.values()) * sum(w * w for w in b.values()))
    return product / norms if norms else 0.0


def _by_prefix(terms: dict[str, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for term, weight in terms.items():
        prefix = term[:PREFIX_CHARS]
        sums[prefix] = sums.get(prefix, 0.0) + math.sqrt(max(0.0, weight))
    return sums


def _coverage(title: str, lang: str, terms: dict[str, float]) -> float:
    wanted = title_terms(title, lang)
    return sum(term in terms for term in wanted) / len(wanted) if wanted else 0.0


@lru_cache(maxsize=4096)
def title_terms(title: str, lang: str) -> frozenset[str]:
    """The distinct index terms of a headline."""
    return frozenset(tokenizer.tokenize(title, lang))
