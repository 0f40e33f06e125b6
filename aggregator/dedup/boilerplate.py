"""Boilerplate: wording that articles of one outlet share although they are about different things. Pure.

Lists of other stories, navigation, disclaimers and author notes make two articles of a site look alike. What
is boilerplate is estimated from the candidates of the article that is decided: a shingle that it shares with
several articles of the outlet, none of which begins like it, is not evidence of a copy. Copies of one
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
    estimate_overlaps,
    positions_of_common,
)
from aggregator.analysis.text.normalization import source_key
from aggregator.dedup.copy_rule import is_same_outlet
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
    for i, is_possible in enumerate(possible.tolist()):
        others = [sketches[j] for j in distinct if is_possible[j]]
        overlaps = estimate_overlaps(sketches[i], others, _MIN_COMMON_SHARE)
        if all(overlap.resemblance < SAME_TEXT_RESEMBLANCE for overlap in overlaps):
            distinct.append(i)
    return [sketches[i] for i in distinct]


def _may_be_nearly_equal(sketches: Sequence[Sketch]) -> npt.NDArray[np.bool_]:
    """Which pairs have enough sampled hashes in common for ``SAME_TEXT_RESEMBLANCE``, (n, n).

    One pass over bit sets excludes nearly all pairs; ``estimate_overlaps`` takes one per sketch.
    """
    sizes = np.array([len(sketch.sample) for sketch in sketches])
    joined, owners = _joined_values(sketches)
    order = joined.argsort()
    values, owners = joined[order], owners[order]
    is_equal = values[1:] == values[:-1]
    is_shared = np.zeros(len(values), np.bool_)
    is_shared[1:] = is_equal
    is_shared[:-1] |= is_equal
    values, owners = values[is_shared], owners[is_shared]
    bits = np.zeros(len(values), np.int64)
    np.cumsum(values[1:] != values[:-1], out=bits[1:])
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


def without_hashes(sketches: Sequence[Sketch], removed: npt.NDArray[np.uint32]) -> list[Sketch]:
    """The sketches without the shingles ``removed``, (m,) uint32 ascending; sizes shrink with the samples."""
    if not len(removed) or not sketches:
        return list(sketches)
    joined, _ = _joined_values(sketches)
    kept = np.ones(len(joined), np.bool_)
    kept[positions_of_common(removed >> _IGNORED_LOW_BITS, joined)[0]] = False
    ends = np.cumsum([len(sketch.sample) for sketch in sketches])
    return [
        Sketch(round(sketch.size * int(own.sum()) / len(own)), sketch.sample[own], sketch.marks[own])
        if len(own)
        else sketch
        for sketch, own in zip(sketches, np.split(kept, ends[:-1]), strict=True)
    ]


def common_shares(subject: Sketch, others: Sequence[Sketch], mask: Mask) -> list[float]:
    """Share, 0..1, of the hashes in common with each of ``others`` that ``mask``, of ``subject``, covers."""
    if not len(subject.sample) or not others:
        return [0.0] * len(others)
    own = subject.sample >> _IGNORED_LOW_BITS
    joined, owners = _joined_values(others)
    positions, positions_in_own = positions_of_common(own, joined)
    is_common = np.zeros((len(others), len(own)), np.bool_)
    is_common[owners[positions], positions_in_own] = True
    is_common = is_common[:, own.searchsorted(own)]  # equal own values are found at the first
    shares: list[float] = ((is_common & mask).sum(axis=1) / np.maximum(is_common.sum(axis=1), 1)).tolist()
    return shares


class SourceBoilerplate:
    """Boilerplate of the sources of an article's candidates, computed when a source first needs it.

    ``candidates``: source and sketch of each; ``overlaps``: theirs with the article. A candidate that shares
    neither enough wording for the policy nor the opening is about something else.
    """

    def __init__(
        self,
        subject: Sketch,
        subject_source: str,
        candidates: Sequence[tuple[str, Sketch]],
        overlaps: Sequence[OverlapEstimate],
        policy: Policy,
    ) -> None:
        self._policy = policy
        self._subject, self._subject_source = subject, subject_source
        self._sources = [source_key(source) for source, _ in candidates]
        self._sketches = [sketch for _, sketch in candidates]
        self._overlaps = overlaps
        self._by_source: dict[str, dict[int, tuple[OverlapEstimate, float]]] = {}

    def remove_from(self, candidate: int) -> tuple[OverlapEstimate, float]:
        """The overlap with the candidate at a position without boilerplate, and the share that this was."""
        source, overlap = self._sources[candidate], self._overlaps[candidate]
        if not source or not self._may_match(candidate):
            return overlap, 0.0
        if source not in self._by_source:
            self._by_source[source] = self._remove_from_source(source)
        return self._by_source[source].get(candidate, (overlap, 0.0))

    def _remove_from_source(self, source: str) -> dict[int, tuple[OverlapEstimate, float]]:
        of_source = [i for i, name in enumerate(self._sources) if name == source]
        others = [self._sketches[i] for i in of_source if self._is_about_something_else(self._overlaps[i])]
        mask = boilerplate_mask(self._subject, others)
        if mask.any():
            mask = boilerplate_mask(self._subject, distinct_texts(others))
        if not mask.any():
            return {}
        matching = [i for i in of_source if self._may_match(i)]
        sketches = [self._sketches[i] for i in matching]
        subject, *texts = without_hashes([self._subject, *sketches], self._subject.sample[mask])
        overlaps = estimate_overlaps(subject, texts)
        shares = common_shares(self._subject, sketches, mask)
        return dict(zip(matching, zip(overlaps, shares, strict=True), strict=True))

    def _may_match(self, candidate: int) -> bool:
        same_outlet = is_same_outlet(self._subject_source, self._sources[candidate])
        return self._policy.may_match(self._overlaps[candidate], same_outlet=same_outlet)

    def _is_about_something_else(self, overlap: OverlapEstimate) -> bool:
        return (
            overlap.containment < self._policy.containment_floor or overlap.opening < self._policy.min_opening
        )
