"""Character n-grams: the shingles of archives, robust against OCR errors and split words.

A misread letter destroys the three word shingles around it, a split word more. Runs of eight characters of
the words written without spaces are shorter, and do not depend on word boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from aggregator.analysis import shingles
from aggregator.analysis.shingles import OPENING_WORDS
from aggregator.dedup.copy_rule import Comparable, Evidence
from aggregator.dedup.other_news import Reason, other_news
from aggregator.dedup.policy import Policy
from aggregator.dedup.templates import exchange_figures
from aggregator.dedup.verdict import compare_pair, headline_similarity
from aggregator.domain import Sketch

NGRAM_CHARS = 8
# A text has about five times as many n-grams as word shingles, so counts of shared shingles scale by five.
NGRAMS_PER_WORD_SHINGLE = 5.0
# An n-gram touches fewer words than a shingle of three (1.7 to 2.5, depending on where in a word a change
# is), so the same edits leave more n-grams intact. If 0.75 of the word shingles agree, each word is intact
# with probability 0.91, and 0.91 ** 1.7 of the n-grams agree.
STRONG_CONTAINMENT_EXPONENT = 1.7 / 3
# Chance containment of unrelated articles of one subject, ninth decile: names and set phrases. For word
# shingles it is 0.01 to 0.03.
UNRELATED_CONTAINMENT = 0.06
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def char_ngram_sketch(words: Sequence[str]) -> Sketch:
    """Sketch of the distinct n-grams of ``NGRAM_CHARS`` characters of the words written without spaces."""
    hashes = char_ngram_hashes("".join(words))
    opening = max(1, len("".join(words[:OPENING_WORDS])) - NGRAM_CHARS + 1)
    return shingles.sketch_from_hashes(shingles.distinct(hashes), hashes, opening)


def char_ngram_hashes(text: str) -> npt.NDArray[np.uint64]:
    """Hashes of the n-grams in order, (n,) uint64; one for a shorter text, none for an empty text."""
    data = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    if not len(data):
        return data
    width = min(NGRAM_CHARS, len(data))
    count = len(data) - width + 1
    ngrams = np.zeros(count, np.uint64)
    for at in range(width):
        ngrams = ngrams * _HASH_MULTIPLIER + data[at : at + count]
    return shingles.hashes_in_order(ngrams, 1)


def policy_for_char_ngrams(policy: Policy) -> Policy:
    """Convert a policy for word shingles: counts in n-grams, plus chance overlap, same tolerance of edits.

    Small containments and openings are those of parts of a text, so only chance overlap is added; large ones
    are those of edited texts. ``keep_if_adds`` remains: misread words, spread over a text, count little.
    """
    return replace(
        policy,
        min_containment=_with_chance(policy.min_containment),
        partial_containment=_with_chance(policy.partial_containment),
        min_common_opening=_with_chance(policy.min_common_opening),
        min_opening=_with_chance(policy.min_opening),
        same_outlet_opening=_with_chance(policy.same_outlet_opening),
        same_outlet_containment=policy.same_outlet_containment**STRONG_CONTAINMENT_EXPONENT,
        strong_containment=policy.strong_containment**STRONG_CONTAINMENT_EXPONENT,
        later_containment=policy.later_containment**STRONG_CONTAINMENT_EXPONENT,
        later_other_headline_containment=(
            policy.later_other_headline_containment**STRONG_CONTAINMENT_EXPONENT
        ),
        complete_containment=policy.complete_containment**STRONG_CONTAINMENT_EXPONENT,
        min_shared_shingles=policy.min_shared_shingles * NGRAMS_PER_WORD_SHINGLE,
    )


def compare_char_ngrams(
    a: Comparable, b: Comparable, evidence: Evidence, policy: Policy
) -> tuple[bool, Reason]:
    """``verdict.compare_pair`` for overlaps of n-grams and a converted policy; misread terms do not count."""
    if policy.name != "verified":
        return compare_pair(a, b, evidence, policy)
    headlines = cache(lambda: headline_similarity(a, b))
    if not policy.copy_rule.is_copy_or_summary(evidence, headlines):
        return False, ""
    if exchange_figures(evidence.overlap, a, b):
        return False, "figures"
    reason = other_news(a, b, evidence, policy.same_outlet_hours)
    return not reason, reason


def _with_chance(share: float) -> float:
    return share + UNRELATED_CONTAINMENT * (1 - share)
