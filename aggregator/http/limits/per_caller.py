"""Per-caller concurrency limit for long requests: batches and event streams.

Event streams stay open for hours, and a batch holds what it has prefetched. The slot is taken before the
first await, so that many simultaneous requests cannot all pass the check. One caller gets half of the slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import AggregatorError, Overloaded, TooManyStreams
from aggregator.events.broadcast import MAX_SUBSCRIBERS
from aggregator.http.limits.caller_usage import CallerUsage

MAX_OPEN_BATCHES = 64


class PerCallerLimit:
    """``slots`` in this process, half of them per caller: an API key, or an address without one.

    ``make_error(own)`` builds the error for a rejected request; ``own``: number of slots that the caller
    holds if it has reached its half, 0 if all slots are taken.
    """

    def __init__(self, slots: int, make_error: Callable[[int], AggregatorError]) -> None:
        self._slots = slots
        self._make_error = make_error
        self._usage = CallerUsage()

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """Held while such a request of this caller is open. Raises the error of ``make_error``."""
        if self._usage.total >= self._slots:
            raise self._make_error(0)
        if self._usage.of(caller) >= self._slots // 2:
            raise self._make_error(self._usage.of(caller))
        self._usage.add(caller)
        try:
            yield
        finally:
            self._usage.remove(caller)


def stream_limit() -> PerCallerLimit:
    """Limit on event streams."""
    return PerCallerLimit(MAX_SUBSCRIBERS, _too_many_streams_error)


def batch_limit() -> PerCallerLimit:
    """Limit on batches."""
    return PerCallerLimit(MAX_OPEN_BATCHES, _too_many_batches_error)


def _too_many_streams_error(own: int) -> TooManyStreams:
    if own:
        return TooManyStreams(
            f"This caller has {own} streams open here already; close one, or share one among its readers."
        )
    return TooManyStreams("No more streams can be opened at the moment; retry in a few seconds.")


def _too_many_batches_error(own: int) -> Overloaded:
    open_batches = f"{own} batches of this caller" if own else f"{MAX_OPEN_BATCHES} batches"
    return Overloaded(
        f"{open_batches} are open here already; retry in a second, or send more lines in each batch."
    )
