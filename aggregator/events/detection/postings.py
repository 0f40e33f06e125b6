"""Inverted index from terms to the clusters that hold them, read as arrays of many terms at a time.

A cluster is identified by its slot, a small number that is reused after the cluster is closed. The postings
of a term are one unordered array of 64-bit integers: slot in the high 32 bits, sum of weights in the low 32.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

_SUM_BITS = 32
_NO_POSTINGS = array("q")


def columns(postings: Sequence[array[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return slots and sums of all terms, concatenated in their order."""
    posted = np.frombuffer(b"".join(postings), np.int64)
    return posted >> _SUM_BITS, posted & (1 << _SUM_BITS) - 1


class Postings:
    """Sums of term weights (1 to 2**32 - 1) by slot."""

    def __init__(self) -> None:
        self._by_term: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._offsets: list[dict[str, int]] = []  # by slot: term -> position in the array of the term
        self._free_slots: list[int] = []

    def allocate_slot(self) -> int:
        """Return an empty slot."""
        if self._free_slots:
            return self._free_slots.pop()
        self._offsets.append({})
        return len(self._offsets) - 1

    def free_slot(self, slot: int) -> None:
        """Release an empty slot for reuse."""
        # A new dictionary: an emptied one keeps the memory of the largest cluster that this slot had.
        self._offsets[slot] = {}
        self._free_slots.append(slot)

    def add(self, slot: int, sums: dict[str, int], terms: Mapping[str, int]) -> None:
        """Add the weights of ``terms`` to the slot and to ``sums``, the sums of the slot by term."""
        by_term, offsets, high = self._by_term, self._offsets[slot], slot << _SUM_BITS
        for term, weight in terms.items():
            offset = offsets.get(term)
            if offset is None:
                sums[term] = weight
                postings = by_term[term]
                offsets[term] = len(postings)
                postings.append(high | weight)
            else:
                total = sums[term] = sums[term] + weight
                by_term[term][offset] = high | total

    def subtract(self, slot: int, sums: dict[str, int], terms: Mapping[str, int]) -> None:
        """Undo ``add``; terms whose sum becomes 0 are removed."""
        by_term, offsets, high = self._by_term, self._offsets[slot], slot << _SUM_BITS
        for term, weight in terms.items():
            remaining = sums[term] - weight
            if remaining:
                sums[term] = remaining
                by_term[term][offsets[term]] = high | remaining
            else:
                del sums[term]
                self._remove_posting(term, offsets.pop(term))

    def lookup(self, terms: Iterable[str]) -> list[array[int]]:
        """Return the postings of each of these terms, for ``columns``."""
        return [self._by_term.get(term, _NO_POSTINGS) for term in terms]

    def _remove_posting(self, term: str, offset: int) -> None:
        postings = self._by_term[term]
        last = postings.pop()
        if offset < len(postings):
            postings[offset] = last
            self._offsets[last >> _SUM_BITS][term] = offset
        elif not postings:
            del self._by_term[term]
