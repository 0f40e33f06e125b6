"""Many commits as few: those that build on one another are applied together while nobody came between.

The articles of a chunk know the version of their segment, each the one that the article before it makes
(``base.Chain``). While the segment has the version that the first one knows, all their checks hold. So
they are sent as **one** transaction that checks the version alone: a tenth of the keys and one script.
If a stranger's commit came between, nothing of it was applied, and each is sent by itself with all that
it looked at, as if this had not been tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from aggregator.store.base import AdvanceVersion, Put, Transaction, Write, next_version

SendTransactions = Callable[[Sequence[Transaction]], Awaitable[list[tuple[int, ...]]]]
# Where others write all the time, trying costs more than it saves: so many calls after one that failed do not.
BACKOFF_CALLS = 16


@dataclass(frozen=True, slots=True)
class CommitRun:
    """Transactions ``start`` to ``end`` (exclusive) of a list as one; ``joined``: by their version alone."""

    start: int
    end: int
    transaction: Transaction
    is_merged: bool


class CommitBatcher:
    """Commits lists of transactions in order through ``send``, which applies each of what it gets by itself."""

    def __init__(self, send: SendTransactions) -> None:
        self._send = send
        self._backoff_left = 0

    async def commit(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """As ``base.Store.commit_many``."""
        if self._backoff_left:
            self._backoff_left -= 1
            return await self._send(transactions)
        made = split_into_runs(transactions)
        answers = await self._send([run.transaction for run in made])
        results: list[tuple[int, ...]] = [()] * len(transactions)
        again: list[int] = []
        for run, failed in zip(made, answers, strict=True):
            if run.is_merged and failed:
                again += range(run.start, run.end)
            elif failed:
                results[run.start] = failed
        if again:
            self._backoff_left = BACKOFF_CALLS
            looked_at = [replace(transactions[i], version_guard=None) for i in again]
            for i, failed in zip(again, await self._send(looked_at), strict=True):
                results[i] = failed
        return results


def split_into_runs(transactions: Sequence[Transaction]) -> list[CommitRun]:
    """The list cut into runs: each as long as every one knows the version that the one before it makes."""
    made: list[CommitRun] = []
    start = 0
    while start < len(transactions):
        first = transactions[start]
        if first.version_guard is None:
            made.append(CommitRun(start, start + 1, first, False))
            start += 1
            continue
        key, version = first.version_guard.key, first.version_guard.value
        writes: list[Write] = []
        end = start
        while end < len(transactions):
            given = transactions[end].version_guard
            if given is None or given.key != key or given.value != version:
                break
            for write in transactions[end].writes:
                if isinstance(write, AdvanceVersion) and write.key == key:
                    version = next_version(version, write.token)
                else:
                    writes.append(write)
            end += 1
        if version is not None:
            writes.append(Put(key, version))
        made.append(CommitRun(start, end, Transaction((first.version_guard,), tuple(writes)), True))
        start = end
    return made
