"""Which shingles and terms a further article of the same kind would have. Pure.

A generated article is a copy of a real one with most of its shingles renamed, so that it shares no wording
with the real one beyond what two unrelated articles share. A collection of n articles is renewed in
**rounds**; in each round a shingle is drawn anew from a pool of ``period`` shingles, of which one is the real
one. A shingle that many real articles have is a set phrase: its period is 1, it stays. One that only a few
have (``RENAMED_BELOW``) is rare or an accident of the sample. Frequencies of shingles follow Zipf's law with
an exponent near 1, so the probability of a shingle that a text of the sample has, but no other, is spread
evenly over its logarithm: its period is ``longest ** u`` with a u that is uniform in 0..1.

Within a round all occurrences of a shingle are renamed alike, so near-copies stay near-copies of each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

RENAMED_BELOW = 3
# Both chosen by the entries read with articles generated from 1/2 and from 1/8 of the real ones, against
# those with all real ones (``scripts/bench scale --check`` prints the former).
LONGEST_PERIOD = 1e5
# The upper bits stay: whether a shingle is among the smallest of its article, thus a sketch key, hardly
# changes.
RENAMED_BITS_OF_SHINGLES = 24


def periods(
    hashes: Hashes, frequency: npt.NDArray[np.int64], longest: float = LONGEST_PERIOD
) -> npt.NDArray[np.float64]:
    """The number of rounds in which each hash, (n,), is expected once per real occurrence; at least 1."""
    uniform = mix(hashes ^ np.uint64(0x9E3779B97F4A7C15)) / 2.0**64
    return np.where(frequency >= RENAMED_BELOW, 1.0, longest**uniform)


def masks(hashes: Hashes, own_periods: npt.NDArray[np.float64], round_: int) -> Hashes:
    """What to combine (XOR) each hash with in a round; 0 where it stays, everywhere in round 0."""
    if round_ == 0:
        return np.zeros_like(hashes)
    drawn = mix(hashes + mix(np.array([round_], np.uint64)))
    drawn = (drawn % np.maximum(own_periods, 1.0).astype(np.uint64)).astype(np.uint64)
    return np.where(drawn == 0, np.uint64(0), mix(hashes ^ mix(drawn)))


def renamer(hashes: Hashes, bits: int, longest: float = LONGEST_PERIOD) -> Callable[[Hashes, int], Hashes]:
    """A function of hashes and round that renames their lowest ``bits`` bits.

    ``hashes``: each as often as different articles have it.
    """
    known, frequency = np.unique(hashes, return_counts=True)
    own_periods, low = periods(known, frequency, longest), np.uint64((1 << bits) - 1)

    def rename(given: Hashes, round_: int) -> Hashes:
        at = np.minimum(known.searchsorted(given), len(known) - 1)
        return given ^ masks(given, own_periods[at], round_) & low

    return rename


def mix(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: a bijection that looks random."""
    with np.errstate(over="ignore"):
        mixed = values + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return mixed ^ mixed >> np.uint64(31)
