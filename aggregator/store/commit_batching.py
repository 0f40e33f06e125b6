"""Batching of dependent commits: transactions that build on each other are merged into one.

Each article of a batch expects the segment version that the article before it produces
(``base.AdvanceVersion``). While the segment has the version that the first one expects, all their checks
hold. So they are sent as **one** transaction that checks only that version: a tenth of the keys and one
script call. If another process committed in between, the merged transaction changes nothing, and each
transaction is sent again separately with all its checks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from aggregator.store.base import AdvanceVersion, Put, Transaction, Write, next_version

SendTransactions = Callable[[Sequence[Transaction]], Awaitable[list[tuple[int, ...]]]]
# Calls without merging after one that failed: with constant writes by others, merging costs more than it
# saves.
BACKOFF_CALLS = 16


@dataclass(frozen=True, slots=True)
class CommitRun:
    """Transactions ``start`` to ``end`` (exclusive) of a list; ``is_merged``: as one, checked by version."""

    start: int
    end: int
    transaction: Transaction
    is_merged: bool


class CommitBatcher:
    """Commits lists of transactions in order through ``send``, which applies each one atomically."""

    def __init__(self, send: SendTransactions) -> None:
        self._send = send
        self._backoff_left = 0

    async def commit(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """As ``base.Store.commit_many``."""
        if self._backoff_left:
            self._backoff_left -= 1
            return await self._send(transactions)
        runs = split_into_runs(transactions)
        replies = await self._send([run.transaction for run in runs])
        results: list[tuple[int, ...]] = [()] * len(transactions)
        unmerged: list[int] = []
        for run, failed in zip(runs, replies, strict=True):
            if run.is_merged and failed:
                unmerged += range(run.start, run.end)
            elif failed:
                results[run.start] = failed
        if unmerged:
            self._backoff_left = BACKOFF_CALLS
            separate = [replace(transactions[i], version_guard=None) for i in unmerged]
            for i, failed in zip(unmerged, await self._send(separate), strict=True):
                results[i] = failed
        return results


def split_into_runs(transactions: Sequence[Transaction]) -> list[CommitRun]:
    """Cut a list into maximal runs: each transaction expects the version that the one before it produces."""
    runs: list[CommitRun] = []
    start = 0
    while start < len(transactions):
        first = transactions[start]
        if first.version_guard is None:
            runs.append(CommitRun(start, start + 1, first, False))
            start += 1
            continue
        key, version = first.version_guard.key, first.version_guard.value
        writes: list[Write] = []
        end = start
        while end < len(transactions):
            guard = transactions[end].version_guard
            if guard is None or guard.key != key or guard.value != version:
                break
            for write in transactions[end].writes:
                if isinstance(write, AdvanceVersion) and write.key == key:
                    version = next_version(version, write.token)
                else:
                    writes.append(write)
            end += 1
        if version is not None:
            writes.append(Put(key, version))
        runs.append(CommitRun(start, end, Transaction((first.version_guard,), tuple(writes)), True))
        start = end
    return runs
