"""Boilerplate: wording that articles of one outlet share although they are about different things. Pure.

Lists of other stories, navigation, disclaimers and author notes make two articles of a site look alike. What
is boilerplate is estimated from the candidates of the article that is decided: a shingle that it shares with
several articles of the outlet, none of which begins like it, tells nothing about any of them. Copies of one
text, which an outlet sends again, count as one article. No state is kept, so it works for a new outlet from
its fourth article on, and simultaneous commits need no further check.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import (
    IGNORED_LOW_BITS,
    OverlapEstimate,
    estimate_overlap,
    estimate_overlaps,
    positions_of_common,
)
from aggregator.dedup.policy import Policy
from aggregator.domain import Sketch

# Articles of the outlet, apart from the compared one, that must have a shingle.
MIN_ARTICLES = 3
# Texts at least as similar (0..1) are copies of one.
SAME_TEXT_RESEMBLANCE = 0.8
# common / (in_a + in_b - common) >= r means common >= r / (1 + r) * (in_a + in_b).
_MIN_COMMON_SHARE = SAME_TEXT_RESEMBLANCE / (1 + SAME_TEXT_RESEMBLANCE) - 1e-6
_IGNORED_LOW_BITS = np.uint32(IGNORED_LOW_BITS)

Mask = npt.NDArray[np.bool_]


def boilerplate_mask(subject: Sketch, others: Sequence[Sketch]) -> Mask:
    """Which sampled hashes of ``subject``, (n,) bool, are in at least ``MIN_ARTICLES`` of ``others``."""
    if len(others) < MIN_ARTICLES or not len(subject.sample):
        return np.zeros(len(subject.sample), np.bool_)
    own = subject.sample >> _IGNORED_LOW_BITS
    joined, owners = _joined_values(others)
    positions, positions_in_own = positions_of_common(own, joined)
    # Values of one sample ascend, so that equal ones follow each other; they count once.
    values, owners = joined[positions], owners[positions]
    is_first = np.ones(len(values), np.bool_)
    is_first[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
    counts = np.bincount(positions_in_own[is_first], minlength=len(own))
    mask: Mask = counts[own.searchsorted(own)] >= MIN_ARTICLES  # equal own values are counted at the first
    return mask


def distinct_texts(sketches: Sequence[Sketch]) -> list[Sketch]:
    """One of each group of nearly equal texts: what copies of one text share is not boilerplate."""
    if len(sketches) < 2:
        return list(sketches)
    possible = _may_be_nearly_equal(sketches)
    distinct: list[int] = []
    for i, sketch in enumerate(sketches):
        others = [sketches[j] for j in distinct if possible[i, j]]
        overlaps = estimate_overlaps(sketch, others, _MIN_COMMON_SHARE)
        if all(overlap.resemblance < SAME_TEXT_RESEMBLANCE for overlap in overlaps):
            distinct.append(i)
    return [sketches[i] for i in distinct]


def _may_be_nearly_equal(sketches: Sequence[Sketch]) -> npt.NDArray[np.bool_]:
    """Which pairs have enough sampled hashes in common for ``SAME_TEXT_RESEMBLANCE``, (n, n).

    Up to the common threshold of two samples one of them is complete. This excludes nearly all pairs in one
    pass over bit sets of the hashes that several samples have; ``estimate_overlaps`` takes one per sketch.
    """
    sizes = np.array([len(sketch.sample) for sketch in sketches])
    joined, owners = _joined_values(sketches)
    order = joined.argsort()
    is_equal = joined[order[1:]] == joined[order[:-1]]
    is_shared = np.zeros(len(joined), np.bool_)
    is_shared[1:] = is_equal
    is_shared[:-1] |= is_equal
    owners = owners[order][is_shared]
    _, bits = np.unique(joined[order][is_shared], return_inverse=True)
    words = int(bits.max(initial=0)) // 64 + 1
    sets = np.zeros((len(sketches), 64 * words), np.bool_)
    sets[owners, bits] = True
    # Two hashes of one sample may be equal in the compared part: each counts.
    repeats = np.bincount(owners, minlength=len(sketches)) - sets.sum(axis=1)
    packed = np.packbits(sets, axis=1).view(np.uint64)
    common = np.bitwise_count(packed[:, None] & packed).sum(axis=2, dtype=np.int64)
    common += repeats + repeats[:, None]
    possible: npt.NDArray[np.bool_] = common >= _MIN_COMMON_SHARE * np.minimum(sizes, sizes[:, None])
    return possible


def _joined_values(sketches: Sequence[Sketch]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The compared part of all sampled hashes, one sketch after the other, and the position of its sketch."""
    joined: npt.NDArray[np.uint32] = np.concatenate([sketch.sample for sketch in sketches])
    owners = np.arange(len(sketches), dtype=np.int64).repeat([len(sketch.sample) for sketch in sketches])
    return joined >> _IGNORED_LOW_BITS, owners


def without_hashes(sketch: Sketch, removed: npt.NDArray[np.uint32]) -> Sketch:
    """The sketch of the text without the shingles ``removed``, (m,) uint32 sampled hashes, ascending.

    The number of its shingles shrinks by the same share as its sample.
    """
    if not len(sketch.sample):
        return sketch
    kept = ~_is_in(sketch.sample, removed)
    size = round(sketch.size * int(kept.sum()) / len(sketch.sample))
    return Sketch(size, sketch.sample[kept], sketch.opening[kept])


def common_share(subject: Sketch, other: Sketch, mask: Mask) -> float:
    """Share, 0..1, of the common sampled hashes of two articles that ``mask`` of ``subject`` covers."""
    common = _is_in(subject.sample, other.sample)
    return float((common & mask).sum() / max(1, common.sum()))


class SourceBoilerplate:
    """Boilerplate of the sources of an article's candidates, computed for a source when it is first needed.

    ``candidates``: source and sketch of each; ``overlaps``: those with the article. A candidate that shares
    neither enough wording for the policy nor the opening is about something else.
    """

    def __init__(
        self,
        subject: Sketch,
        candidates: Sequence[tuple[str, Sketch]],
        overlaps: Sequence[OverlapEstimate],
        policy: Policy,
    ) -> None:
        self._floor = policy.containment_floor
        self._min_opening = policy.min_opening
        self._subject = subject
        self._candidates, self._overlaps = candidates, overlaps
        self._by_source: dict[str, tuple[Mask, Sketch]] = {}

    def remove_from(
        self, source: str, sketch: Sketch, overlap: OverlapEstimate
    ) -> tuple[OverlapEstimate, float]:
        """The overlap with a candidate without its source's boilerplate, and the share that this was.

        Unchanged if the source is unknown, or if the pair shares too little wording for the policy anyway.
        """
        if not source or overlap.containment < self._floor:
            return overlap, 0.0
        source = source.casefold()
        if source not in self._by_source:
            others = self._others_of(source)
            mask = boilerplate_mask(self._subject, others)
            if mask.any():
                mask = boilerplate_mask(self._subject, distinct_texts(others))
            self._by_source[source] = mask, without_hashes(self._subject, self._subject.sample[mask])
        mask, own_text = self._by_source[source]
        if not mask.any():
            return overlap, 0.0
        own = estimate_overlap(own_text, without_hashes(sketch, self._subject.sample[mask]))
        return own, common_share(self._subject, sketch, mask)

    def _others_of(self, source: str) -> list[Sketch]:
        """Candidates of ``source`` (lower case) that are about something else."""
        return [
            sketch
            for (name, sketch), overlap in zip(self._candidates, self._overlaps, strict=True)
            if (overlap.containment < self._floor or overlap.opening < self._min_opening)
            and name.casefold() == source
        ]


def _is_in(hashes: npt.NDArray[np.uint32], others: npt.NDArray[np.uint32]) -> Mask:
    """Which sampled hashes, (n,), are in ``others``, (m,), ascending; in 1/4 of the time of ``np.isin``."""
    if not len(others):
        return np.zeros(len(hashes), np.bool_)
    values, known = hashes >> IGNORED_LOW_BITS, others >> IGNORED_LOW_BITS
    found: Mask = known[np.minimum(known.searchsorted(values), len(known) - 1)] == values
    return found
