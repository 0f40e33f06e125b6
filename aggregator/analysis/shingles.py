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
MAX_SKETCH_KEYS = 8
MAX_QUERY_KEYS = 16  # looked up; a long text must look further to meet the smallest hashes of a short one
FULL_SAMPLE_SHINGLES = 128  # up to here every shingle is kept ...
SAMPLING_INTERVAL = 8  # ... beyond it one in so many ...
MAX_SAMPLE_SIZE = 512  # ... up to here
# Hashes are compared without their lowest bits: the store keeps the others only (``store/samples.py``). In a text
# of 4,000 shingles four in a thousand of a stranger's then look like one of its own.
IGNORED_LOW_BITS = 12
_HASH_SEED = 0x5EED
_MAX_UINT32 = 0xFFFFFFFF
_LOW_BITS_SHIFT, _LOW_BITS_MASK = np.uint32(IGNORED_LOW_BITS), np.uint32((1 << IGNORED_LOW_BITS) - 1)
_POSITION_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5, 0xFF51AFD7ED558CCD],
    dtype=np.uint64,
)
_SPLITMIX_SHIFTS = np.array([30, 27, 31], np.uint64)
_SPLITMIX_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


@dataclass(frozen=True, slots=True)
class OverlapEstimate:
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
    return word_hash_uncached(word)


def word_hash_uncached(word: str) -> int:
    """``word_hash`` for who remembers it."""
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"), _HASH_SEED)


def shingle_hashes(words: Sequence[str], width: int = SHINGLE_WORDS) -> npt.NDArray[np.uint64]:
    """Sorted distinct hashes, (n,) uint64, of every run of ``width`` words.

    A text of fewer words is one shingle; no words give an empty array.
    """
    return combine_word_hashes(np.fromiter(map(word_hash, words), np.uint64, len(words)), width)


def combine_word_hashes(
    word_hashes: npt.NDArray[np.uint64], width: int = SHINGLE_WORDS
) -> npt.NDArray[np.uint64]:
    """``shingle_hashes`` from the ``word_hash`` of each word, (n,) uint64."""
    if not len(word_hashes):
        return word_hashes
    width = min(width, len(word_hashes))
    count = len(word_hashes) - width + 1
    mixed = np.zeros(count, np.uint64)
    for i in range(width):
        mixed += word_hashes[i : i + count] * _POSITION_MULTIPLIERS[i]
    found = _finalize(mixed)
    found.sort()  # np.unique gives the same and takes three times as long
    first = np.ones(count, np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    distinct: npt.NDArray[np.uint64] = found[first]
    return distinct


def _finalize(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64's finaliser, in place: neighbouring sums must not give neighbouring hashes."""
    values ^= values >> _SPLITMIX_SHIFTS[0]
    values *= _SPLITMIX_FACTORS[0]
    values ^= values >> _SPLITMIX_SHIFTS[1]
    values *= _SPLITMIX_FACTORS[1]
    values ^= values >> _SPLITMIX_SHIFTS[2]
    return values


def sample_size(shingles: int) -> int:
    """How many hashes an article of so many distinct shingles keeps."""
    if shingles <= FULL_SAMPLE_SHINGLES:
        return shingles
    return min(MAX_SAMPLE_SIZE, FULL_SAMPLE_SHINGLES + (shingles - FULL_SAMPLE_SHINGLES) // SAMPLING_INTERVAL)


def build_sketch(words: Sequence[str], width: int = SHINGLE_WORDS) -> Sketch:
    """The sample that is stored of a text's shingles; no words give an empty one."""
    return sketch_from_hashes(shingle_hashes(words, width))


def sketch_from_hashes(hashes: npt.NDArray[np.uint64]) -> Sketch:
    """The sketch of sorted distinct shingle hashes, (n,) uint64."""
    kept = hashes[: sample_size(len(hashes))]
    return Sketch(size=len(hashes), sample=(kept >> np.uint64(32)).astype(np.uint32))


def sketch_keys(sketch: Sketch) -> tuple[int, ...]:
    """The candidate keys of a sketch: its smallest hashes, uint32, at most ``BANDS``."""
    return tuple(dict.fromkeys(sketch.sample[:MAX_SKETCH_KEYS].tolist()))


def query_keys(sketch: Sketch) -> tuple[int, ...]:
    """The bands under which copies of a text are looked for, at most ``PROBED_BANDS``; its own come first."""
    return tuple(dict.fromkeys(sketch.sample[:MAX_QUERY_KEYS].tolist()))


def estimate_overlap(a: Sketch, b: Sketch) -> OverlapEstimate:
    """Estimate the overlap of two texts from their samples; exact when both are complete."""
    return estimate_overlaps(a, [b])[0]


def estimate_overlaps(
    a: Sketch, others: Sequence[Sketch], min_containment: float = 0.0
) -> list[OverlapEstimate]:
    """Estimate the overlap of one text with each of several; none is said of a containment below ``least``.

    Below the smaller of two samples' largest hashes both samples are complete, so the counts below
    it are an unbiased sample of the sets; what they share lies below it anyway.
    """
    overlaps = [_NO_OVERLAP] * len(others)
    if not len(a.sample) or not others:
        return overlaps
    joined = np.concatenate([b.sample for b in others])
    counts = np.array([len(b.sample) for b in others])
    ends = counts.cumsum()
    at = _positions_of_common(a.sample >> _LOW_BITS_SHIFT, joined >> _LOW_BITS_SHIFT)
    common = np.bincount(ends.searchsorted(at, side="right"), minlength=len(others))
    (some,) = common.nonzero()
    if not len(some):
        return overlaps
    # Below the smaller of two limits both samples are complete.
    sizes = np.array([b.size for b in others])
    limits = np.full(len(others), _sampling_threshold(a), np.uint32)
    cut = np.flatnonzero((counts < sizes) & (counts > 0))
    limits[cut] = np.minimum(limits[cut], joined[ends[cut] - 1] | _LOW_BITS_MASK)
    in_b = _count_per_run(joined <= limits.repeat(counts), ends)
    in_a = a.sample.searchsorted(limits, side="right")
    counted = np.where(a.size <= sizes, in_a, in_b)
    for i in some[common[some] / counted[some] >= min_containment].tolist():
        overlaps[i] = _estimate(int(common[i]), a.size, int(in_a[i]), others[i].size, int(in_b[i]))
    return overlaps


def _positions_of_common(
    sample: npt.NDArray[np.uint32], others: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int64]:
    """At which places of ``others`` stands something of ``own``, which is sorted and not empty? (k,), ascending.

    Few do, and a table of their lowest bits rules nearly all others out, at a quarter of the time of searching each.
    """
    possible = np.zeros(1 << 16, np.bool_)
    possible[sample.astype(np.uint16)] = True
    (at,) = possible[others.astype(np.uint16).astype(np.intp)].nonzero()
    sought = others[at]
    found: npt.NDArray[np.int64] = at[
        sample[np.minimum(sample.searchsorted(sought), len(sample) - 1)] == sought
    ]
    return found


def _count_per_run(flags: npt.NDArray[np.bool_], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many are set in each run of ``flags``, (n,), by where the runs end, (m,)."""
    upto = flags.nonzero()[0].searchsorted(ends)
    upto[1:] -= upto[:-1].copy()
    return upto


def _estimate(common: int, size_a: int, in_a: int, size_b: int, in_b: int) -> OverlapEstimate:
    """Of two texts of so many shingles, of which so many are compared; ``common`` > 0 are in both."""
    # Sampling noise can leave the smaller text with more hashes below the limit; never above 1.
    size, counted, larger = (size_a, in_a, size_b) if size_a <= size_b else (size_b, in_b, size_a)
    containment = min(1.0, common / counted)
    return OverlapEstimate(
        containment,
        common / (in_a + in_b - common),
        containment * size,
        size / larger,
        # Drawn without replacement, so that a complete sample has none.
        (containment * (1.0 - containment) / counted * max(0.0, 1.0 - counted / size)) ** 0.5,
    )


_NO_OVERLAP = OverlapEstimate(0.0, 0.0, 0.0)


def _sampling_threshold(sketch: Sketch) -> int:
    """The largest hash of an incomplete sample, with all that look like it."""
    return int(sketch.sample[-1] | _LOW_BITS_MASK) if len(sketch.sample) < sketch.size else _MAX_UINT32
