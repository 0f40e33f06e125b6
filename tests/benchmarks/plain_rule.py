"""The duplicate rule on shared wording alone, fixed for the benchmarks of shingles.

It is the rule of the service before openings, outlets and times counted. Shingles are compared by it, so that
figures stay reproducible when ``dedup/verdict.py`` changes.
"""

from __future__ import annotations

from aggregator.analysis.shingles import OverlapEstimate

MIN_CONTAINMENT, STRONG_CONTAINMENT, MIN_SHARED, MIN_SIMILARITY = 0.2, 0.75, 60.0, 0.2
RELATED_BITS = 7


def is_copy(overlap: OverlapEstimate, similarity: float, scale: float = 1.0) -> bool:
    """Whether two texts with this term similarity share the wording of copies.

    Between 0.2 and 0.75 they must share 60 shingles, 100 if about equally long and 40 if one is much shorter;
    ``scale`` is a factor on these numbers.
    """
    ratio = overlap.size_ratio
    template = ratio >= 0.8 and overlap.containment < 0.85 and similarity < 0.85
    if overlap.containment >= STRONG_CONTAINMENT and not template:
        return True
    factor = 5 / 3 if ratio >= 0.8 else 2 / 3 if ratio < 0.4 else 1.0
    return (
        overlap.containment - 2 * overlap.error >= MIN_CONTAINMENT
        and overlap.shared >= MIN_SHARED * factor * scale
        and similarity >= MIN_SIMILARITY
    )
