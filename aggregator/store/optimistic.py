"""Optimistic concurrency control: read, compute, commit conditionally, retry on a conflict."""

from __future__ import annotations

from collections.abc import Iterator

from aggregator.errors import CommitConflict

MAX_COMMIT_ATTEMPTS = 20


def commit_attempts(message: str, limit: int = MAX_COMMIT_ATTEMPTS) -> Iterator[int]:
    """Attempt numbers from 0; raises CommitConflict with ``message`` after ``limit`` attempts.

    The loop body returns when its commit succeeded::

        for _ in commit_attempts("The watches changed too often; try again."):
            value = await read()
            if not await store.commit(change_of(value)):
                return value

    The message is one sentence for the caller of the operation.
    """
    yield from range(limit)
    raise CommitConflict(message)
