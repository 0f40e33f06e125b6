"""How many articles did a segment take, and of what times? A sample of their numbers, 8 bytes each.

One article in 2**k leaves a mark: its number (k zero bits at the end, so it is chance), the low bits
replaced by k. A mark is appended by the commit of its article, so counting costs no round trip, and a
segment of ten million articles has some five thousand marks.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

MARKS: Final = 4096  # of a full segment, at least
RATE_BITS: Final = 5  # of a mark, that hold k
NEVER: Final = (1 << RATE_BITS) - 1


def rate_of(size: int) -> int:
    """k: one article in 2**k leaves a mark, so that a segment of ``size`` articles has some thousands."""
    return max(0, (size // MARKS).bit_length() - 1)


def mark_of(number: int, rate: int) -> bytes:
    """The mark that article ``number`` leaves, 8 bytes; empty for most."""
    if number & ((1 << rate) - 1):
        return b""
    return (number >> RATE_BITS << RATE_BITS | rate).to_bytes(8, "little")


def tally(marks: bytes | None) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Marked numbers (low bits cleared) and how many articles each of them stands for, both (n,)."""
    found = np.frombuffer(marks or b"", "<u8")
    rates = found & np.uint64((1 << RATE_BITS) - 1)
    return found ^ rates, np.left_shift(1, rates.astype(np.int64))
