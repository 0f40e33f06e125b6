"""How many long requests of a kind may be open here, and how many of them one caller's?

Streams of events stay open for hours; a batch holds what it has read ahead. A place is taken before anything is waited
for, so that many who come at the same moment are not all let in. One key gets half, so that nobody keeps all others out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import AggregatorError
from aggregator.events.broadcast import MAX_SUBSCRIBERS
from aggregator.http.limits.load_shedding import Overloaded
from aggregator.http.middleware.errors import TooManyStreams

MAX_OPEN_BATCHES = 64


class PerCallerLimit:
    """``places`` in this process; where nobody is asked for a key all are one caller, who gets all of them.

    ``refusal`` makes the error for whoever finds none, of how many are the caller's own, if that is why.
    """

    def __init__(self, slots: int, make_error: Callable[[int], AggregatorError]) -> None:
        self._slots = slots
        self._make_error = make_error
        self._open_per_caller: Counter[str] = Counter()

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """Held while such a request of this caller is open. Raises what ``refusal`` gives."""
        if self._open_per_caller.total() >= self._slots:
            raise self._make_error(0)
        if caller and self._open_per_caller[caller] >= self._slots // 2:
            raise self._make_error(self._open_per_caller[caller])
        self._open_per_caller[caller] += 1
        try:
            yield
        finally:
            self._open_per_caller[caller] -= 1
            if not self._open_per_caller[caller]:
                del self._open_per_caller[caller]


def stream_limit() -> PerCallerLimit:
    """For streams of events."""
    return PerCallerLimit(MAX_SUBSCRIBERS, _too_many_streams_error)


def batch_limit() -> PerCallerLimit:
    """For batches."""
    return PerCallerLimit(MAX_OPEN_BATCHES, _too_many_batches_error)


def _too_many_streams_error(own: int) -> TooManyStreams:
    if own:
        return TooManyStreams(
            f"This key has {own} streams open here already; close one, or listen once and pass on."
        )
    return TooManyStreams("No more streams can be opened here just now; try again in a few seconds.")


def _too_many_batches_error(own: int) -> Overloaded:
    whose = f"{own} batches of this key" if own else f"{MAX_OPEN_BATCHES} batches"
    return Overloaded(
        f"{whose} are open here already; send this one again in a second, or more lines in each."
    )
