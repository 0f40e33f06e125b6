"""Shingles of letters: what an archive is compared by, scanned or not.

A misread letter spoils the three word shingles around it, and a broken word more. Runs of eight letters, spaces
left out, are shorter than three words and do not care where words end: at eight misread letters in a hundred they
still show what two texts share. They are sampled like shingles of words (``overlap.py``), so nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from aggregator.analysis import shingles
from aggregator.dedup.verdict import Policy
from aggregator.domain import Sketch

NGRAM_CHARS = 8
# There are about five times as many runs in a text as word shingles, so a passage counts five times as many.
NGRAMS_PER_WORD_SHINGLE = 5.0
# A run touches fewer words than a shingle of three (1.7 to 2.5 of them, by where in a word a change is), so the same
# changes leave more of them. Where words agree by .75, each with chance .91, runs agree by .91 ** 1.7.
STRONG_CONTAINMENT_EXPONENT = 1.7 / 3
# What nine in ten unrelated articles of one field have in common at most: names and set phrases. Of word shingles they
# share .01 to .03.
UNRELATED_CONTAINMENT = 0.06
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def char_ngram_sketch(words: Sequence[str]) -> Sketch:
    """The sample of the distinct runs of RUN_LETTERS characters of the words written without spaces."""
    return shingles.sketch_from_hashes(char_ngram_hashes("".join(words)))


def char_ngram_hashes(text: str) -> npt.NDArray[np.uint64]:
    """Sorted distinct hashes, (n,) uint64; a shorter text is one run, an empty one none."""
    data = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    if not len(data):
        return data
    width = min(NGRAM_CHARS, len(data))
    count = len(data) - width + 1
    runs = np.zeros(count, np.uint64)
    for at in range(width):
        runs = runs * _HASH_MULTIPLIER + data[at : at + count]
    return shingles.combine_word_hashes(runs, 1)


def policy_for_char_ngrams(policy: Policy) -> Policy:
    """The same rule: lengths in runs instead of word shingles, chance left out, and as strict on small changes."""
    return replace(
        policy,
        min_containment=policy.min_containment + UNRELATED_CONTAINMENT * (1 - policy.min_containment),
        min_shared_shingles=policy.min_shared_shingles * NGRAMS_PER_WORD_SHINGLE,
        strong_containment=policy.strong_containment**STRONG_CONTAINMENT_EXPONENT,
    )
