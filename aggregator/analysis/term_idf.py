"""Inverse document frequencies of the index terms of languages without a fitted model.

One table for all languages, estimated from published word frequencies (``models/xx.md``: source, licence,
formula). A term is found by the 32-bit hash of its language and itself; a term that is not listed, of a
language of the table, is rare and gets ``rare_idf``. The values are multiples of 1/16, so sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from aggregator.analysis import model_file
from aggregator.errors import ModelError

STEPS_PER_UNIT = 16
EQUAL_IDF = 1.0  # of all terms of a language that the table does not have
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

    def idf(self, lang: str, term: str) -> float:
        """Return the idf of a term, 1 or more; ``EQUAL_IDF`` in a language without frequencies."""
        return _idf(self, lang, term)

    def save(self, path: Path) -> None:
        """Write the table to one file atomically. Raises ModelError."""
        fields = {
            "kind": "term-idf",
            "recipe": self.recipe,
            "languages": self.languages,
            "rare_idf": self.rare_idf,
        }
        model_file.write(path, fields, {"hashes": self.hashes, "steps": self.steps})

    @classmethod
    def load(cls, path: Path, recipe: str) -> TermIdf:
        """Read a table of terms of this recipe. Raises ModelError if it is invalid or of another recipe."""
        fields, arrays = model_file.read(path)
        try:
            # Copied, since a search in an array that is not aligned in memory copies it every time (35 us).
            hashes, steps = arrays["hashes"].copy(), arrays["steps"].copy()
            table = cls(fields["recipe"], fields["languages"], hashes, steps, fields["rare_idf"])
        except KeyError as error:
            raise ModelError(
                f"{path}: the file has no {error}; build it again with `scripts/build-term-idf`."
            ) from error
        if table.recipe != recipe:
            raise ModelError(
                f"{path}: the table is of index terms {table.recipe!r}, but this program uses {recipe!r}; "
                "build it again with `scripts/build-term-idf`."
            )
        return table


def hash_term(lang: str, term: str) -> int:
    """Return the 32-bit hash under which a term of a language is listed."""
    return xxh3_64_intdigest(f"{lang}\n{term}".encode("utf-8", "surrogatepass"), _HASH_SEED) & _HASH_MASK


@lru_cache(maxsize=1 << 15)  # terms recur in every article, and a search takes 5 us
def _idf(table: TermIdf, lang: str, term: str) -> float:
    listed = table.languages.get(lang)
    if listed is None:
        return EQUAL_IDF
    hashed = np.uint32(hash_term(listed, term))
    at = int(table.hashes.searchsorted(hashed))
    if at == len(table.hashes) or table.hashes[at] != hashed:
        return table.rare_idf
    return int(table.steps[at]) / STEPS_PER_UNIT
