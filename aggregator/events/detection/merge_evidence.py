"""Evidence for merging two stories: two common key terms, or one that is otherwise unused.

A word bursts when two topics of one morning use it, and would then connect them: two planes, one that crashed
and one that landed safely. One common term is therefore not evidence, unless it does not occur by chance: a
term with an expectation of 0.05 documents per window occurs in an unrelated topic once in 20 windows::

    expected documents per window of the key terms
    A     plane 1.2      land 0.8    russia 2.0      an unrelated topic uses "plane" in 70 of 100 windows
    B     plane 1.2      crash 0.9   alps 0.01       "plane" in common: A and B stay two stories
    C     crash 0.9      alps 0.01   minister 3.1    "crash" and "alps" in common: B and C may merge
    D     thornby 0.00   fire 1.0                    nothing in common with A, B or C
    E     thornby 0.00   evacuation 0.3              an otherwise unused place name: D and E may merge

The terms compared are ``key_terms.top_terms`` of both. How similar the stories must be in addition is decided
by ``StoryIndex.find_merge_candidate`` and ``fragments.find_merge_partner``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from aggregator.events.detection.baseline import NEGLIGIBLE_DOCUMENTS

MIN_COMMON_TERMS = 2


def terms_support_merge(
    terms: Iterable[str], other_terms: Iterable[str], expected: Callable[[str], float]
) -> bool:
    """Whether the key terms of two stories support a merge.

    ``expected``: documents per window that usually hold a term.
    """
    return common_terms_support_merge(set(terms).intersection(other_terms), expected)


def common_terms_support_merge(common: Collection[str], expected: Callable[[str], float]) -> bool:
    """Whether these terms, which two stories have in common, support a merge."""
    return len(common) >= MIN_COMMON_TERMS or any(expected(term) < NEGLIGIBLE_DOCUMENTS for term in common)
