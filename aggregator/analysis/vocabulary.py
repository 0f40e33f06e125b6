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
from aggregator.analysis.features import FeatureModel, HashedModel, Sums, unit
from aggregator.analysis.text import tokenizer
from aggregator.domain import Sketch

NO_TERM = -1
_ROOM = 1 << 10
_SLOTS = 4  # per string that there is room for: of the words of an article one in a hundred then finds another's there
# Hashes are of 64 bits, of UTF-8 (``hash`` gives "ba" and "慢" the same), and keyed as those of Python are: two of 2^17
# words have the same in one of two thousand million processes, and nobody can prepare any that do.
_KEY = hash(__name__) & ((1 << 64) - 1)

Numbers = npt.NDArray[np.int64]


class _Numbered(dict[str, int]):
    """Strings, numbered as they are met, and in columns what ``known_of`` tells of each.

    A dictionary is spread over more memory than a processor has at hand, and looks in four places of it for one string
    after the other. So what it said is kept by hash in one place each, all of which are looked at in one go.
    """

    def __init__(self, known_of: Callable[[str], tuple[float, ...]], *dtypes: DTypeLike) -> None:
        self.columns: tuple[npt.NDArray[Any], ...] = tuple(np.empty(_ROOM, dtype) for dtype in dtypes)
        self.names: list[str] = []
        self._known_of = known_of
        self._said = _nothing_said(_ROOM)

    def __missing__(self, name: str) -> int:
        known = self._known_of(name)
        number = len(self.names)
        if number == len(self.columns[0]):
            self.columns = tuple(np.concatenate([c, np.empty_like(c)]) for c in self.columns)
            self._said = _nothing_said(len(self.columns[0]))
        for column, value in zip(self.columns, known, strict=True):
            column[number] = value
        self.names.append(name)
        self[name] = number
        return number

    def numbers(self, names: Sequence[str]) -> Numbers:
        """(n,) the number of each."""
        hashes = np.fromiter(map(xxh3_64_intdigest, names, repeat(_KEY)), np.uint64, len(names)).view(
            np.int64
        )
        said = self._said.take(hashes & (len(self._said) - 1), axis=0)
        (unsaid,) = (said[:, 0] != hashes).nonzero()
        if len(unsaid):
            said[unsaid, 0] = hashes = hashes[unsaid]
            said[unsaid, 1] = [self[names[i]] for i in unsaid.tolist()]
            self._said[hashes & (len(self._said) - 1)] = said[unsaid]
        numbers: Numbers = said[:, 1]
        return numbers


def _nothing_said(room: int) -> npt.NDArray[np.int64]:
    """(slots, 2): hash and number of the string that was looked up last of those whose hashes end like the slot."""
    return np.zeros((room * _SLOTS, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Bag:
    """The distinct index terms of a text in order of first occurrence, (n,), n > 0, and how often each occurs, (n,)."""

    terms: Numbers
    counts: npt.NDArray[np.int64]


class Vocabulary:
    """The words of one language that were met, for one model; for one thread at a time.

    It only grows: whoever has it begins a new one when it is too large.
    """

    def __init__(self, lang: str, model: FeatureModel | HashedModel) -> None:
        self._lang = lang
        self._model = model
        self._terms = _Numbered(model.row_and_idf, np.int64, np.float64)
        self._words = _Numbered(self._known_of, np.uint64, np.int64)
        self._first = np.empty(0, np.int64)  # of each term: room for where it occurs first in one text

    def __len__(self) -> int:
        return len(self._words) + len(self._terms)

    def words(self, words: Sequence[str]) -> Numbers:
        """(n,) the numbers of words."""
        return self._words.numbers(words)

    def terms(self, terms: Sequence[str]) -> Numbers:
        """(n,) the numbers of index terms."""
        return self._terms.numbers(terms)

    def terms_of(self, words: Numbers) -> Numbers:
        """(m,) the numbers of the index terms of words between spaces, in order; stop words have none."""
        terms = self._words.columns[1][words]
        found: Numbers = terms[terms != NO_TERM]
        return found

    def sketch(self, words: Numbers, width: int) -> Sketch:
        """``overlap.sketch`` of numbered words."""
        return shingles.sketch_of_hashes(shingles.hashes_of_runs(self._words.columns[0][words], width))

    def bag(self, terms: Numbers) -> Bag:
        """How often each term occurs."""
        if len(self._first) < len(self._terms):
            self._first = np.empty(len(self._terms.columns[0]), np.int64)
        self._first[terms[::-1]] = np.arange(
            len(terms) - 1, -1, -1
        )  # written last: where a term occurs first
        counts = np.bincount(self._first[terms])
        (at,) = counts.nonzero()
        return Bag(terms[at], counts[at])

    def project(self, bag: Bag, weights: Sums) -> Sums:
        """The model's ``project`` of a bag with these ``weights``."""
        if isinstance(self._model, FeatureModel):
            rows = self._terms.columns[0][bag.terms]
            known = rows >= 0
            if known.all():
                return self._model.sums(rows, weights)
            if known.any():
                return self._model.sums(rows[known], weights[known])
        return self._model.project(dict(zip(self.names(bag.terms), bag.counts.tolist(), strict=True)))

    def weights(self, bag: Bag) -> Sums:
        """(n,) float64: tf-idf of the terms of a bag, not normalised."""
        weights: Sums = self._model.damped(bag.counts) * self._terms.columns[1][bag.terms]
        return weights

    def heaviest(self, bag: Bag, weights: Sums, most: int) -> list[tuple[str, float]]:
        """At least ``most`` of the heaviest terms, or all if there are fewer, as the model's ``weights`` weighs them."""
        normalised = unit(weights)
        if len(normalised) > most:
            least = np.partition(normalised, len(normalised) - most)[len(normalised) - most]
            at = np.flatnonzero(normalised >= least)
            return list(zip(self.names(bag.terms[at]), normalised[at].tolist(), strict=True))
        return list(zip(self.names(bag.terms), normalised.tolist(), strict=True))

    def names(self, terms: Numbers) -> list[str]:
        """Index terms by their numbers."""
        return list(map(self._terms.names.__getitem__, terms.tolist()))

    def _known_of(self, word: str) -> tuple[int, int]:
        terms = tokenizer.terms_of([word], self._lang)
        return shingles.fresh_word_hash(word), self._terms[terms[0]] if terms else NO_TERM
