"""``commit_attempts``: bounded retries of an optimistic commit."""

from __future__ import annotations

import pytest

from aggregator.errors import CommitConflict
from aggregator.store.optimistic import commit_attempts


def test_attempts_are_numbered_until_the_loop_body_returns() -> None:
    """A body that succeeds leaves the loop, and nothing is raised."""
    seen = []
    for attempt in commit_attempts("Conflict.", limit=5):
        seen.append(attempt)
        if attempt == 2:
            break

    assert seen == [0, 1, 2]


def test_the_last_failed_attempt_raises_a_conflict() -> None:
    """After ``limit`` attempts the caller gets the given sentence."""
    attempts = []
    with pytest.raises(CommitConflict, match="changed too often"):
        for attempt in commit_attempts("It changed too often.", limit=3):
            attempts.append(attempt)

    assert attempts == [0, 1, 2]
