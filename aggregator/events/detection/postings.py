"""Which stories hold a term, and how much of it? An inverted index, read as arrays: of many terms at a time.

A story goes by its slot, a small number that another story gets when it is gone. What slots hold of a term stands
in one array of integers, the slot above and the sum of weights below (``_SUM_BITS``), in no order.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

_SUM_BITS = 32
_SUM_MASK = (1 << _SUM_BITS) - 1
_NO_POSTINGS = array("q")


class TermPostings:
    """What slots hold of some terms, until anything is added or taken."""

    def __init__(self, arrays: Sequence[array[int]]) -> None:
        self._arrays = arrays
        self.lengths = list(map(len, arrays))

    def dot_products(self, factors: Sequence[float], candidate_terms: int) -> dict[int, float]:
        """Slot -> sum of factor times weight over the terms, in their order; of slots with one of the ``first`` terms."""
        dots: dict[int, float] = {}
        for factor, posted in zip(factors[:candidate_terms], self._arrays, strict=False):
            for each in posted:
                slot = each >> _SUM_BITS
                dots[slot] = dots.get(slot, 0.0) + factor * (each & _SUM_MASK)
        for factor, posted in zip(factors[candidate_terms:], self._arrays[candidate_terms:], strict=True):
            for each in posted:
                if (slot := each >> _SUM_BITS) in dots:
                    dots[slot] += factor * (each & _SUM_MASK)
        return dots

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Number of a term, slot and sum, in the order of terms."""
        for number, posted in enumerate(self._arrays):
            for each in posted:
                yield number, each >> _SUM_BITS, each & _SUM_MASK

    def slots(self) -> set[int]:
        """Those that hold any of the terms."""
        return {each >> _SUM_BITS for posted in self._arrays for each in posted}

    def columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Slots and their sums, of all terms one after the other."""
        posted = np.frombuffer(b"".join(self._arrays), np.int64)
        return posted >> _SUM_BITS, posted & _SUM_MASK


class Postings:
    """Sums of term weights (1 to 2**32 - 1) by slot."""

    def __init__(self) -> None:
        self._by_term: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._offsets: list[dict[str, int]] = []  # by slot: where in the array of a term
        self._free_slots: list[int] = []

    def allocate_slot(self) -> int:
        """A slot that holds nothing."""
        if self._free_slots:
            return self._free_slots.pop()
        self._offsets.append({})
        return len(self._offsets) - 1

    def free_slot(self, slot: int) -> None:
        """Give back a slot that holds nothing any more."""
        # Another dictionary: an emptied one keeps the room that the largest story of this slot took.
        self._offsets[slot] = {}
        self._free_slots.append(slot)

    def add(self, slot: int, sums: dict[str, int], terms: Mapping[str, int]) -> None:
        """Raise ``sums``, which are those of the slot, by the weights of ``terms``."""
        of, places, high = self._by_term, self._offsets[slot], slot << _SUM_BITS
        for term, weight in terms.items():
            place = places.get(term)
            if place is None:
                sums[term] = weight
                posted = of[term]
                places[term] = len(posted)
                posted.append(high | weight)
            else:
                total = sums[term] = sums[term] + weight
                of[term][place] = high | total

    def subtract(self, slot: int, sums: dict[str, int], terms: Mapping[str, int]) -> None:
        """The opposite; a term of which nothing is left goes."""
        of, places, high = self._by_term, self._offsets[slot], slot << _SUM_BITS
        for term, weight in terms.items():
            left = sums[term] - weight
            if left:
                sums[term] = left
                of[term][places[term]] = high | left
            else:
                del sums[term]
                self._remove_posting(term, places.pop(term))

    def lookup(self, terms: Iterable[str]) -> TermPostings:
        """What slots hold of each of these terms."""
        return TermPostings([self._by_term.get(term, _NO_POSTINGS) for term in terms])

    def sums_by_term(self) -> dict[str, dict[int, int]]:
        """Term -> slot -> sum."""
        return {
            term: {each >> _SUM_BITS: each & _SUM_MASK for each in posted}
            for term, posted in self._by_term.items()
        }

    def _remove_posting(self, term: str, offset: int) -> None:
        posted = self._by_term[term]
        last = posted.pop()
        if offset < len(posted):
            posted[offset] = last
            self._offsets[last >> _SUM_BITS][term] = offset
        elif not posted:
            del self._by_term[term]
