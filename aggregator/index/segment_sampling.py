"""How many articles did a segment take, and of what times? A sample of their numbers, 8 bytes each.

One article in 2**k leaves a mark: its number (k zero bits at the end, so it is chance), the low bits
replaced by k. A mark is appended by the commit of its article, so counting costs no round trip, and a
segment of ten million articles has some five thousand marks.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

MIN_SAMPLES_PER_SEGMENT: Final = 4096  # of a full segment, at least
EXPONENT_BITS: Final = 5  # of a mark, that hold k
NO_SAMPLING: Final = (1 << EXPONENT_BITS) - 1


def sampling_exponent_for(max_articles: int) -> int:
    """k: one article in 2**k leaves a mark, so that a segment of ``size`` articles has some thousands."""
    return max(0, (max_articles // MIN_SAMPLES_PER_SEGMENT).bit_length() - 1)


def sample_entry(number: int, sampling_exponent: int) -> bytes:
    """The mark that article ``number`` leaves, 8 bytes; empty for most."""
    if number & ((1 << sampling_exponent) - 1):
        return b""
    return (number >> EXPONENT_BITS << EXPONENT_BITS | sampling_exponent).to_bytes(8, "little")


def decode_samples(samples: bytes | None) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Marked numbers (low bits cleared) and how many articles each of them stands for, both (n,)."""
    found = np.frombuffer(samples or b"", "<u8")
    rates = found & np.uint64((1 << EXPONENT_BITS) - 1)
    return found ^ rates, np.left_shift(1, rates.astype(np.int64))
