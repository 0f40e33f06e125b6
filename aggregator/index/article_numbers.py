"""Article numbers: unique over all processes, and growing in the order of arrival within one.

Time leads, so that retention is one comparison; random bits follow, so that processes need not ask
each other (a number that is taken after all is noticed when its record is written). Within one process
the next number is always larger, whatever the clock does: equally good candidates are ranked by number,
and so the verdicts on one file are the same in every run.
"""

from __future__ import annotations

from random import getrandbits

from aggregator.domain import NUMBER_RANDOM_BITS, article_number_at

# Numbers of one millisecond step by up to 2**10: some 4,000 fit into it before they borrow from the next.
STEP_RANDOM_BITS = 10


class ArticleNumberGenerator:
    """Hands out article numbers; one per process."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now_ms: int) -> int:
        """A fresh number for an arrival at ``now_ms``, larger than all before it."""
        fresh = article_number_at(now_ms, getrandbits(NUMBER_RANDOM_BITS - 1))
        self._last = max(fresh, self._last + 1 + getrandbits(STEP_RANDOM_BITS))
        return self._last
