"""Log limits: repeated problems are logged once, floods at most once per interval."""

from __future__ import annotations

from aggregator.log_limits import MAX_CAUSES, ChangeFilter, LogThrottle


def test_a_repeated_problem_is_new_once() -> None:
    """The same text twice is logged once; another text, or the same after a success, again."""
    changes = ChangeFilter()

    assert [changes.is_new(text) for text in ("disk full", "disk full", "read-only")] == [True, False, True]
    assert changes.clear() and not changes.clear()
    assert changes.is_new("read-only")


def test_figures_are_no_new_problem() -> None:
    """A sentence that gives the time or a share differs at each attempt; an address makes another problem."""
    changes = ChangeFilter()
    texts = (
        "The clock says 2026-11-30T03:51:21Z, 61.2 days after the last use.",
        "The clock says 2026-11-30T03:51:23.5Z, 61.3 days after the last use.",
        "The store at 127.0.0.1:6379 is loading (3.1%).",
        "The store at 127.0.0.1:6379 is loading (99%).",
        "The store at 127.0.0.1:6380 is loading (99%).",
    )

    assert [changes.is_new(text) for text in texts] == [True, False, True, False, True]


def test_a_flood_is_admitted_once_per_interval_and_counted() -> None:
    """The next admitted event reports how many were suppressed before it."""
    now = [0.0]
    throttle = LogThrottle(10.0, clock=lambda: now[0])

    assert throttle.admit() == 0
    assert [throttle.admit() for _ in range(3)] == [None] * 3
    now[0] = 10.0
    assert throttle.admit() == 3
    assert throttle.admit() is None


def test_each_cause_has_its_own_interval() -> None:
    """A cause is admitted in the middle of the flood of another one; a bounded number is remembered."""
    throttle = LogThrottle(10.0, clock=lambda: 0.0)

    found = [
        throttle.admit(cause) for cause in ("full at 2026-11-30T03:51:21Z", "full at 2026-11-30T03:51:22Z")
    ]
    assert found == [0, None]
    assert throttle.admit("gone") == 0
    assert all(throttle.admit(f"other {number}") == 0 for number in range(MAX_CAUSES))
    assert len(throttle._states) == MAX_CAUSES
