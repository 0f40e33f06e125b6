"""Log limits: repeated problems are logged once, floods at most once per interval."""

from __future__ import annotations

from aggregator.log_limits import ChangeFilter, LogThrottle


def test_a_repeated_problem_is_new_once() -> None:
    """The same text twice is logged once; another text, or the same after a success, again."""
    changes = ChangeFilter()

    assert [changes.is_new(text) for text in ("disk full", "disk full", "read-only")] == [True, False, True]
    assert changes.clear() and not changes.clear()
    assert changes.is_new("read-only")


def test_a_flood_is_admitted_once_per_interval_and_counted() -> None:
    """The next admitted event reports how many were suppressed before it."""
    now = [0.0]
    throttle = LogThrottle(10.0, clock=lambda: now[0])

    assert throttle.admit() == 0
    assert [throttle.admit() for _ in range(3)] == [None] * 3
    now[0] = 10.0
    assert throttle.admit() == 3
    assert throttle.admit() is None
