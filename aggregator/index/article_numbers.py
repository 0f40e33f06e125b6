"""Article numbers: unique over all processes, and increasing with the time of arrival.

The time is in the high bits, so that retention is one comparison; random bits follow, so that processes need
no coordination (a collision is noticed when the record is written). Within one process each number is larger
than the last, even if the clock is slewed back: equally good candidates are ranked by number, so the verdicts
on one file are the same in every run. After a leap back by more than ``MAX_STEP_BACK_MS`` numbers follow the
clock again; else articles would be numbered, and kept, by the wrong time until the process ends.
"""

from __future__ import annotations

from random import getrandbits

from aggregator.domain import NUMBER_RANDOM_BITS, arrival_ms_of, article_number_at
from aggregator.time_units import HOUR_MS

# Numbers of one millisecond are up to 2**10 apart: about 4,000 fit before they run into the next one.
STEP_RANDOM_BITS = 10
MAX_STEP_BACK_MS = HOUR_MS


class ArticleNumberGenerator:
    """Generates article numbers; one per process."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now_ms: int) -> int:
        """A new number for an arrival at ``now_ms``, larger than all before unless the clock leapt back."""
        fresh = article_number_at(now_ms, getrandbits(NUMBER_RANDOM_BITS - 1))
        if arrival_ms_of(self._last) - now_ms > MAX_STEP_BACK_MS:
            self._last = 0
        self._last = max(fresh, self._last + 1 + getrandbits(STEP_RANDOM_BITS))
        return self._last
