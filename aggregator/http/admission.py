"""How many articles may be on their way at once? Beyond that, a request is refused before anything is done for it.

A service that takes in more than it can do answers everything too late: each waits for all before it, and
callers give up on what is then done for nobody. Who is refused at once can come again; who is taken in is
answered in a time that the limit bounds. A body that is still arriving holds no place, so slow senders
keep nobody out. Batches need no place: they are read no faster than they are answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aggregator.errors import OverLimit


class Overloaded(OverLimit):
    """More articles are on their way than this process answers in time."""


class Admission:
    """Places for articles under way in this process."""

    def __init__(self, places: int) -> None:
        self._places = places
        self.taken = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """Held while an article is decided. Raises Overloaded when all are taken."""
        if self.taken >= self._places:
            raise Overloaded(
                f"{self._places} articles are on their way here already (setting max_waiting); "
                "send this one again in a second, or many in one batch."
            )
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
