"""What do a language and a fitted model make of each word? Looked up once, not at each occurrence.

A word is given a number when it is first met, with its hash for shingles and its index term; a term with its row in
the model and its idf. An article is then two arrays of numbers. What comes of them is bit for bit what ``tokens``,
``overlap`` and ``features`` say of the strings (a test compares them), in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
from xxhash import xxh3_64_intdigest

from aggregator.analysis import shingles
from aggregator.analysis.features import FeatureModel, FloatArray, HashedModel, l2_normalize
from aggregator.analysis.text import tokenizer
from aggregator.domain import Sketch

NO_TERM = -1
_INITIAL_CAPACITY = 1 << 10
_SLOTS_PER_ENTRY = 4  # per string that there is room for: of the words of an article one in a hundred then finds another's there
# Hashes are of 64 bits, of UTF-8 (``hash`` gives "ba" and "慢" the same), and keyed as those of Python are: two of 2^17
# words have the same in one of two thousand million processes, and nobody can prepare any that do.
_HASH_SEED = hash(__name__) & ((1 << 64) - 1)

InternIds = npt.NDArray[np.int64]


class _InternTable(dict[str, int]):
    """Strings, numbered as they are met, and in columns what ``known_of`` tells of each.

    A dictionary is spread over more memory than a processor has at hand, and looks in four places of it for one string
    after the other. So what it said is kept by hash in one place each, all of which are looked at in one go.
    """

    def __init__(self, attributes_of: Callable[[str], tuple[float, ...]], *dtypes: DTypeLike) -> None:
        self.columns: tuple[npt.NDArray[Any], ...] = tuple(
            np.empty(_INITIAL_CAPACITY, dtype) for dtype in dtypes
        )
        self.strings: list[str] = []
        self._attributes_of = attributes_of
        self._cache = _empty_cache(_INITIAL_CAPACITY)

    def __missing__(self, name: str) -> int:
        known = self._attributes_of(name)
        number = len(self.strings)
        if number == len(self.columns[0]):
            self.columns = tuple(np.concatenate([c, np.empty_like(c)]) for c in self.columns)
            self._cache = _empty_cache(len(self.columns[0]))
        for column, value in zip(self.columns, known, strict=True):
            column[number] = value
        self.strings.append(name)
        self[name] = number
        return number

    def ids_of(self, strings: Sequence[str]) -> InternIds:
        """(n,) the number of each."""
        hashes = np.fromiter(
            map(xxh3_64_intdigest, strings, repeat(_HASH_SEED)), np.uint64, len(strings)
        ).view(np.int64)
        said = self._cache.take(hashes & (len(self._cache) - 1), axis=0)
        (unsaid,) = (said[:, 0] != hashes).nonzero()
        if len(unsaid):
            said[unsaid, 0] = hashes = hashes[unsaid]
            said[unsaid, 1] = [self[strings[i]] for i in unsaid.tolist()]
            self._cache[hashes & (len(self._cache) - 1)] = said[unsaid]
        numbers: InternIds = said[:, 1]
        return numbers


def _empty_cache(capacity: int) -> npt.NDArray[np.int64]:
    """(slots, 2): hash and number of the string that was looked up last of those whose hashes end like the slot."""
    return np.zeros((capacity * _SLOTS_PER_ENTRY, 2), np.int64)


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The distinct index terms of a text in order of first occurrence, (n,), n > 0, and how often each occurs, (n,)."""

    terms: InternIds
    counts: npt.NDArray[np.int64]


class Vocabulary:
    """The words of one language that were met, for one model; for one thread at a time.

    It only grows: whoever has it begins a new one when it is too large.
    """

    def __init__(self, lang: str, model: FeatureModel | HashedModel) -> None:
        self._lang = lang
        self._model = model
        self._terms = _InternTable(model.row_and_idf, np.int64, np.float64)
        self._words = _InternTable(self._word_attributes, np.uint64, np.int64)
        self._first_position = np.empty(
            0, np.int64
        )  # of each term: room for where it occurs first in one text

    def __len__(self) -> int:
        return len(self._words) + len(self._terms)

    def word_ids(self, words: Sequence[str]) -> InternIds:
        """(n,) the numbers of words."""
        return self._words.ids_of(words)

    def term_ids(self, terms: Sequence[str]) -> InternIds:
        """(n,) the numbers of index terms."""
        return self._terms.ids_of(terms)

    def term_ids_of_words(self, words: InternIds) -> InternIds:
        """(m,) the numbers of the index terms of words between spaces, in order; stop words have none."""
        terms = self._words.columns[1][words]
        found: InternIds = terms[terms != NO_TERM]
        return found

    def sketch(self, words: InternIds, width: int) -> Sketch:
        """``overlap.sketch`` of numbered words."""
        return shingles.sketch_from_hashes(shingles.combine_word_hashes(self._words.columns[0][words], width))

    def count_terms(self, terms: InternIds) -> TermCounts:
        """How often each term occurs."""
        if len(self._first_position) < len(self._terms):
            self._first_position = np.empty(len(self._terms.columns[0]), np.int64)
        self._first_position[terms[::-1]] = np.arange(
            len(terms) - 1, -1, -1
        )  # written last: where a term occurs first
        counts = np.bincount(self._first_position[terms])
        (at,) = counts.nonzero()
        return TermCounts(terms[at], counts[at])

    def project(self, term_counts: TermCounts, weights: FloatArray) -> FloatArray:
        """The model's ``project`` of a bag with these ``weights``."""
        if isinstance(self._model, FeatureModel):
            rows = self._terms.columns[0][term_counts.terms]
            known = rows >= 0
            if known.all():
                return self._model.project_rows(rows, weights)
            if known.any():
                return self._model.project_rows(rows[known], weights[known])
        return self._model.project(
            dict(zip(self.terms_of_ids(term_counts.terms), term_counts.counts.tolist(), strict=True))
        )

    def tf_idf(self, term_counts: TermCounts) -> FloatArray:
        """(n,) float64: tf-idf of the terms of a bag, not normalised."""
        weights: FloatArray = (
            self._model.tf_weights(term_counts.counts) * self._terms.columns[1][term_counts.terms]
        )
        return weights

    def top_terms(
        self, term_counts: TermCounts, weights: FloatArray, at_least: int
    ) -> list[tuple[str, float]]:
        """At least ``most`` of the heaviest terms, or all if there are fewer, as the model's ``weights`` weighs them."""
        normalised = l2_normalize(weights)
        if len(normalised) > at_least:
            least = np.partition(normalised, len(normalised) - at_least)[len(normalised) - at_least]
            at = np.flatnonzero(normalised >= least)
            return list(zip(self.terms_of_ids(term_counts.terms[at]), normalised[at].tolist(), strict=True))
        return list(zip(self.terms_of_ids(term_counts.terms), normalised.tolist(), strict=True))

    def terms_of_ids(self, terms: InternIds) -> list[str]:
        """Index terms by their numbers."""
        return list(map(self._terms.strings.__getitem__, terms.tolist()))

    def _word_attributes(self, word: str) -> tuple[int, int]:
        terms = tokenizer.terms_of_words([word], self._lang)
        return shingles.word_hash_uncached(word), self._terms[terms[0]] if terms else NO_TERM
