"""Language identification: naive Bayes over the byte n-grams of a text (Lui & Baldwin, ACL 2012).

N-grams, of 1 to 6 bytes, log probabilities and scores are those of py3langid for the languages of news
(``models/languages.md``), as a double-array trie (Aoe, 1989) with sparse probabilities: 6 MB and 0.02 s per
start instead of 60 MB and 0.65 s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.analysis import model_file
from aggregator.errors import ModelError

MODEL_PATH = Path(__file__).parents[1] / "models" / "languages.ngrams"
MAX_NGRAM_BYTES = 6
# Log probabilities are stored in this unit, in which those of py3langid (float16) are whole numbers.
STEPS_PER_UNIT = 512
ROOT = 0
NO_NODE = 2**32 - 1
# Slots after the last used one, so that every node can be tried with every byte.
PADDING_SLOTS = 256
_TRUE = np.ones(1, bool)


@dataclass(frozen=True, slots=True, eq=False)
class LanguageIdentifier:
    """The model; immutable and picklable. A node of the trie is named by its slot in the first three arrays.

    base       (s,) uint32: the child of node n for byte b, if it exists, is in slot ``base[n] + b``
    parent     (s,) uint32: the parent of the node in a slot; ``NO_NODE`` for the root and unused slots
    row        (s,) uint32: row of the node's n-gram, the number of rows if the n-gram has no probabilities
    starts     (r + 2,) uint32: entries of row r are ``starts[r]:starts[r + 1]``; the last row has none
    columns    (e,) uint8: column of an entry
    excess     (e,) uint16: log probability of an entry above the floor of its column, in steps
    floors     (c,) float64: log probability of the n-grams that a column does not have, in steps
    priors     (c,) float64: log
    first_columns  (l,) uint32: the first column of each language; one written in two scripts has two
    languages  l ISO 639-1 codes
    """

    base: npt.NDArray[np.uint32] = field(repr=False)
    parent: npt.NDArray[np.uint32] = field(repr=False)
    row: npt.NDArray[np.uint32] = field(repr=False)
    starts: npt.NDArray[np.uint32] = field(repr=False)
    columns: npt.NDArray[np.uint8] = field(repr=False)
    excess: npt.NDArray[np.uint16] = field(repr=False)
    floors: npt.NDArray[np.float64] = field(repr=False)
    priors: npt.NDArray[np.float64] = field(repr=False)
    first_columns: npt.NDArray[np.uint32] = field(repr=False)
    languages: tuple[str, ...]

    def scores(self, text: str) -> dict[str, float]:
        """Log likelihood of each language, up to a constant; ``text`` is in NFC."""
        rows = self._rows(text)
        if not len(rows):
            return dict.fromkeys(self.languages, 0.0)
        rows.sort()
        (firsts,) = np.concatenate([_TRUE, rows[1:] != rows[:-1]]).nonzero()
        distinct = rows.take(firsts)
        counts = np.empty_like(firsts)  # np.diff takes 8 us for a headline, this 1.4
        np.subtract(firsts[1:], firsts[:-1], out=counts[:-1])
        counts[-1] = len(rows) - firsts[-1]
        weights = np.log1p(counts)
        starts = self.starts.take(distinct).astype(np.int64)
        lengths = self.starts.take(distinct + 1) - starts
        entries = np.arange(lengths.sum()) + (starts - (lengths.cumsum() - lengths)).repeat(lengths)
        steps = np.bincount(
            self.columns.take(entries), weights.repeat(lengths) * self.excess.take(entries), len(self.priors)
        )
        totals = self.priors + (steps + weights.sum() * self.floors) / STEPS_PER_UNIT
        best = np.maximum.reduceat(totals, self.first_columns)
        return dict(zip(self.languages, best.tolist(), strict=True))

    def _rows(self, text: str) -> npt.NDArray[np.uint32]:
        """Row of the longest n-gram that ends with each byte, (m,); bytes without are left out."""
        encoded = (text.lower() if text.isupper() else text).encode("utf-8", "surrogatepass")
        # No n-gram has a zero byte, so the zeros at the end stop the walks.
        symbols = np.frombuffer(encoded + bytes(MAX_NGRAM_BYTES), np.uint8).astype(np.intp)
        longest = np.zeros(len(symbols), np.intp)  # the root: no n-gram
        ends = np.arange(len(encoded))
        nodes = longest[: len(encoded)]
        for _ in range(MAX_NGRAM_BYTES):
            children = self.base.take(nodes) + symbols.take(ends)
            (found,) = (self.parent.take(children) == nodes).nonzero()
            nodes, ends = children.take(found), ends.take(found)
            longest[ends] = nodes  # replaces a shorter n-gram, which starts later
            ends += 1
        rows = self.row.take(longest)
        return rows[rows < len(self.starts) - 2]

    def save(self, path: Path = MODEL_PATH) -> None:
        """Write the model to one file atomically. Raises ModelError."""
        arrays = {name: getattr(self, name) for name in self.__slots__ if name != "languages"}
        model_file.write(path, {"kind": "language-ngrams", "languages": list(self.languages)}, arrays)

    @classmethod
    def load(cls, path: Path = MODEL_PATH) -> LanguageIdentifier:
        """Read a model file. Raises ModelError if it is invalid."""
        fields, arrays = model_file.read(path)
        try:
            # Copied, since arrays that are not aligned in memory are copied by each access.
            return cls(
                **{name: array.copy() for name, array in arrays.items()}, languages=tuple(fields["languages"])
            )
        except (KeyError, TypeError) as error:
            raise ModelError(
                f"{path}: the parts of the model do not fit together ({error}); "
                "build it again with `scripts/build-language-model`."
            ) from error
