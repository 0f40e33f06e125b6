"""Vocabulary: interned words and terms of one language, with what tokenizer and model compute for each.

An article is two arrays of ids. The results are bit for bit those of ``tokenizer``, ``shingles`` and
``features`` for the strings (a test compares them), in 1/3 of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
from xxhash import xxh3_64_intdigest

from aggregator.analysis import shingles
from aggregator.analysis.features import FeatureModel, HashedModel, tf_weights
from aggregator.analysis.simhash import FloatArray, l2_normalize
from aggregator.analysis.text import spelling, tokenizer

NO_TERM = -1
_INITIAL_CAPACITY = 1 << 10
_JOINED_CAPACITY, _MAX_REMEMBERED_RUN = 1 << 12, 4
_SLOTS_PER_ENTRY = 4  # cache slots per string of the table; 1 % of the words of an article then miss
# Seed of the 64-bit hashes of UTF-8 bytes, random per process as Python's string hashes, so that collisions
# cannot be prepared; two of 2^18 words collide in 1 of 5e8 processes.
_HASH_SEED = hash(__name__) & ((1 << 64) - 1)

InternIds = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
NO_TERMS: InternIds = np.empty(0, np.int64)


class TooManyNewStrings(Exception):
    """A text has more unknown words or terms than may be added at once."""


class InternTable(dict[str, int]):
    """Intern table: string -> id (0, 1, ... in order of first lookup), with attributes per id in ``columns``.

    Dictionary lookups miss the processor's caches several times per string. So ids are also kept in a
    direct-mapped cache of (hash, id) slots, which one vectorized gather reads for all words of an article.
    """

    def __init__(self, attributes_of: Callable[[str], tuple[float, ...]], *dtypes: DTypeLike) -> None:
        self.columns: tuple[npt.NDArray[Any], ...] = tuple(np.empty(_INITIAL_CAPACITY, d) for d in dtypes)
        self.strings: list[str] = []
        self.max_new: int | None = None  # strings that one ``ids_of`` may add; None: any number
        self._attributes_of = attributes_of
        # Hash and id of the string looked up last that maps to the slot.
        self._cache = np.zeros((_INITIAL_CAPACITY * _SLOTS_PER_ENTRY, 2), np.int64)

    def __missing__(self, string: str) -> int:
        attributes = self._attributes_of(string)
        id_ = len(self.strings)
        if id_ == len(self.columns[0]):
            self.columns = tuple(np.concatenate([c, np.empty_like(c)]) for c in self.columns)
            self._cache = np.zeros((len(self.columns[0]) * _SLOTS_PER_ENTRY, 2), np.int64)
        for column, value in zip(self.columns, attributes, strict=True):
            column[id_] = value
        self.strings.append(string)
        self[string] = id_
        return id_

    def ids_of(self, strings: Sequence[str]) -> InternIds:
        """Return the ids of strings, (n,)."""
        hashes = np.fromiter(
            map(xxh3_64_intdigest, strings, repeat(_HASH_SEED)), np.uint64, len(strings)
        ).view(np.int64)
        slots = self._cache.take(hashes & (len(self._cache) - 1), axis=0)
        (missed,) = (slots[:, 0] != hashes).nonzero()
        if len(missed):
            if self.max_new is not None:
                self._add_within_limit([strings[i] for i in missed.tolist()], self.max_new)
            slots[missed, 0] = hashes = hashes[missed]
            slots[missed, 1] = [self[strings[i]] for i in missed.tolist()]  # may replace the cache
            self._cache[hashes & (len(self._cache) - 1)] = slots[missed]
        ids: InternIds = slots[:, 1]
        return ids

    def _add_within_limit(self, strings: Sequence[str], limit: int) -> None:
        """Add at most ``limit`` new strings: a repeated attempt succeeds if it needs no more than these."""
        new = [string for string in dict.fromkeys(strings) if string not in self]
        for string in new[:limit]:
            self[string]
        if len(new) > limit:
            raise TooManyNewStrings


class Vocabulary:
    """Interned words and terms of one language for one model; only grows. Not thread-safe."""

    def __init__(self, lang: str, model: FeatureModel | HashedModel) -> None:
        self._lang = lang
        self._model = model
        row_type = np.uint64 if isinstance(model, HashedModel) else np.int64
        self.terms = InternTable(model.row_and_idf, row_type, np.float64)
        # Shingle hash of the compared spelling, term id, whether the word may join its neighbors.
        # No bound method: a cycle would keep a dropped vocabulary until a collection, which is rare here.
        self.words = InternTable(partial(_word_attributes, lang, self.terms), np.uint64, np.int64, np.bool_)
        self._joined: dict[tuple[int, ...], npt.NDArray[np.uint64]] = {}  # runs of words -> hashes
        # Scratch space of ``count_terms`` and, all False, of ``are_among``, per term id.
        self._first_position, self._flags = np.empty(0, np.int64), np.zeros(0, np.bool_)

    def term_ids(self, text: tokenizer.SplitText, units: InternIds, first: int | None = None) -> InternIds:
        """The ids, (m,), of the index terms of a text, in order; ``units``: the ids of its units.

        ``first``: only of so many units, or so many terms where these do not follow from units.
        """
        if text.terms is not None:
            return self.terms.ids_of(text.terms[:first])
        terms = self.words.columns[1][units[:first]]
        kept: InternIds = terms[terms != NO_TERM]  # stop words have no term
        return kept

    def are_among(self, terms: InternIds, chosen: InternIds) -> npt.NDArray[np.bool_]:
        """Which of ``terms``, (n,), NO_TERM included, are among the ``chosen``, (m,)."""
        if len(self._flags) <= len(self.terms):  # one more than terms, for NO_TERM
            self._flags = np.zeros(len(self.terms.columns[0]) + 1, np.bool_)
        self._flags[chosen] = True
        found = self._flags.take(terms)
        self._flags[chosen] = False
        return found

    def count_terms(
        self, terms: InternIds, without: InternIds = NO_TERMS
    ) -> tuple[InternIds, Counts, FloatArray]:
        """Distinct terms in order of first occurrence, their counts and tf-idf, not normalized; all (n,).

        Occurrences in ``without`` do not count, unless there are no others.
        """
        if len(self._first_position) < len(self.terms):
            self._first_position = np.empty(len(self.terms.columns[0]), np.int64)
        # Written back to front, so the first occurrence of a term is the value that remains.
        self._first_position[terms[::-1]] = np.arange(len(terms) - 1, -1, -1)
        counts = np.bincount(self._first_position[terms])
        if len(without):
            fewer = counts.copy()
            np.subtract.at(fewer, self._first_position[without[self.are_among(without, terms)]], 1)
            counts = np.maximum(fewer, 0) if (fewer > 0).any() else counts
        (positions,) = counts.nonzero()
        terms, counts = terms[positions], counts[positions]
        return terms, counts, tf_weights(counts) * self.terms.columns[1][terms]

    def project(self, terms: InternIds, counts: Counts, weights: FloatArray) -> FloatArray:
        """The model's (64,) sums of distinct terms with these counts and tf-idf ``weights``, (n,), n > 0."""
        rows = self.terms.columns[0][terms]
        known = rows >= 0
        if known.any():
            return self._model.project_rows(rows[known], weights[known])
        return self._model.project(dict(zip(self.terms_of_ids(terms), counts.tolist(), strict=True)))

    def top_terms(self, terms: InternIds, weights: FloatArray, at_least: int) -> list[tuple[str, float]]:
        """The heaviest (term, weight), ``at_least`` or all, unordered; the L2 norm of all weights is 1."""
        normalized = l2_normalize(weights)
        if len(normalized) > at_least:
            threshold = np.partition(normalized, len(normalized) - at_least)[len(normalized) - at_least]
            kept = np.flatnonzero(normalized >= threshold)
            terms, normalized = terms[kept], normalized[kept]
        return list(zip(self.terms_of_ids(terms), normalized.tolist(), strict=True))

    def terms_of_ids(self, terms: InternIds) -> list[str]:
        """Return index terms by their ids."""
        return list(map(self.terms.strings.__getitem__, terms.tolist()))

    def compared_hashes(self, words: InternIds) -> npt.NDArray[np.uint64]:
        """The ``word_hash`` of each word of ``normalize_spelling(words)``, (m,); not for Korean."""
        hashes: npt.NDArray[np.uint64] = self.words.columns[0][words]
        joins = self.words.columns[2][words]
        pairs = (joins[1:] & joins[:-1]).nonzero()[0].tolist()
        if not pairs:
            return hashes
        kept, start = np.ones(len(hashes), np.bool_), pairs[0]
        for last, following in zip(pairs, [*pairs[1:], -1], strict=True):
            if following != last + 1:
                run = tuple(words[start : last + 2].tolist())
                joined = self._joined.get(run)
                if joined is None:
                    strings = spelling.join_figures([self.words.strings[id_] for id_ in run], self._lang)
                    joined = np.array(list(map(shingles.word_hash, strings)), np.uint64)
                    if len(run) <= _MAX_REMEMBERED_RUN and len(self._joined) < _JOINED_CAPACITY:
                        self._joined[run] = joined
                hashes[start : start + len(joined)] = joined
                kept[start + len(joined) : last + 2] = False
                start = following
        return hashes[kept]


def _word_attributes(lang: str, table: InternTable, word: str) -> tuple[int, int, bool]:
    """``table``: where its term is interned."""
    terms, form = tokenizer.terms_of_words([word], lang), spelling.compared_form(word, lang)
    term = table[terms[0]] if terms else NO_TERM
    return shingles.word_hash(form), term, spelling.is_part_of_figure(word, lang, form)
