"""A round takes some articles from look-up to answer; rounds of one list overlap.

    look up    one read for all of them: ids, buckets, bands; another: records of what was found
    decide     one after another, each as if those before it were stored already
    record     one write of the records, one of the commits

Of a list that is cut into groups, the next group is looked up while this one is decided, and decided while
this one is recorded: the server and this process work at the same time. What a look-up cannot have seen yet is
put into its snapshot (``Snapshot.catch_up``): the segment's version says which commits of ours it has seen, and
when it says that a stranger's came between, the group waits for the one before it and starts again. No group
commits before the one before it has its answers; and its commits check whatever they rely on, as always.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aggregator.concurrency.yielding import Begin, Begun, GiveWay
from aggregator.errors import Contention
from aggregator.index import ATTEMPTS, Index, Probe, Snapshot
from aggregator.ingest.commit import Recording
from aggregator.ingest.decide import Deciding
from aggregator.ingest.pending import Arrival, Step

STRIDE = 4  # articles between two chances for others
# Where others write all the time, looking ahead costs more than it saves: so many groups after one do not.
PATIENCE = 8


@dataclass(slots=True)
class Looked:
    """A group and all that was read for it."""

    pending: list[Arrival]
    probes: list[Probe]
    snapshot: Snapshot
    now_ms: int
    took_s: float
    wrote_s: float = 0.0


class Rounds:
    """``clock`` gives ms since 1970 UTC. ``begin`` starts work beside the caller; None: one thing after another."""

    def __init__(
        self,
        index: Index,
        deciding: Deciding,
        recording: Recording,
        *,
        clock: Callable[[], int],
        give_way: GiveWay,
        begin: Begin | None,
    ) -> None:
        self._index = index
        self._deciding = deciding
        self._recording = recording
        self._clock = clock
        self._give_way = give_way
        self._begin = begin
        self._alone = 0
        self.decided_again = 0  # commits that lost a race, for metrics

    async def settle(self, pending: list[Arrival], dry_run: bool = False) -> None:
        """Decide and commit until every article has its answer."""
        for _ in range(ATTEMPTS):
            if not pending:
                return
            looked = await self._look_up(pending)
            pending = await self._record(looked, await self._decide(looked, dry_run), dry_run)
        for one in pending:
            one.answer = Contention(
                "Too many near-copies of this article were committed at the same moment; send it again."
            )

    async def settle_all(self, groups: Sequence[list[Arrival]]) -> None:
        """Groups in order, no id twice in one. Raises what a round raises; then some may have no answer."""
        if self._begin is None or len(groups) < 2:
            for group in groups:
                await self.settle(group)
        else:
            await _Overlap(self, self._begin).settle(groups)

    async def _look_up(self, pending: list[Arrival]) -> Looked:
        """Read buckets, bands and ids, then the records of all candidates and of ids that are known already."""
        started = time.perf_counter()
        now_ms = self._clock()
        probes = [self._index.probe(p.analysis, p.article.id) for p in pending]
        snapshot = await self._index.snapshot(probes)
        wanted: dict[int, str] = {}
        for some in self._index.abreast(probes):
            await self._give_way()
            all_found = self._index.found(snapshot, [probes[i] for i in some], now_ms)
            for i, found in zip(some, all_found, strict=True):
                pending[i].found, pending[i].numbers = found, found.numbers
                wanted.update(dict.fromkeys(pending[i].numbers, probes[i].space))
        for probe in probes:
            for known in self._index.standing(snapshot, probe.binding, now_ms):
                wanted.setdefault(known.binding.number, known.space)
        await self._index.fetch(snapshot, wanted)
        return Looked(pending, probes, snapshot, now_ms, time.perf_counter() - started)

    async def _decide(self, looked: Looked, dry_run: bool = False) -> list[Step]:
        """One after another; the snapshot is then as the store will be."""
        started = time.perf_counter()
        snapshot, steps = looked.snapshot, []
        for i, (one, probe) in enumerate(zip(looked.pending, looked.probes, strict=True)):
            if i % STRIDE == 0:
                await self._give_way()
            step = await self._deciding.decide(one, probe, snapshot, looked.now_ms, dry_run)
            if dry_run:
                step.answer = replace(step.answer, stored=False)
            elif step.transaction is not None:
                snapshot.apply(step.transaction, snapshot.top(probe.space, probe.binding), step.record)
            steps.append(step)
        looked.took_s += time.perf_counter() - started
        return steps

    async def _record(self, looked: Looked, steps: Sequence[Step], dry_run: bool = False) -> list[Arrival]:
        """Returns those whose commit came too late."""
        if not dry_run:
            await self._write(looked, steps)
        return await self._commit(looked, steps, dry_run)

    async def _write(self, looked: Looked, steps: Sequence[Step]) -> None:
        """Their records: may be done before it is known whether they can be committed."""
        started = time.perf_counter()
        await self._recording.write(steps)
        looked.wrote_s += time.perf_counter() - started

    async def _commit(self, looked: Looked, steps: Sequence[Step], dry_run: bool = False) -> list[Arrival]:
        """Returns those whose commit came too late."""
        started = time.perf_counter()
        lost = [] if dry_run else await self._recording.commit(steps, looked.now_ms)
        await self._recording.answer([s for s in steps if s.pending not in lost] if lost else steps)
        took_s = looked.wrote_s + time.perf_counter() - started
        for step in steps:
            step.answer.timings_ms["lookup"] = looked.took_s * 1000 / len(steps)
            step.answer.timings_ms["record"] = took_s * 1000 / len(steps)
        self.decided_again += len(lost)
        return lost


class _Overlap:
    """One list of groups on its way: at most one is looked up ahead, at most one is being recorded."""

    def __init__(self, rounds: Rounds, begin: Begin) -> None:
        self._rounds = rounds
        self._begin = begin
        self._ahead: Begun[Looked] | None = None
        self._recording: Begun[list[Arrival]] | None = None
        self._before: Looked | None = None  # whose group is being recorded

    async def settle(self, groups: Sequence[list[Arrival]]) -> None:
        """All of them."""
        try:
            for i, group in enumerate(groups):
                await self._step(group, groups[i + 1] if i + 1 < len(groups) else [])
            await self._finish()
        except BaseException:
            for begun in (self._ahead, self._recording):
                if begun is not None:
                    begun.cancel()
            raise

    async def _step(self, group: list[Arrival], following: list[Arrival]) -> None:
        rounds = self._rounds
        looked = await self._looked_up(group)
        if following and not rounds._alone and self._is_apart(following, group):
            self._ahead = self._begin(rounds._look_up(following))
            await rounds._give_way()
        steps = None
        if self._before is None or looked.snapshot.catch_up(self._before.snapshot.applied):
            steps = await rounds._decide(looked)
            await rounds._write(looked, steps)
        if await self._finish() and steps is not None:
            self._recording, self._before = self._begin(rounds._commit(looked, steps)), looked
            await rounds._give_way()
            return
        if self._ahead is not None:  # what it read is older than what comes now
            self._ahead.cancel()
            self._ahead = None
        rounds._alone = PATIENCE
        await rounds.settle(group)

    async def _looked_up(self, group: list[Arrival]) -> Looked:
        if self._ahead is None:
            await self._finish()
            self._rounds._alone = max(0, self._rounds._alone - 1)
            return await self._rounds._look_up(group)
        begun, self._ahead = self._ahead, None
        return await begun

    async def _finish(self) -> bool:
        """The group under way has all its answers; False when some of it had to be decided again."""
        if self._recording is None:
            return True
        begun, self._recording = self._recording, None
        lost = await begun
        self._before = None
        await self._rounds.settle(lost)
        return not lost

    def _is_apart(self, following: list[Arrival], group: list[Arrival]) -> bool:
        """Whether it shares no id with what is under way: an id's second post is about what the first one stored."""
        before = self._before.pending if self._before is not None else []
        ids = {one.article.id for one in (*group, *before)}
        return ids.isdisjoint(one.article.id for one in following)
