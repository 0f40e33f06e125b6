"""Pauses between restarts, with a clock that the tests set."""

from __future__ import annotations

from itertools import pairwise

from aggregator.runtime.restart_backoff import FIRST_PAUSE_S, MAX_PAUSE_S, STABLE_S, RestartBackoff


class Clock:
    """Monotonic time in seconds."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_failed_starts_pause_twice_as_long_up_to_the_limit() -> None:
    """A replacement that is killed again and again does not use all of the processor."""
    backoff = RestartBackoff(Clock())
    pauses = [backoff.next_pause_s() for _ in range(12)]

    assert pauses[0] == FIRST_PAUSE_S and pauses[-1] == MAX_PAUSE_S
    assert all(later == min(2 * earlier, MAX_PAUSE_S) for earlier, later in pairwise(pauses))


def test_a_process_that_was_ready_for_long_is_restarted_at_once() -> None:
    """One that ends soon after it was ready is not; a long life ends the growth of the pauses."""
    clock = Clock()
    backoff = RestartBackoff(clock)
    backoff.on_ready()
    assert backoff.next_pause_s() == FIRST_PAUSE_S
    backoff.on_ready()
    clock.now_s += STABLE_S
    assert backoff.next_pause_s() == 0.0
    assert backoff.next_pause_s() == FIRST_PAUSE_S
