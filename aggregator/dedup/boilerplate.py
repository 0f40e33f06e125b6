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
)
from aggregator.dedup.policy import Policy
from aggregator.domain import Sketch

# Articles of the outlet, apart from the compared one, that must have a shingle.
MIN_ARTICLES = 3
# Texts at least as similar (0..1) are copies of one.
SAME_TEXT_RESEMBLANCE = 0.8

Mask = npt.NDArray[np.bool_]


def boilerplate_mask(subject: Sketch, others: Sequence[Sketch]) -> Mask:
    """Which sampled hashes of ``subject``, (n,) bool, are in at least ``MIN_ARTICLES`` of ``others``."""
    if len(others) < MIN_ARTICLES or not len(subject.sample):
        return np.zeros(len(subject.sample), np.bool_)
    own = subject.sample >> IGNORED_LOW_BITS
    joined = np.concatenate([np.unique(other.sample >> IGNORED_LOW_BITS) for other in others])
    joined.sort()
    counts = joined.searchsorted(own, side="right") - joined.searchsorted(own)
    mask: Mask = counts >= MIN_ARTICLES
    return mask


def distinct_texts(sketches: Sequence[Sketch]) -> list[Sketch]:
    """One of each group of nearly equal texts: what copies of one text share is not boilerplate."""
    distinct: list[Sketch] = []
    for sketch in sketches:
        if all(
            overlap.resemblance < SAME_TEXT_RESEMBLANCE for overlap in estimate_overlaps(sketch, distinct)
        ):
            distinct.append(sketch)
    return distinct


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
