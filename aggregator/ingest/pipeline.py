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

from aggregator.concurrency.yielding import Spawn, TaskHandle, YieldControl
from aggregator.errors import CommitConflict
from aggregator.index import MAX_COMMIT_ATTEMPTS, Index, Probe, Snapshot
from aggregator.ingest.commit import Committer
from aggregator.ingest.decide import Decider
from aggregator.ingest.pending import CommitPlan, PendingArticle

YIELD_EVERY_ARTICLES = 4  # articles between two chances for others
# Where others write all the time, looking ahead costs more than it saves: so many groups after one do not.
BACKOFF_BATCHES = 8


@dataclass(slots=True)
class LookupResult:
    """A group and all that was read for it."""

    pending: list[PendingArticle]
    probes: list[Probe]
    snapshot: Snapshot
    now_ms: int
    lookup_and_decide_s: float
    record_write_s: float = 0.0


class BatchPipeline:
    """``clock`` gives ms since 1970 UTC. ``begin`` starts work beside the caller; None: one thing after another."""

    def __init__(
        self,
        index: Index,
        decider: Decider,
        committer: Committer,
        *,
        clock: Callable[[], int],
        yield_control: YieldControl,
        spawn: Spawn | None,
    ) -> None:
        self._index = index
        self._decider = decider
        self._committer = committer
        self._clock = clock
        self._yield_control = yield_control
        self._spawn = spawn
        self._backoff_batches_left = 0
        self.commit_retries = 0  # commits that lost a race, for metrics

    async def process(self, pending: list[PendingArticle], dry_run: bool = False) -> None:
        """Decide and commit until every article has its answer."""
        for _ in range(MAX_COMMIT_ATTEMPTS):
            if not pending:
                return
            looked = await self._look_up(pending)
            pending = await self._write_and_commit(looked, await self._decide(looked, dry_run), dry_run)
        for one in pending:
            one.answer = CommitConflict(
                "Too many near-copies of this article were committed at the same moment; send it again."
            )

    async def process_all(self, groups: Sequence[list[PendingArticle]]) -> None:
        """Groups in order, no id twice in one. Raises what a round raises; then some may have no answer."""
        if self._spawn is None or len(groups) < 2:
            for group in groups:
                await self.process(group)
        else:
            await _PipelinedRun(self, self._spawn).process(groups)

    async def _look_up(self, pending: list[PendingArticle]) -> LookupResult:
        """Read buckets, bands and ids, then the records of all candidates and of ids that are known already."""
        started = time.perf_counter()
        now_ms = self._clock()
        probes = [self._index.probe(p.analysis, p.article.id) for p in pending]
        snapshot = await self._index.read_snapshot(probes)
        wanted: dict[int, str] = {}
        for some in self._index.probe_groups(probes):
            await self._yield_control()
            all_found = self._index.evaluate_probes(snapshot, [probes[i] for i in some], now_ms)
            for i, found in zip(some, all_found, strict=True):
                pending[i].matches, pending[i].candidate_numbers = found, found.ranked_numbers
                wanted.update(dict.fromkeys(pending[i].candidate_numbers, probes[i].space))
        for probe in probes:
            for known in self._index.live_bindings(snapshot, probe.binding_key, now_ms):
                wanted.setdefault(known.binding.number, known.space)
        await self._index.load_into_snapshot(snapshot, wanted)
        return LookupResult(pending, probes, snapshot, now_ms, time.perf_counter() - started)

    async def _decide(self, lookup: LookupResult, dry_run: bool = False) -> list[CommitPlan]:
        """One after another; the snapshot is then as the store will be."""
        started = time.perf_counter()
        snapshot, steps = lookup.snapshot, []
        for i, (one, probe) in enumerate(zip(lookup.pending, lookup.probes, strict=True)):
            if i % YIELD_EVERY_ARTICLES == 0:
                await self._yield_control()
            step = await self._decider.decide(one, probe, snapshot, lookup.now_ms, dry_run)
            if dry_run:
                step.answer = replace(step.answer, stored=False)
            elif step.transaction is not None:
                snapshot.apply(
                    step.transaction, snapshot.writable_key(probe.space, probe.binding_key), step.record
                )
            steps.append(step)
        lookup.lookup_and_decide_s += time.perf_counter() - started
        return steps

    async def _write_and_commit(
        self, lookup: LookupResult, plans: Sequence[CommitPlan], dry_run: bool = False
    ) -> list[PendingArticle]:
        """Returns those whose commit came too late."""
        if not dry_run:
            await self._write_records(lookup, plans)
        return await self._commit(lookup, plans, dry_run)

    async def _write_records(self, lookup: LookupResult, plans: Sequence[CommitPlan]) -> None:
        """Their records: may be done before it is known whether they can be committed."""
        started = time.perf_counter()
        await self._committer.write_records(plans)
        lookup.record_write_s += time.perf_counter() - started

    async def _commit(
        self, lookup: LookupResult, plans: Sequence[CommitPlan], dry_run: bool = False
    ) -> list[PendingArticle]:
        """Returns those whose commit came too late."""
        started = time.perf_counter()
        lost = [] if dry_run else await self._committer.commit(plans, lookup.now_ms)
        await self._committer.set_answers([s for s in plans if s.pending not in lost] if lost else plans)
        took_s = lookup.record_write_s + time.perf_counter() - started
        for step in plans:
            step.answer.timings_ms["lookup"] = lookup.lookup_and_decide_s * 1000 / len(plans)
            step.answer.timings_ms["record"] = took_s * 1000 / len(plans)
        self.commit_retries += len(lost)
        return lost


class _PipelinedRun:
    """One list of groups on its way: at most one is looked up ahead, at most one is being recorded."""

    def __init__(self, pipeline: BatchPipeline, spawn: Spawn) -> None:
        self._pipeline = pipeline
        self._spawn = spawn
        self._next_lookup: TaskHandle[LookupResult] | None = None
        self._commit_task: TaskHandle[list[PendingArticle]] | None = None
        self._committing: LookupResult | None = None  # whose group is being recorded

    async def process(self, groups: Sequence[list[PendingArticle]]) -> None:
        """All of them."""
        try:
            for i, group in enumerate(groups):
                await self._process_group(group, groups[i + 1] if i + 1 < len(groups) else [])
            await self._finish_commit()
        except BaseException:
            for begun in (self._next_lookup, self._commit_task):
                if begun is not None:
                    begun.cancel()
            raise

    async def _process_group(self, group: list[PendingArticle], next_group: list[PendingArticle]) -> None:
        rounds = self._pipeline
        looked = await self._take_lookup(group)
        if next_group and not rounds._backoff_batches_left and self._shares_no_id(next_group, group):
            self._next_lookup = self._spawn(rounds._look_up(next_group))
            await rounds._yield_control()
        steps = None
        if self._committing is None or looked.snapshot.catch_up(self._committing.snapshot.applied):
            steps = await rounds._decide(looked)
            await rounds._write_records(looked, steps)
        if await self._finish_commit() and steps is not None:
            self._commit_task, self._committing = self._spawn(rounds._commit(looked, steps)), looked
            await rounds._yield_control()
            return
        if self._next_lookup is not None:  # what it read is older than what comes now
            self._next_lookup.cancel()
            self._next_lookup = None
        rounds._backoff_batches_left = BACKOFF_BATCHES
        await rounds.process(group)

    async def _take_lookup(self, group: list[PendingArticle]) -> LookupResult:
        if self._next_lookup is None:
            await self._finish_commit()
            self._pipeline._backoff_batches_left = max(0, self._pipeline._backoff_batches_left - 1)
            return await self._pipeline._look_up(group)
        begun, self._next_lookup = self._next_lookup, None
        return await begun

    async def _finish_commit(self) -> bool:
        """The group under way has all its answers; False when some of it had to be decided again."""
        if self._commit_task is None:
            return True
        begun, self._commit_task = self._commit_task, None
        lost = await begun
        self._committing = None
        await self._pipeline.process(lost)
        return not lost

    def _shares_no_id(self, next_group: list[PendingArticle], group: list[PendingArticle]) -> bool:
        """Whether it shares no id with what is under way: an id's second post is about what the first one stored."""
        before = self._committing.pending if self._committing is not None else []
        ids = {one.article.id for one in (*group, *before)}
        return ids.isdisjoint(one.article.id for one in next_group)
