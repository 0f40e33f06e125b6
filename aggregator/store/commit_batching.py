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

from aggregator.store.base import Chain, Put, Transaction, Write, link

Send = Callable[[Sequence[Transaction]], Awaitable[list[tuple[int, ...]]]]
# Where others write all the time, trying costs more than it saves: so many calls after one that failed do not.
PATIENCE = 16


@dataclass(frozen=True, slots=True)
class Run:
    """Transactions ``start`` to ``end`` (exclusive) of a list as one; ``joined``: by their version alone."""

    start: int
    end: int
    whole: Transaction
    joined: bool


class Runs:
    """Commits lists of transactions in order through ``send``, which applies each of what it gets by itself."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._alone = 0

    async def commit(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """As ``base.Store.commit_many``."""
        if self._alone:
            self._alone -= 1
            return await self._send(transactions)
        made = runs(transactions)
        answers = await self._send([run.whole for run in made])
        results: list[tuple[int, ...]] = [()] * len(transactions)
        again: list[int] = []
        for run, failed in zip(made, answers, strict=True):
            if run.joined and failed:
                again += range(run.start, run.end)
            elif failed:
                results[run.start] = failed
        if again:
            self._alone = PATIENCE
            looked_at = [replace(transactions[i], given=None) for i in again]
            for i, failed in zip(again, await self._send(looked_at), strict=True):
                results[i] = failed
        return results


def runs(transactions: Sequence[Transaction]) -> list[Run]:
    """The list cut into runs: each as long as every one knows the version that the one before it makes."""
    made: list[Run] = []
    start = 0
    while start < len(transactions):
        first = transactions[start]
        if first.given is None:
            made.append(Run(start, start + 1, first, False))
            start += 1
            continue
        key, version = first.given.key, first.given.value
        writes: list[Write] = []
        end = start
        while end < len(transactions):
            given = transactions[end].given
            if given is None or given.key != key or given.value != version:
                break
            for write in transactions[end].writes:
                if isinstance(write, Chain) and write.key == key:
                    version = link(version, write.token)
                else:
                    writes.append(write)
            end += 1
        if version is not None:
            writes.append(Put(key, version))
        made.append(Run(start, end, Transaction((first.given,), tuple(writes)), True))
        start = end
    return made
