"""Term frequencies: how frequent index terms are in a language, known before an article has arrived.

``TermIdf`` weighs the terms of languages without a fitted model, from published word frequencies
(``models/xx.md``); multiples of 1/16, so sums are exact. ``TermRates`` are for the event detector: the chance
that an index term drawn at random from the distinct ones of a text is that term. If a share s of a corpus
holds a term, it occurs ``-ln(1 - s)`` times on average, divided by the sum of that over all terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from math import exp, log1p
from pathlib import Path

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from aggregator.analysis import model_file
from aggregator.analysis.text.language import language_group
from aggregator.errors import ModelError

STEPS_PER_UNIT = 16
EQUAL_IDF = 1.0  # of all terms of a language that the table does not have
# Index terms of 300 words, the length of text that the values of ``TermIdf`` refer to: half are stop words.
TERM_IDF_TEXT_TERMS = 150
MAX_SHARE = 0.999
MAX_CACHED_RATES = 8_192  # about 1 MB
_HASH_SEED = 0x72
_HASH_MASK = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True, eq=False)
class TermIdf:
    """The table; immutable and picklable.

    recipe     ``tokenizer_recipe`` of the terms
    languages  ISO 639-1 code -> code that its terms are listed under
    hashes     (n,) uint32, ascending
    steps      (n,) uint8: the idf of each term, in 1/16
    rare_idf   of a term that is not listed
    """

    recipe: str
    languages: dict[str, str] = field(repr=False)
    hashes: npt.NDArray[np.uint32] = field(repr=False)
    steps: npt.NDArray[np.uint8] = field(repr=False)
    rare_idf: float

    @property
    def content_hash(self) -> str:
        """SHA-256 of everything that weights depend on."""
        digest = sha256(repr((self.recipe, sorted(self.languages.items()), self.rare_idf)).encode())
        digest.update(self.hashes.tobytes() + self.steps.tobytes())
        return digest.hexdigest()

    # Terms recur in every article, and a search takes 5 us.
    @lru_cache(maxsize=1 << 15)  # noqa: B019  a process has one table
    def idf(self, lang: str, term: str) -> float:
        """The idf of a term, 1 or more; ``EQUAL_IDF`` in a language without frequencies."""
        listed = self.languages.get(lang)
        if listed is None:
            return EQUAL_IDF
        hashed = np.uint32(hash_term(listed, term))
        at = int(self.hashes.searchsorted(hashed))
        if at == len(self.hashes) or self.hashes[at] != hashed:
            return self.rare_idf
        return int(self.steps[at]) / STEPS_PER_UNIT

    @classmethod
    def load(cls, path: Path, recipe: str) -> TermIdf:
        """Read a table of terms of this recipe. Raises ModelError if it is of another recipe."""
        fields, arrays = model_file.read(path)
        if fields["recipe"] != recipe:
            raise ModelError(
                f"{path}: the table is of index terms {fields['recipe']!r}, but this program uses "
                f"{recipe!r}; build it again with `scripts/build-term-idf`."
            )
        # Copied, since a search in an array that is not aligned in memory copies it every time (35 us).
        hashes, steps = arrays["hashes"].copy(), arrays["steps"].copy()
        return cls(recipe, fields["languages"], hashes, steps, fields["rare_idf"])


def hash_term(lang: str, term: str) -> int:
    """Return the 32-bit hash under which a term of a language is listed."""
    return xxh3_64_intdigest(f"{lang}\n{term}".encode("utf-8", "surrogatepass"), _HASH_SEED) & _HASH_MASK


@dataclass(frozen=True, slots=True, eq=False)
class RateTable:
    """Rates of one language group: ``hashes``, (n,) uint64, ascending; ``rates``, (n,)."""

    hashes: npt.NDArray[np.uint64] = field(repr=False)
    rates: npt.NDArray[np.float64] = field(repr=False)
    rare_rate: float

    @classmethod
    def from_idf(
        cls, terms: Sequence[str], idf: npt.NDArray[np.float32], frequent: Mapping[str, float]
    ) -> RateTable:
        """Rates of ``terms``; ``idf``, (n,): 1 - ln(share of documents); ``frequent``: share of others."""
        shares = np.concatenate([np.exp(1.0 - idf.astype(np.float64)), list(frequent.values())])
        occurrences = -np.log1p(-np.minimum(shares, MAX_SHARE))
        hashes = np.array([_hash(term) for term in (*terms, *frequent)], np.uint64)
        order = hashes.argsort()
        rates = (occurrences / occurrences.sum())[order]
        return cls(hashes[order], rates, float(rates.min()) / 2)

    def rate(self, term: str) -> float:
        """Return the rate of a term."""
        hashed = np.uint64(_hash(term))
        at = int(self.hashes.searchsorted(hashed))
        is_listed = at < len(self.hashes) and self.hashes[at] == hashed
        return float(self.rates[at]) if is_listed else self.rare_rate


@dataclass(frozen=True, slots=True, eq=False)
class TermRates:
    """Rates of the terms of all languages: ``tables`` by language group, ``term_idf`` for the others."""

    tables: Mapping[str, RateTable]
    term_idf: TermIdf | None = None

    # The burst detector asks for the terms of a story each time it grows: 1.5 us -> 0.1 us.
    @lru_cache(maxsize=MAX_CACHED_RATES)  # noqa: B019  a process has one or two
    def rate(self, lang: str, term: str) -> float:
        """The rate of a term, 0..1; 0.0 in a language about which nothing is known."""
        table = self.tables.get(language_group(lang))
        if table is not None:
            return table.rate(term)
        if self.term_idf is None or lang not in self.term_idf.languages:
            return 0.0
        share = min(exp(1.0 - self.term_idf.idf(lang, term)), MAX_SHARE)
        return -log1p(-share) / TERM_IDF_TEXT_TERMS


def _hash(term: str) -> int:
    return xxh3_64_intdigest(term.encode("utf-8", "surrogatepass"))
