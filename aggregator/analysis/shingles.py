"""How much wording do two articles share?

An article becomes the set of its word 3-shingles (5 characters where words are not separated by
spaces), each hashed to 64 bits. Only the smallest hashes are kept, a *bottom-k sample* (Broder
1997): whether a shingle is sampled depends on its hash alone, so two articles sample their common
wording alike and the samples can be compared instead of the texts.

One sample serves twice. Its first few hashes are the article's *bands*: stored articles with a
band in common become candidates even when the fingerprint moved (truncation, boilerplate). The
whole of it estimates *containment*, |A and B| / min(|A|, |B|).

Long texts keep more of their hashes, but ever more sparingly, so that a short article quoted by a
long one still has something to compare, while an average article stays small in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import xxhash

from aggregator.domain import Sketch

SHINGLE_WORDS = 3
SHINGLE_CHARACTERS = 5
BANDS = 8
PROBED_BANDS = 16  # looked up; a long text must look further to meet the smallest hashes of a short one
SAMPLE_FULL = 128  # up to here every shingle is kept ...
SAMPLE_SHARE = 8  # ... beyond it one in so many ...
SAMPLE_MAX = 512  # ... up to here
# Hashes are compared without their lowest bits: the store keeps the others only (``store/samples.py``). In a text
# of 4,000 shingles four in a thousand of a stranger's then look like one of its own.
COARSE_BITS = 12
_SEED = 0x5EED
_ALL = 0xFFFFFFFF
_COARSE, _FINE = np.uint32(COARSE_BITS), np.uint32((1 << COARSE_BITS) - 1)
_ODD = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5, 0xFF51AFD7ED558CCD],
    dtype=np.uint64,
)
_SHIFTS = np.array([30, 27, 31], np.uint64)
_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two samples say of their texts.

    containment  estimate of |A and B| / min(|A|, |B|), 0..1
    resemblance  estimate of |A and B| / |A or B|, 0..1
    shared       estimate of |A and B|, in shingles
    size_ratio   min(|A|, |B|) / max(|A|, |B|), 0..1
    error        standard error of ``containment``; 0 when the sample of the shorter text is complete
    """

    containment: float
    resemblance: float
    shared: float
    size_ratio: float = 0.0
    error: float = 0.0


@lru_cache(maxsize=1 << 17)
def word_hash(word: str) -> int:
    """The unsigned 64-bit hash of a word, of which those of its shingles are made."""
    return fresh_word_hash(word)


def fresh_word_hash(word: str) -> int:
    """``word_hash`` for who remembers it."""
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"), _SEED)


def shingle_hashes(words: Sequence[str], width: int = SHINGLE_WORDS) -> npt.NDArray[np.uint64]:
    """Sorted distinct hashes, (n,) uint64, of every run of ``width`` words.

    A text of fewer words is one shingle; no words give an empty array.
    """
    return hashes_of_runs(np.fromiter(map(word_hash, words), np.uint64, len(words)), width)


def hashes_of_runs(hashes: npt.NDArray[np.uint64], width: int = SHINGLE_WORDS) -> npt.NDArray[np.uint64]:
    """``shingle_hashes`` from the ``word_hash`` of each word, (n,) uint64."""
    if not len(hashes):
        return hashes
    width = min(width, len(hashes))
    count = len(hashes) - width + 1
    mixed = np.zeros(count, np.uint64)
    for i in range(width):
        mixed += hashes[i : i + count] * _ODD[i]
    found = _finalise(mixed)
    found.sort()  # np.unique gives the same and takes three times as long
    first = np.ones(count, np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    distinct: npt.NDArray[np.uint64] = found[first]
    return distinct


def _finalise(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64's finaliser, in place: neighbouring sums must not give neighbouring hashes."""
    values ^= values >> _SHIFTS[0]
    values *= _FACTORS[0]
    values ^= values >> _SHIFTS[1]
    values *= _FACTORS[1]
    values ^= values >> _SHIFTS[2]
    return values


def sample_size(shingles: int) -> int:
    """How many hashes an article of so many distinct shingles keeps."""
    if shingles <= SAMPLE_FULL:
        return shingles
    return min(SAMPLE_MAX, SAMPLE_FULL + (shingles - SAMPLE_FULL) // SAMPLE_SHARE)


def sketch(words: Sequence[str], width: int = SHINGLE_WORDS) -> Sketch:
    """The sample that is stored of a text's shingles; no words give an empty one."""
    return sketch_of_hashes(shingle_hashes(words, width))


def sketch_of_hashes(hashes: npt.NDArray[np.uint64]) -> Sketch:
    """The sketch of sorted distinct shingle hashes, (n,) uint64."""
    kept = hashes[: sample_size(len(hashes))]
    return Sketch(size=len(hashes), sample=(kept >> np.uint64(32)).astype(np.uint32))


def bands(of: Sketch) -> tuple[int, ...]:
    """The candidate keys of a sketch: its smallest hashes, uint32, at most ``BANDS``."""
    return tuple(dict.fromkeys(of.sample[:BANDS].tolist()))


def probed_bands(of: Sketch) -> tuple[int, ...]:
    """The bands under which copies of a text are looked for, at most ``PROBED_BANDS``; its own come first."""
    return tuple(dict.fromkeys(of.sample[:PROBED_BANDS].tolist()))


def compare(a: Sketch, b: Sketch) -> Overlap:
    """Estimate the overlap of two texts from their samples; exact when both are complete."""
    return compare_many(a, [b])[0]


def compare_many(a: Sketch, others: Sequence[Sketch], least: float = 0.0) -> list[Overlap]:
    """Estimate the overlap of one text with each of several; none is said of a containment below ``least``.

    Below the smaller of two samples' largest hashes both samples are complete, so the counts below
    it are an unbiased sample of the sets; what they share lies below it anyway.
    """
    overlaps = [_NONE] * len(others)
    if not len(a.sample) or not others:
        return overlaps
    joined = np.concatenate([b.sample for b in others])
    counts = np.array([len(b.sample) for b in others])
    ends = counts.cumsum()
    at = _found_in(a.sample >> _COARSE, joined >> _COARSE)
    common = np.bincount(ends.searchsorted(at, side="right"), minlength=len(others))
    (some,) = common.nonzero()
    if not len(some):
        return overlaps
    # Below the smaller of two limits both samples are complete.
    sizes = np.array([b.size for b in others])
    limits = np.full(len(others), _limit(a), np.uint32)
    cut = np.flatnonzero((counts < sizes) & (counts > 0))
    limits[cut] = np.minimum(limits[cut], joined[ends[cut] - 1] | _FINE)
    in_b = _sums(joined <= limits.repeat(counts), ends)
    in_a = a.sample.searchsorted(limits, side="right")
    counted = np.where(a.size <= sizes, in_a, in_b)
    for i in some[common[some] / counted[some] >= least].tolist():
        overlaps[i] = _overlap(int(common[i]), a.size, int(in_a[i]), others[i].size, int(in_b[i]))
    return overlaps


def _found_in(own: npt.NDArray[np.uint32], others: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """At which places of ``others`` stands something of ``own``, which is sorted and not empty? (k,), ascending.

    Few do, and a table of their lowest bits rules nearly all others out, at a quarter of the time of searching each.
    """
    possible = np.zeros(1 << 16, np.bool_)
    possible[own.astype(np.uint16)] = True
    (at,) = possible[others.astype(np.uint16).astype(np.intp)].nonzero()
    sought = others[at]
    found: npt.NDArray[np.int64] = at[own[np.minimum(own.searchsorted(sought), len(own) - 1)] == sought]
    return found


def _sums(flags: npt.NDArray[np.bool_], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many are set in each run of ``flags``, (n,), by where the runs end, (m,)."""
    upto = flags.nonzero()[0].searchsorted(ends)
    upto[1:] -= upto[:-1].copy()
    return upto


def _overlap(common: int, size_a: int, in_a: int, size_b: int, in_b: int) -> Overlap:
    """Of two texts of so many shingles, of which so many are compared; ``common`` > 0 are in both."""
    # Sampling noise can leave the smaller text with more hashes below the limit; never above 1.
    size, counted, larger = (size_a, in_a, size_b) if size_a <= size_b else (size_b, in_b, size_a)
    containment = min(1.0, common / counted)
    return Overlap(
        containment,
        common / (in_a + in_b - common),
        containment * size,
        size / larger,
        # Drawn without replacement, so that a complete sample has none.
        (containment * (1.0 - containment) / counted * max(0.0, 1.0 - counted / size)) ** 0.5,
    )


_NONE = Overlap(0.0, 0.0, 0.0)


def _limit(of: Sketch) -> int:
    """The largest hash of an incomplete sample, with all that look like it."""
    return int(of.sample[-1] | _FINE) if len(of.sample) < of.size else _ALL
