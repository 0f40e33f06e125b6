"""How many long requests of a kind may be open here, and how many of them one caller's?

Streams of events stay open for hours; a batch holds what it has read ahead. A place is taken before anything is waited
for, so that many who come at the same moment are not all let in. One key gets half, so that nobody keeps all others out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import AggregatorError
from aggregator.events.broadcast import MAX_LISTENERS
from aggregator.http.limits.load_shedding import Overloaded
from aggregator.http.middleware.errors import TooManyStreams

MAX_BATCHES = 64


class Shares:
    """``places`` in this process; where nobody is asked for a key all are one caller, who gets all of them.

    ``refusal`` makes the error for whoever finds none, of how many are the caller's own, if that is why.
    """

    def __init__(self, places: int, refusal: Callable[[int], AggregatorError]) -> None:
        self._places = places
        self._refusal = refusal
        self._of: Counter[str] = Counter()

    @contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Held while such a request of this caller is open. Raises what ``refusal`` gives."""
        if self._of.total() >= self._places:
            raise self._refusal(0)
        if caller and self._of[caller] >= self._places // 2:
            raise self._refusal(self._of[caller])
        self._of[caller] += 1
        try:
            yield
        finally:
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]


def of_streams() -> Shares:
    """For streams of events."""
    return Shares(MAX_LISTENERS, _no_stream)


def of_batches() -> Shares:
    """For batches."""
    return Shares(MAX_BATCHES, _no_batch)


def _no_stream(own: int) -> TooManyStreams:
    if own:
        return TooManyStreams(
            f"This key has {own} streams open here already; close one, or listen once and pass on."
        )
    return TooManyStreams("No more streams can be opened here just now; try again in a few seconds.")


def _no_batch(own: int) -> Overloaded:
    whose = f"{own} batches of this key" if own else f"{MAX_BATCHES} batches"
    return Overloaded(
        f"{whose} are open here already; send this one again in a second, or more lines in each."
    )
