"""Shingle sketches: samples of a text's shingles that estimate how much wording two texts share.

A **shingle** is a run of 3 words, in Chinese of the segmenter's words, in Vietnamese of 4 syllables, hashed
to 64 bits; in other scripts without spaces and in Korean a run of 7 characters, in Thai of 10
(docs/decisions/0030-shingle-units.md). Of an article's shingles only the smallest hashes are kept, a
*bottom-k sample* (Broder 1997): two articles sample the same hashes of their common wording. The smallest are
the **sketch keys**, under which stored articles are looked up; the whole sample estimates **containment**,
``|A and B| / min(|A|, |B|)``. The sample of a long text is larger: it may quote a short article.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from aggregator.domain import HEADLINE_MARK, OPENING_MARK, POSITIONS, Sketch

Scalar = TypeVar("Scalar", bound=np.integer[Any])
SHINGLE_WORDS = 3
SHINGLE_CHARACTERS = 7
# About three words: of Vietnamese 1.4 syllables, of Thai 3.3 characters (with their marks) each.
SHINGLE_WIDTHS = {"vi": 4, "th": 10}
# The opening of a text, by words or by characters of a script without spaces. Two reports of one event share
# wording further down; copies share the opening too.
OPENING_WORDS = 80
OPENING_CHARACTERS = 160
MAX_SKETCH_KEYS = 8
MAX_QUERY_KEYS = 16  # a long text needs more keys to include the smallest hashes of a short one
FULL_SAMPLE_SHINGLES = 128  # texts of up to 128 shingles are sampled completely,
SAMPLING_INTERVAL = 8  # of the shingles beyond that 1 in 8 is kept,
MAX_SAMPLE_SIZE = 512  # up to 512 hashes
# Hashes are compared without their lowest bits, which are stored only for the sketch keys
# (``index/codec/sketches.py``): 0.4 % of the shingles of an unrelated text match one of 4,000 by chance.
IGNORED_LOW_BITS = 12
_HASH_SEED = 0x5EED
MAX_UINT32 = 0xFFFFFFFF
_LOW_BITS_SHIFT, _LOW_BITS_MASK = np.uint32(IGNORED_LOW_BITS), np.uint32((1 << IGNORED_LOW_BITS) - 1)
_POSITION_MULTIPLIERS = np.array([
    0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5, 0xFF51AFD7ED558CCD,
    0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3, 0x1D8E4E27C47D124F,
], np.uint64)  # fmt: skip
_SPLITMIX_SHIFTS = np.array([30, 27, 31], np.uint64)
_SPLITMIX_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


@dataclass(frozen=True, slots=True)
class OverlapEstimate:
    """Overlap of two texts A and B, estimated from their samples.

    containment     estimate of |A and B| / min(|A|, |B|), 0..1
    resemblance     estimate of |A and B| / |A or B|, 0..1
    shared          estimate of |A and B|, in shingles
    size_ratio      min(|A|, |B|) / max(|A|, |B|), 0..1
    error           ``containment - error`` is its lower bound at one standard error; 0 for a complete sample
    opening         the larger share of an opening, A's or B's, that the other text contains, 0..1
    common_opening  share of the shorter opening that is in the other opening too, 0..1
    """

    containment: float
    resemblance: float
    shared: float
    size_ratio: float = 0.0
    error: float = 0.0
    opening: float = 0.0
    common_opening: float = 0.0


def word_hash(word: str) -> int:
    """Return the unsigned 64-bit hash of a word, from which shingle hashes are combined."""
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"), _HASH_SEED)


def decode_marks(data: bytes, sample_size: int) -> npt.NDArray[np.uint8]:
    """The marks of a sketch, (sample_size,) uint8. Raises ValueError if sizes differ."""
    if len(data) != sample_size:
        raise ValueError("the marks do not match the sample")
    return np.frombuffer(data, np.uint8)


def distinct(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The distinct values of ``values``, (n,) integers; ascending, (m,).

    By sorting: ``numpy.unique`` looks integers up in a hash table since numpy 2.3, which takes 17 s for 10^7
    article numbers instead of 0.2 s, and 3 times as long for the hashes of an article.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    found: npt.NDArray[Scalar] = ordered[is_first]
    return found


def hashes_in_order(word_hashes: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.uint64]:
    """Return the hash of each run of ``width`` words, of all words if there are fewer.

    With the finalizer of splitmix64: neighboring sums must not give neighboring hashes.
    """
    width = min(width, len(word_hashes))
    count = len(word_hashes) - width + 1 if width else 0
    mixed = np.zeros(count, np.uint64)
    for i in range(width):
        mixed += word_hashes[i : i + count] * _POSITION_MULTIPLIERS[i]
    mixed ^= mixed >> _SPLITMIX_SHIFTS[0]
    mixed *= _SPLITMIX_FACTORS[0]
    mixed ^= mixed >> _SPLITMIX_SHIFTS[1]
    mixed *= _SPLITMIX_FACTORS[1]
    mixed ^= mixed >> _SPLITMIX_SHIFTS[2]
    return mixed


def sample_size(shingles: int) -> int:
    """The number of hashes kept of an article with this number of distinct shingles."""
    if shingles <= FULL_SAMPLE_SHINGLES:
        return shingles
    return min(MAX_SAMPLE_SIZE, FULL_SAMPLE_SHINGLES + (shingles - FULL_SAMPLE_SHINGLES) // SAMPLING_INTERVAL)


def build_sketch(words: Sequence[str], width: int = SHINGLE_WORDS) -> Sketch:
    """Return the sketch of a text with these words; no words give an empty one."""
    return sketch_of_word_hashes(np.fromiter(map(word_hash, words), np.uint64, len(words)), width)


def sketch_of_word_hashes(
    word_hashes: npt.NDArray[np.uint64], width: int, in_headline: npt.NDArray[np.bool_] | None = None
) -> Sketch:
    """Return the sketch of a text from the ``word_hash`` of each word, (n,) uint64.

    ``in_headline``, (n,): the words of the text that are terms of the headline too.
    """
    opening_length = OPENING_WORDS if width < SHINGLE_CHARACTERS else OPENING_CHARACTERS
    hashes = hashes_in_order(word_hashes, width)
    width = min(width, len(word_hashes))
    if in_headline is not None:  # from here of shingles
        in_headline = np.logical_or.reduce([in_headline[i : i + len(hashes)] for i in range(max(1, width))])
    opening = min(opening_length, len(word_hashes)) - width + 1
    return sketch_from_hashes(distinct(hashes), hashes, opening, in_headline)


def sketch_from_hashes(
    hashes: npt.NDArray[np.uint64],
    in_order: npt.NDArray[np.uint64],
    opening: int = 0,
    in_headline: npt.NDArray[np.bool_] | None = None,
) -> Sketch:
    """Sketch of sorted distinct hashes, (n,) uint64, and all in order, (m,), the ``opening`` ones first."""
    kept = hashes[: sample_size(len(hashes))]
    positions = np.zeros(len(kept), np.int64)  # where each first occurs
    sampled = (in_order <= kept[-1:]).nonzero()[0][::-1]  # the first occurrence is written last
    positions[kept.searchsorted(in_order[sampled])] = sampled
    marks = (positions * POSITIONS // max(1, len(in_order))).astype(np.uint8)
    marks[positions < opening] |= OPENING_MARK
    if in_headline is not None:
        marks[in_headline[positions]] |= HEADLINE_MARK
    return Sketch(size=len(hashes), sample=(kept >> np.uint64(32)).astype(np.uint32), marks=marks)


def sketch_keys(sketch: Sketch, count: int = MAX_SKETCH_KEYS) -> tuple[int, ...]:
    """The ``count`` smallest hashes of an article, uint32: the keys under which it is indexed.

    Those to look up are ``MAX_QUERY_KEYS``, of which the sketch keys come first.
    """
    return tuple(dict.fromkeys(sketch.sample[:count].tolist()))


def estimate_overlap(a: Sketch, b: Sketch) -> OverlapEstimate:
    """Estimate the overlap of two texts from their samples; exact when both are complete."""
    return estimate_overlaps(a, [b])[0]


def estimate_overlaps(
    a: Sketch, others: Sequence[Sketch], min_containment: float = 0.0
) -> list[OverlapEstimate]:
    """Estimate the overlap of one text with each of several; none where it is below ``min_containment``.

    Up to the smaller of two samples' largest hashes (the threshold) both samples are complete: an unbiased
    sample of both sets. The plain form is ``naive_overlap`` in the tests; this one joins all samples.
    """
    overlaps = [NO_OVERLAP] * len(others)
    if not len(a.sample) or not others:
        return overlaps
    samples = [b.sample for b in others]
    joined, counts = np.concatenate(samples), np.array(list(map(len, samples)))
    ends = counts.cumsum()
    sample, shifted = a.sample >> _LOW_BITS_SHIFT, joined >> _LOW_BITS_SHIFT
    at = np.minimum(sample.searchsorted(shifted), len(sample) - 1)
    (positions,) = (sample[at] == shifted).nonzero()
    positions_in_a = at[positions]
    owners = ends.searchsorted(positions, side="right")
    common = np.bincount(owners, minlength=len(others))
    (overlapping,) = common.nonzero()
    if not len(overlapping):
        return overlaps
    sizes = np.array([b.size for b in others])
    # The largest hash up to which a sample is complete; hashes equal to it without low bits count.
    threshold = int(a.sample[-1] | _LOW_BITS_MASK) if len(a.sample) < a.size else MAX_UINT32
    thresholds = np.full(len(others), threshold, np.uint32)
    incomplete = np.flatnonzero((counts < sizes) & (counts > 0))
    thresholds[incomplete] = np.minimum(thresholds[incomplete], joined[ends[incomplete] - 1] | _LOW_BITS_MASK)
    in_a = a.sample.searchsorted(thresholds, side="right")
    up_to_threshold = joined <= thresholds.repeat(counts)
    in_b = _count_per_run(up_to_threshold, ends)
    counted = np.where(a.size <= sizes, in_a, in_b)
    estimated = overlapping[common[overlapping] / counted[overlapping] >= min_containment].tolist()
    if not estimated:
        return overlaps
    # Openings: how many hashes of each are up to the threshold, and how many of these are common.
    joined_opening = np.concatenate([b.marks for b in others]) & OPENING_MARK != 0
    opening_in_b = _count_per_run(up_to_threshold & joined_opening, ends)
    own_opening = a.opening
    opening_in_a = np.concatenate([[0], own_opening.cumsum()])[in_a]
    common_opening_b = np.bincount(owners[joined_opening[positions]], minlength=len(others))
    common_opening_a = np.bincount(owners[own_opening[positions_in_a]], minlength=len(others))
    opening = np.maximum(
        common_opening_a / np.maximum(opening_in_a, 1), common_opening_b / np.maximum(opening_in_b, 1)
    )
    in_both_openings = owners[joined_opening[positions] & own_opening[positions_in_a]]
    common_opening = np.bincount(in_both_openings, minlength=len(others)) / np.maximum(
        np.minimum(opening_in_a, opening_in_b), 1
    )
    for i in estimated:
        openings = min(1.0, float(opening[i])), min(1.0, float(common_opening[i]))
        overlaps[i] = _estimate(int(common[i]), a.size, int(in_a[i]), others[i].size, int(in_b[i]), openings)
    return overlaps


def _count_per_run(flags: npt.NDArray[np.bool_], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The number of set ``flags``, (n,), in each of consecutive runs that end at ``ends``, (m,)."""
    upto = flags.nonzero()[0].searchsorted(ends)
    upto[1:] -= upto[:-1].copy()
    return upto


def _estimate(
    common: int, size_a: int, in_a: int, size_b: int, in_b: int, openings: tuple[float, float]
) -> OverlapEstimate:
    """Estimate for texts of these sizes, of which ``in_a`` and ``in_b`` hashes are up to the threshold."""
    # Collisions of the shortened hashes can make ``common`` larger than ``counted``: at most 1.
    size, counted, larger = (size_a, in_a, size_b) if size_a <= size_b else (size_b, in_b, size_a)
    containment = min(1.0, common / counted)
    # The distance to the lower bound at one standard error (Wilson 1927); 0 for a complete sample.
    z2 = max(0.0, 1.0 - counted / size)
    spread = math.sqrt(z2 * (containment * (1.0 - containment) + z2 / (4 * counted)) / counted)
    error = containment - (containment + z2 / (2 * counted) - spread) / (1 + z2 / counted)
    return OverlapEstimate(
        containment, common / (in_a + in_b - common), containment * size, size / larger, error, *openings
    )


NO_OVERLAP = OverlapEstimate(0.0, 0.0, 0.0)
