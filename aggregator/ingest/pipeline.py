"""Batch pipeline: look up, decide, write records and commit, with prefetching across batches.

    look up         two reads per batch: ids, buckets and sketch keys; then the records of what was found
    decide          one article after another, each on a snapshot in which those before it are stored already
    write, commit   one write of the records, then the commits

While batch n is decided, n + 1 is looked up and n - 1 committed (docs/design/commit-protocol.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from aggregator.concurrency import Spawn, TaskHandle, YieldControl, spawn_task, yield_control
from aggregator.errors import CommitConflict
from aggregator.index import Index, Snapshot, keys, untrusted
from aggregator.index.bindings import bindings_under
from aggregator.index.candidates import mark_unlike
from aggregator.index.lookup import EMPTY_RESULT
from aggregator.ingest.commit import CommitPlan, Committer, PendingArticle
from aggregator.ingest.decide import Decider, LookedUpArticle
from aggregator.ingest.equal_texts import EqualTexts, equal_in_any_space
from aggregator.ingest.identity import id_within_source, is_foreign

# Attempts to commit a batch while other processes keep committing near-duplicates of its articles.
MAX_COMMIT_ATTEMPTS = 24
YIELD_EVERY_ARTICLES = 4
# Where other processes commit all the time, prefetching costs more than it saves: pause it for some batches.
BACKOFF_BATCHES = 8


async def continue_at_once() -> None:
    """Neither pause nor refuse."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How a pipeline yields to other tasks, and starts parallel coroutines (None: no prefetching)."""

    yield_control: YieldControl = continue_at_once
    spawn: Spawn | None = None


SEQUENTIAL = Execution()
ASYNCIO = Execution(yield_control, spawn_task)


@dataclass(slots=True)
class Batch:
    """Pending articles, no id twice, with all that was read for them; durations are for the whole batch.

    ``deferred``: those whose own id (``identity.py``) is that of another article of the batch.
    """

    pending: list[PendingArticle]
    lookups: list[LookedUpArticle]
    snapshot: Snapshot
    now_ms: int
    lookup_s: float
    deferred: list[PendingArticle] = field(default_factory=list)
    record_write_s: float = 0.0


@dataclass(slots=True)
class _InFlight:
    """At most one batch is prefetched and at most one is committed."""

    prefetch: TaskHandle[Batch] | None = None
    commit: TaskHandle[list[PendingArticle]] | None = None
    committing: Batch | None = None

    def cancel(self) -> None:
        for task in (self.prefetch, self.commit):
            if task is not None:
                task.cancel()

    def may_prefetch(self, batch: Sequence[PendingArticle], before: Sequence[PendingArticle]) -> bool:
        """Whether it shares no id, and no text in two languages, with those in flight: it depends on them."""
        in_flight = [*before, *(self.committing.pending if self.committing is not None else [])]
        ids = {id_ for item in in_flight for id_ in (item.article.id, item.posted_id)}
        langs = {item.analysis.text_key: item.analysis.lang for item in in_flight}
        if any(langs.get(i.analysis.text_key, i.analysis.lang) != i.analysis.lang for i in batch):
            return False
        return ids.isdisjoint(item.article.id for item in batch)


class BatchPipeline:
    """Processes batches until every article has its answer. ``clock`` returns ms since 1970 UTC."""

    def __init__(
        self,
        index: Index,
        decider: Decider,
        committer: Committer,
        equal_texts: EqualTexts,
        *,
        clock: Callable[[], int],
        execution: Execution,
    ) -> None:
        self._index = index
        self._decider = decider
        self._committer = committer
        self._equal_texts = equal_texts
        self._clock = clock
        self._yield_control = execution.yield_control
        self._spawn = execution.spawn
        self._backoff_batches_left = 0
        self.commit_retries = 0  # articles whose commit conflicted, for metrics

    async def process(self, pending: list[PendingArticle], dry_run: bool = False) -> None:
        """Decide and commit one batch, no id twice. Raises StoreUnavailable, CommitConflict."""
        for _ in range(MAX_COMMIT_ATTEMPTS):
            if not pending:
                return
            batch = await self._look_up(pending)
            pending = await self._commit(batch, await self._decide(batch, dry_run), dry_run)
        for item in pending:
            item.answer = CommitConflict(
                "Too many near-copies of this article were committed at the same moment; send it again."
            )

    async def process_all(self, batches: Sequence[list[PendingArticle]]) -> None:
        """Process the batches in order, overlapped if the execution can spawn; raises as ``process``."""
        if self._spawn is None or len(batches) < 2:
            for batch in batches:
                await self.process(batch)
            return
        in_flight = _InFlight()
        try:
            for i, batch in enumerate(batches):
                await self._process_overlapped(
                    in_flight, batch, batches[i + 1] if i + 1 < len(batches) else [], self._spawn
                )
            await self._finish_commit(in_flight)
        except BaseException:
            in_flight.cancel()
            raise

    async def _process_overlapped(
        self,
        in_flight: _InFlight,
        pending: list[PendingArticle],
        next_pending: list[PendingArticle],
        spawn: Spawn,
    ) -> None:
        """Decide a batch while the one before it commits and the next is looked up; start its commit."""
        batch = await self._take_prefetched(in_flight, pending)
        if (
            next_pending
            and not self._backoff_batches_left
            and in_flight.may_prefetch(next_pending, before=pending)
        ):
            in_flight.prefetch = spawn(self._look_up(next_pending))
            await self._yield_control()
        plans = None
        if in_flight.committing is None or batch.snapshot.catch_up(in_flight.committing.snapshot.applied):
            plans = await self._decide(batch)
        if await self._finish_commit(in_flight) and plans is not None:
            in_flight.commit, in_flight.committing = spawn(self._commit(batch, plans)), batch
            await self._yield_control()
            return
        # The store holds commits that the snapshots do not: start again, and stop prefetching for a while.
        if in_flight.prefetch is not None:
            in_flight.prefetch.cancel()
            in_flight.prefetch = None
        self._backoff_batches_left = BACKOFF_BATCHES
        await self.process(pending)

    async def _take_prefetched(self, in_flight: _InFlight, pending: list[PendingArticle]) -> Batch:
        if in_flight.prefetch is None:
            await self._finish_commit(in_flight)
            self._backoff_batches_left = max(0, self._backoff_batches_left - 1)
            return await self._look_up(pending)
        prefetch, in_flight.prefetch = in_flight.prefetch, None
        return await prefetch

    async def _finish_commit(self, in_flight: _InFlight) -> bool:
        """Wait until the committing batch has all its answers; False if some articles had to be retried."""
        if in_flight.commit is None:
            return True
        commit, in_flight.commit = in_flight.commit, None
        conflicted = await commit
        in_flight.committing = None
        await self.process(conflicted)
        return not conflicted

    async def _look_up(self, pending: list[PendingArticle], *, follows: bool = True) -> Batch:
        """Read ids, buckets and sketch keys, then the records of candidates, equal texts and known ids."""
        started = time.perf_counter()
        if follows:
            await self._equal_texts.unite(pending)
        now_ms = self._clock()
        lookups = [
            LookedUpArticle(self._index.lookup.probe(p.analysis, p.article.id), EMPTY_RESULT, [])
            for p in pending
        ]
        probes = [lookup.probe for lookup in lookups]
        snapshot = await self._index.lookup.read_snapshot(probes)
        equal = [equal_in_any_space(snapshot, probe) for probe in probes]
        wanted: dict[int, str] = {n: space for one in equal for n, space in one.items()}
        for n, part in enumerate(self._index.lookup.probe_groups(probes)):
            if n:
                await self._yield_control()
            found = self._index.lookup.evaluate_probes(snapshot, [probes[i] for i in part])
            for i, matches in zip(part, found, strict=True):
                lookups[i].matches, lookups[i].candidate_numbers = matches, matches.ranked_numbers
                wanted.update(dict.fromkeys(lookups[i].candidate_numbers, probes[i].space))
        for probe in probes:
            for known in bindings_under(snapshot, probe.binding_key):
                wanted.setdefault(known.binding.number, known.space)
        await self._index.lookup.load_into_snapshot(snapshot, wanted)
        if follows and await self._equal_texts.follow(snapshot, pending, probes, equal):
            return await self._look_up(pending, follows=False)
        deferred = await self._use_own_ids(pending, lookups, snapshot)
        ready = [i for i, item in enumerate(pending) if item not in deferred]
        pending, lookups = [pending[i] for i in ready], [lookups[i] for i in ready]
        policies = [item.profile.policy for item in pending]
        mark_unlike(snapshot, [(own.probe, own.candidate_numbers) for own in lookups], policies)
        return Batch(pending, lookups, snapshot, now_ms, time.perf_counter() - started, deferred)

    async def _use_own_ids(
        self, pending: Sequence[PendingArticle], lookups: Sequence[LookedUpArticle], snapshot: Snapshot
    ) -> list[PendingArticle]:
        """Move articles under the id of another source to an id within their own: two more reads.

        Returns those whose new id is that of another article of the batch.
        """
        lookup, deferred = self._index.lookup, list[PendingArticle]()
        taken = {item.article.id for item in pending}
        pairs = list(zip(pending, lookups, strict=True))
        while foreign := [pair for pair in pairs if is_foreign(pair[0], snapshot, pair[1].probe.binding_key)]:
            own_ids = [id_within_source(item.article.source, item.article.id) for item, _ in foreign]
            await lookup.read_bindings(snapshot, own_ids)
            pairs, wanted = [], dict[int, str]()
            for (item, found), id_ in zip(foreign, own_ids, strict=True):
                known = bindings_under(snapshot, keys.binding(id_))
                if id_ in taken:
                    deferred.append(item)
                    continue
                taken.add(id_)
                if item.record_written:  # by an earlier attempt, under the posted id
                    await self._index.records.delete({item.number: item.analysis.space})
                    item.number, item.record_written = 0, False
                item.posted_id, item.article = item.article.id, replace(item.article, id=id_)
                found.probe = lookup.move(snapshot, found.probe, id_)
                wanted.update((each.binding.number, each.space) for each in known)
                pairs.append((item, found))  # what is stored under that id may be foreign, too
            await lookup.load_into_snapshot(snapshot, wanted)
        return deferred

    async def _decide(self, batch: Batch, dry_run: bool = False) -> list[CommitPlan]:
        """Decide in order, each on a snapshot with the writes of those before; then write the records.

        A refused article (taken down) gets no plan.
        """
        started = time.perf_counter()
        snapshot, plans = batch.snapshot, []
        distrusted = untrusted.decode(snapshot.values.get(untrusted.KEY))
        for i, (item, lookup) in enumerate(zip(batch.pending, batch.lookups, strict=True)):
            if i and i % YIELD_EVERY_ARTICLES == 0:
                await self._yield_control()
            item.answer = await self._decider.refusal(item, lookup.probe, snapshot)
            if item.answer is not None:
                continue
            item.withheld = bool(distrusted) and untrusted.is_of(item.article, distrusted)
            plan = await self._decider.decide(item, lookup, snapshot, batch.now_ms, dry_run or item.withheld)
            if item.withheld:  # the answer alone
                plan = CommitPlan(item, plan.answer, None, None, 0, None, (), plan.duplicate_groups)
            if plan.transaction is not None and not dry_run:
                key = snapshot.stacks[lookup.probe.space].writable_tag + lookup.probe.binding_key
                snapshot.apply(plan.transaction, key, plan.record)
            plans.append(plan)
        decided = time.perf_counter()
        batch.lookup_s += decided - started
        if not dry_run:
            await self._committer.write_records(plans)
            batch.record_write_s += time.perf_counter() - decided
        return plans

    async def _commit(
        self, batch: Batch, plans: Sequence[CommitPlan], dry_run: bool = False
    ) -> list[PendingArticle]:
        """Set the answers; return the articles that conflicted."""
        started = time.perf_counter()
        conflicted = [] if dry_run else await self._committer.commit(plans, batch.now_ms)
        await self._committer.set_answers(
            [p for p in plans if p.pending not in conflicted] if conflicted else plans
        )
        commit_s = batch.record_write_s + time.perf_counter() - started
        for plan in plans:
            plan.answer.timings_ms["lookup"] = batch.lookup_s * 1000 / len(plans)
            plan.answer.timings_ms["record"] = commit_s * 1000 / len(plans)
        self.commit_retries += len(conflicted)
        return [*conflicted, *batch.deferred]
