"""Do two stories share enough to be one? Two of their chief terms, or one that nobody uses otherwise.

A word bursts when two matters of one morning use it, and then speaks for joining them: two planes, one that
crashed and one that landed safely. So one shared term is no evidence, unless it is one that does not turn up
by chance: of a term that is in 0.05 documents of a usual window another matter holds one in 20 windows::

    terms of A     plane 1.2 usual    land 0.8    russia 2.0       another matter uses "plane" in 70 of 100 windows
    terms of B     plane 1.2 usual    crash 0.9   alps 0.01        one term in common: two stories
    terms of C     crash 0.9 usual    alps 0.01   minister 3.1     "crash" and "alps": B and C can be one
    terms of D     thornby 0.00       fire 1.0                     none of these in common with A, B or C
    terms of E     thornby 0.00       evacuation 0.3               a place nobody else names: D and E can be one

The terms looked at are the heaviest of both (``chiefs.heaviest``). How near the stories must be is another
question (``Stories.converged``, ``together.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aggregator.events.detection.baseline import NEGLIGIBLE_DOCUMENTS

MIN_COMMON_TERMS = 2


def terms_support_merge(
    terms: Iterable[str], other_terms: Iterable[str], expected: Callable[[str], float]
) -> bool:
    """Whether chief terms of two stories bear out that they are one. ``usual``: documents with a term per window."""
    known = set(other_terms)
    common = [term for term in terms if term in known]
    return len(common) >= MIN_COMMON_TERMS or any(expected(term) < NEGLIGIBLE_DOCUMENTS for term in common)
