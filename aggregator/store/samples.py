"""How the sample of a sketch is packed: about two bytes a hash instead of four.

    bytes 0..31   the first eight hashes, little-endian uint32: they name the article's bands, whole
    from then on  gaps between hashes, in steps of 2**10, little-endian uint16; 0xFFFF is a gap of so many
                  steps after which another follows

Hashes are sorted, so that most gaps of a text of 100 words or more fit into 16 bits. What ``overlap.compare``
looks at of a hash, its upper 22 bits, is kept; the rest of those beyond the bands becomes zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aggregator.overlap import BANDS, COARSE_BITS

_MORE = 0xFFFF
_WHOLE = BANDS * 4


def packed(sample: npt.NDArray[np.uint32]) -> bytes:
    """A sorted sample, (n,) uint32, written down."""
    steps = sample[BANDS - 1 :] >> COARSE_BITS
    rest = steps[1:] - steps[:-1]
    whole = sample[:BANDS].astype("<u4").tobytes()
    if not len(rest) or rest.max() < _MORE:
        return whole + rest.astype("<u2").tobytes()
    long, rest = np.divmod(rest, _MORE)
    gaps = np.full(int(long.sum()) + len(rest), _MORE, "<u2")
    gaps[np.cumsum(long + 1) - 1] = rest
    return whole + gaps.tobytes()


def unpacked(data: bytes) -> npt.NDArray[np.uint32]:
    """The sample, (n,) uint32, whose hashes after the first eight have lost their lowest 10 bits.

    Raises ValueError when the bytes end within a number.
    """
    whole = np.frombuffer(data[:_WHOLE], "<u4")
    gaps = np.frombuffer(data[_WHOLE:], "<u2")
    if not len(gaps):
        return whole
    steps = (int(whole[-1]) >> COARSE_BITS) + np.cumsum(gaps, dtype=np.int64)
    return np.concatenate([whole, (steps[gaps != _MORE] << COARSE_BITS).astype(np.uint32)])
