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
_SUM = (1 << _SUM_BITS) - 1
_NONE = array("q")


class Holding:
    """What slots hold of some terms, until anything is added or taken."""

    def __init__(self, posted: Sequence[array[int]]) -> None:
        self._posted = posted
        self.counts = list(map(len, posted))

    def products(self, factors: Sequence[float], first: int) -> dict[int, float]:
        """Slot -> sum of factor times weight over the terms, in their order; of slots with one of the ``first`` terms."""
        dots: dict[int, float] = {}
        for factor, posted in zip(factors[:first], self._posted, strict=False):
            for each in posted:
                slot = each >> _SUM_BITS
                dots[slot] = dots.get(slot, 0.0) + factor * (each & _SUM)
        for factor, posted in zip(factors[first:], self._posted[first:], strict=True):
            for each in posted:
                if (slot := each >> _SUM_BITS) in dots:
                    dots[slot] += factor * (each & _SUM)
        return dots

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Number of a term, slot and sum, in the order of terms."""
        for number, posted in enumerate(self._posted):
            for each in posted:
                yield number, each >> _SUM_BITS, each & _SUM

    def slots(self) -> set[int]:
        """Those that hold any of the terms."""
        return {each >> _SUM_BITS for posted in self._posted for each in posted}

    def columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Slots and their sums, of all terms one after the other."""
        posted = np.frombuffer(b"".join(self._posted), np.int64)
        return posted >> _SUM_BITS, posted & _SUM


class Postings:
    """Sums of term weights (1 to 2**32 - 1) by slot."""

    def __init__(self) -> None:
        self._of: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._places: list[dict[str, int]] = []  # by slot: where in the array of a term
        self._free: list[int] = []

    def begin(self) -> int:
        """A slot that holds nothing."""
        if self._free:
            return self._free.pop()
        self._places.append({})
        return len(self._places) - 1

    def end(self, slot: int) -> None:
        """Give back a slot that holds nothing any more."""
        # Another dictionary: an emptied one keeps the room that the largest story of this slot took.
        self._places[slot] = {}
        self._free.append(slot)

    def add(self, slot: int, sums: dict[str, int], terms: Mapping[str, int]) -> None:
        """Raise ``sums``, which are those of the slot, by the weights of ``terms``."""
        of, places, high = self._of, self._places[slot], slot << _SUM_BITS
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

    def take(self, slot: int, sums: dict[str, int], terms: Mapping[str, int]) -> None:
        """The opposite; a term of which nothing is left goes."""
        of, places, high = self._of, self._places[slot], slot << _SUM_BITS
        for term, weight in terms.items():
            left = sums[term] - weight
            if left:
                sums[term] = left
                of[term][places[term]] = high | left
            else:
                del sums[term]
                self._forget(term, places.pop(term))

    def holding(self, terms: Iterable[str]) -> Holding:
        """What slots hold of each of these terms."""
        return Holding([self._of.get(term, _NONE) for term in terms])

    def items(self) -> dict[str, dict[int, int]]:
        """Term -> slot -> sum."""
        return {
            term: {each >> _SUM_BITS: each & _SUM for each in posted} for term, posted in self._of.items()
        }

    def _forget(self, term: str, place: int) -> None:
        posted = self._of[term]
        last = posted.pop()
        if place < len(posted):
            posted[place] = last
            self._places[last >> _SUM_BITS][term] = place
        elif not posted:
            del self._of[term]
