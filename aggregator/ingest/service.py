"""Ingest service: checks and stores articles, one by one or in batches. Start reading here.

    analyze   text to fingerprint and shingle sketch                     analysis.analyzer, pure
    look up   one read: the id, 68 buckets, the sketch keys              ingest.pipeline, index.lookup
    load      one read: records of the candidates                        index.lookup
    decide    new, related or duplicate                                  ingest.decide, dedup.verdict (pure)
    commit    the record, then one atomic commit                         ingest.commit, index.transactions

A commit succeeds only if nothing that its decision relied on has changed (docs/design/commit-protocol.md).
Interactive articles that arrive while a batch is processed form the next one; no caller interrupts a write.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeVar

from aggregator.analysis.source import spelled_as, with_source
from aggregator.concurrency import current_caller
from aggregator.dedup.grouping import is_stored_copy
from aggregator.dedup.policy import PolicyProfiles
from aggregator.domain import Analysis, AnalyzeMany, Answer, Article
from aggregator.errors import AggregatorError, InvalidInput, NotFound
from aggregator.index import Index, keys
from aggregator.index.bindings import BindingSnapshot, bindings_under
from aggregator.index.takedowns import refused_text
from aggregator.ingest.commit import Committer, EventIdsOf, PendingArticle
from aggregator.ingest.decide import Decider
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.equal_texts import EqualTexts
from aggregator.ingest.load_control import LoadControl, throttled_slice
from aggregator.ingest.pipeline import SEQUENTIAL, BatchPipeline, Execution, continue_at_once

BATCH_ARTICLES = 32  # larger ones delay interactive articles more and save little
ANALYSIS_SLICE_ARTICLES = 16  # analysis batch while interactive articles arrive (one worker of the pool)
# Articles committed before the throttle is consulted again (about 0.3 s of work).
MAX_UNTHROTTLED_ARTICLES = 1024
E = TypeVar("E", bound=Exception)
# Called with the group's first article number, the id and the time in ms; removes the article from events.
OnDelete = Callable[[int, str, int], Awaitable[None]]


class IngestService:
    """Checks and inserts articles, and deletes them.

    ``clock``: ms since 1970 UTC. ``store_texts``: keep each text, compressed, for explanations and
    reindexing. ``event_ids_of`` looks up the events named in answers, ``on_delete`` removes a deleted article
    from its event; None: no events. ``load_control``: precedence of interactive articles over bulk work;
    None: no difference. ``before_write`` raises StoreUnavailable while nothing may be stored.
    """

    def __init__(
        self,
        index: Index,
        analyze_many: AnalyzeMany,
        policies: PolicyProfiles,
        *,
        clock: Callable[[], int],
        store_texts: bool = False,
        event_ids_of: EventIdsOf | None = None,
        on_delete: OnDelete | None = None,
        dual_writer: DualWriter | None = None,
        load_control: LoadControl | None = None,
        before_write: Callable[[], Awaitable[None]] = continue_at_once,
        execution: Execution = SEQUENTIAL,
        batch_articles: int = BATCH_ARTICLES,
    ) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self._clock = clock
        self._profiles = policies
        self._on_delete = on_delete
        self._dual_writer = dual_writer
        self._load_control = load_control
        self._before_write = before_write
        self._throttle = load_control.throttle if load_control is not None else None
        self._batch_articles = batch_articles
        decider = Decider(index, dual_writer)
        committer = Committer(index, dual_writer, event_ids_of, store_texts=store_texts)
        parts = index, decider, committer, EqualTexts(index, analyze_many)
        self._interactive_pipeline = BatchPipeline(*parts, clock=clock, execution=execution)
        if load_control is not None:
            execution = replace(execution, yield_control=load_control.gate.yield_control)
        self._bulk_pipeline = BatchPipeline(*parts, clock=clock, execution=execution)
        self._batcher = MicroBatcher(self._interactive_pipeline.process, batch_articles)

    @property
    def commit_retries(self) -> int:
        """Articles whose commit conflicted and was retried, for metrics."""
        return self._bulk_pipeline.commit_retries + self._interactive_pipeline.commit_retries

    async def submit(
        self, article: Article, *, dry_run: bool = False, sources: tuple[str, ...] = ()
    ) -> Answer:
        """Check and insert one article; with ``dry_run`` only check.

        ``sources``: those of the caller, () for all. Raises InvalidInput for an unknown policy profile,
        errors of the analysis, Forbidden for an id of another source, CommitConflict, StoreUnavailable.
        """
        if dry_run or self._withholds:
            (answer,) = await self.submit_many([article], dry_run=True, sources=sources)
        else:
            if self._load_control is not None:
                self._load_control.activity.record_arrival()
            article = with_source(article)
            profile = self._profiles.select(article.policy, article.source)
            started = time.perf_counter()
            (analysis,) = await self._analyze_many([article])
            if isinstance(analysis, AggregatorError):
                raise analysis
            analyze_ms = (time.perf_counter() - started) * 1000
            pending = PendingArticle(0, article, analysis, sources=sources, profile=profile)
            await self._before_write()
            # Not during the analysis, which may take long in another process.
            with nullcontext() if self._load_control is None else self._load_control.gate.high_priority():
                await self._batcher.submit(pending)
            answer = self._finished_answer(pending, analyze_ms)
        if isinstance(answer, AggregatorError):
            raise answer
        return answer

    async def submit_many(
        self, articles: Sequence[Article], *, dry_run: bool = False, sources: tuple[str, ...] = ()
    ) -> list[Answer | AggregatorError]:
        """Answers equal to those of submitting one by one; errors among them. Raises StoreUnavailable."""
        started = time.perf_counter()
        analyzed = await self.analyze_many(articles)
        analyze_ms = (time.perf_counter() - started) * 1000 / max(1, len(articles))
        return await self.process_analyzed(articles, analyzed, analyze_ms, dry_run=dry_run, sources=sources)

    async def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """First half of ``submit_many``; callers may analyze the next articles while these are committed."""
        analyzed: list[Analysis | AggregatorError] = []
        while len(analyzed) < len(articles):
            rest = articles[len(analyzed) :]
            async with throttled_slice(self._throttle, len(rest), ANALYSIS_SLICE_ARTICLES) as count:
                analyzed += await self._analyze_many(rest[:count])
        return analyzed

    async def process_analyzed(
        self,
        articles: Sequence[Article],
        analyzed: Sequence[Analysis | E],
        analyze_ms: float = 0.0,
        *,
        dry_run: bool = False,
        group_size: int = 0,
        sources: tuple[str, ...] = (),
    ) -> list[Answer | AggregatorError | E]:
        """Second half of ``submit_many``; an error in ``analyzed`` is returned as the answer.

        ``analyze_ms``: of the first half, per article; ``group_size``: articles per batch (0: the usual
        limit).
        """
        results: list[Answer | AggregatorError | E] = list(analyzed)  # type: ignore[arg-type]
        pending: list[PendingArticle] = []
        for position, (article, analysis) in enumerate(
            zip(map(with_source, articles), analyzed, strict=True)
        ):
            if not isinstance(analysis, Analysis):
                continue
            try:
                profile = self._profiles.select(article.policy, article.source)
            except InvalidInput as error:
                results[position] = error
                continue
            pending.append(PendingArticle(position, article, analysis, sources=sources, profile=profile))
        done, dry_run = 0, dry_run or self._withholds
        while done < len(pending):
            async with throttled_slice(
                self._throttle, min(MAX_UNTHROTTLED_ARTICLES, len(pending) - done)
            ) as count:
                size = group_size or self._batch_articles
                batches = list(split_batches(pending[done : done + count], size))
                if dry_run:
                    for batch in batches:
                        await self._bulk_pipeline.process(batch, dry_run)
                else:
                    await self._before_write()
                    await self._bulk_pipeline.process_all(batches)
                done += count
        for item in pending:
            results[item.position] = self._finished_answer(item, analyze_ms, dry_run)
        return results

    async def delete(
        self, id_: str, *, sources: tuple[str, ...] = (), take_down: bool = False, undo: bool = False
    ) -> None:
        """Remove an article from the index and from its event; ``take_down``: refuse its text from now on.

        ``undo``: with the copies that the crawler was told to drop since, for it has none of them. Records
        are deleted last, so a repeated delete finishes. Raises NotFound, Forbidden for an article of none of
        ``sources`` (empty: of any), CommitConflict, StoreUnavailable.
        """
        await self._before_write()
        try:
            removed = await self._index.articles.delete(
                id_,
                sources=sources,
                is_copy=lambda later, earlier: is_stored_copy(
                    later, earlier, self._profiles.select("", later.source).policy
                ),
                before_removal=self._refuse_text if take_down else None,
                undo=undo,
            )
            versions = {b.binding.number: (b.binding.first_version, b.binding.id, b.space) for b in removed}
            if self._dual_writer is not None:
                await self._dual_writer.replicate_removal(removed)
        except NotFound:
            if self._dual_writer is not None:
                await self._dual_writer.ensure_absent(id_)
            orphaned = await self._index.articles.orphaned_records(id_)
            owned = [r for r in orphaned if not sources or spelled_as(r.source, sources)]
            versions = {r.number: (r.first_version, id_, r.space) for r in owned}
            if not versions:
                raise
        for first_version, gone in dict.fromkeys((first, gone) for first, gone, _ in versions.values()):
            if self._on_delete is not None:
                await self._on_delete(first_version, gone, self._clock())
        await self._index.records.delete({number: space for number, (_, _, space) in versions.items()})

    async def _refuse_text(self, known: BindingSnapshot) -> None:
        """Refuse the text that is removed next; in a shadow space another recipe may hash it."""
        key = keys.binding(known.binding.id)
        shadow = await self._index.segments.read(dict.fromkeys(self._index.shadow_spaces, (key,)))
        texts = [refused_text(each.binding) for each in (known, *bindings_under(shadow, key))]
        await self._index.takedowns.add(known.binding.id, texts)

    @property
    def _withholds(self) -> bool:
        incident = self._index.memory.incident
        return incident is not None and incident.is_foreign

    def _finished_answer(
        self, pending: PendingArticle, analyze_ms: float, dry_run: bool = False
    ) -> Answer | AggregatorError:
        answer = pending.answer
        assert answer is not None
        if isinstance(answer, Answer):
            answer.timings_ms["analyse"] = analyze_ms
            if pending.withheld:
                unkept = replace(answer.outcome, keep=False, keep_reason=None)
                answer = replace(answer, outcome=unkept, untrusted=True)
            withheld = dry_run or pending.withheld
            if withheld or self._index.memory.incident:
                return replace(answer, unchecked=self._index.memory.incident is not None, withheld=withheld)
        return answer


def split_batches(pending: Sequence[PendingArticle], size: int) -> Iterator[list[PendingArticle]]:
    """Split into batches of at most ``size`` articles, in order and without a repeated id in one batch."""
    batch: dict[str, PendingArticle] = {}
    for item in pending:
        if len(batch) == size or item.article.id in batch:
            yield list(batch.values())
            batch = {}
        batch[item.article.id] = item
    if batch:
        yield list(batch.values())


_Waiting = tuple[PendingArticle, asyncio.Future[None]]


class MicroBatcher:
    """Calls ``process`` with batches of at most ``max_articles``, no id twice, in order per caller."""

    def __init__(self, process: Callable[[list[PendingArticle]], Awaitable[None]], max_articles: int) -> None:
        self._process = process
        self._max_articles = max_articles
        self._queues: dict[str, deque[_Waiting]] = {}  # by caller; the next one to serve is first
        self._drain_task: asyncio.Task[None] | None = None

    async def submit(self, pending: PendingArticle) -> None:
        """Return once the article has its answer; raises what its batch raised."""
        done = asyncio.get_running_loop().create_future()
        self._queues.setdefault(current_caller.get(), deque()).append((pending, done))
        if self._drain_task is None:
            self._drain_task = asyncio.create_task(self._drain_queues())
        try:
            await done
        finally:
            del done  # breaks the cycle future -> error -> frame: see ``store/pipelining.py``

    async def _drain_queues(self) -> None:
        try:
            while waiting := self._next_batch():
                await self._process_batch([pending for pending, _ in waiting], [done for _, done in waiting])
        finally:
            self._drain_task = None

    def _next_batch(self) -> list[_Waiting]:
        """One article of each caller in turn."""
        batch: dict[str, _Waiting] = {}
        while self._queues and len(batch) < self._max_articles:
            caller = next(iter(self._queues))
            queue = self._queues.pop(caller)
            pending, done = queue[0]
            # The second post of an id is a repeat or update of the first, which must be committed before.
            is_repeated = not done.done() and pending.article.id in batch
            if not is_repeated:
                queue.popleft()
                if not done.done():
                    batch[pending.article.id] = pending, done
            if queue:
                self._queues[caller] = queue
            if is_repeated:
                break
        return list(batch.values())

    async def _process_batch(self, batch: list[PendingArticle], waiters: list[asyncio.Future[None]]) -> None:
        try:
            await self._process(batch)
        except Exception as error:
            _fail_waiters(waiters, error)
        except BaseException:  # the process stops
            for done in waiters:
                done.cancel()
            raise
        else:
            for done in waiters:
                if not done.done():
                    done.set_result(None)


def _fail_waiters(waiters: list[asyncio.Future[None]], error: Exception) -> None:
    """Fail all waiters and empty the list, whose futures must not refer to the frame of the error."""
    while waiters:
        if not (done := waiters.pop()).done():
            done.set_exception(error)
