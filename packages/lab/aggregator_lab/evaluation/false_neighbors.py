"""False neighbors: pairs of articles within a radius whose wording is not that of a copy (below 0.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aggregator.analysis.shingles import estimate_overlaps
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis

RADII = (3, 7)


def neighbor_pairs(
    analyses: Sequence[Analysis], fingerprints: np.ndarray[Any, np.dtype[np.uint64]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the number of pairs within each of ``RADII``, and of the false ones among them.

    ``fingerprints``: (n,) uint64, those of the analyses or of another model for the same texts.
    """
    floor = Policy().containment_floor
    pairs, false_pairs = [0] * len(RADII), [0] * len(RADII)
    for at in range(1, len(analyses)):
        distance = np.bitwise_count(fingerprints[:at] ^ fingerprints[at])
        near = np.flatnonzero(distance <= max(RADII)).tolist()
        if not near:
            continue
        overlaps = estimate_overlaps(analyses[at].sketch, [analyses[other].sketch for other in near])
        for other, overlap in zip(near, overlaps, strict=True):
            for position, radius in enumerate(RADII):
                if distance[other] <= radius:
                    pairs[position] += 1
                    false_pairs[position] += overlap.containment < floor
    return tuple(pairs), tuple(false_pairs)
