"""Sample of a segment's article numbers: estimates how many articles it has and when they arrived.

One article in 2**k is sampled: those whose number ends in k zero bits, which are random. A sample is 8
bytes, the number with its low bits replaced by k. It is appended by the commit of its article, so counting
costs no round trip; a segment of ten million articles has about five thousand samples.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

MIN_SAMPLES_PER_SEGMENT: Final = 4096  # of a full segment
EXPONENT_BITS: Final = 5  # low bits of a sample that hold k
NO_SAMPLING: Final = (1 << EXPONENT_BITS) - 1


def sampling_exponent_for(max_articles: int) -> int:
    """The k that gives a segment of ``max_articles`` at least ``MIN_SAMPLES_PER_SEGMENT`` samples."""
    return max(0, (max_articles // MIN_SAMPLES_PER_SEGMENT).bit_length() - 1)


def sample_entry(number: int, sampling_exponent: int) -> bytes:
    """The sample of article ``number``, 8 bytes; empty if it is not sampled."""
    if number & ((1 << sampling_exponent) - 1):
        return b""
    return (number >> EXPONENT_BITS << EXPONENT_BITS | sampling_exponent).to_bytes(8, "little")


def decode_samples(samples: bytes | None) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Sampled numbers (low bits cleared), and how many articles each of them represents; both (n,)."""
    found = np.frombuffer(samples or b"", "<u8")
    exponents = found & np.uint64((1 << EXPONENT_BITS) - 1)
    return found ^ exponents, np.left_shift(1, exponents.astype(np.int64))
