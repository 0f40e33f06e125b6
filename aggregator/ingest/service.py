"""The story of one article. Read this first.

    analyse    its words become a fingerprint and a sketch           analyse.py, pure
    look up    one read: its id, 68 buckets, its bands               rounds.py, index.snapshot
    examine    one read: records of what was found                   index.fetch
    decide     new, related or duplicate                             deciding.py, verdict.decide, pure
    record     its record, then one atomic commit                    recording.py, changes.py, store.commit

The commit holds only if nothing that was looked at has changed; else the article is looked up and
decided again. So of several near-copies that arrive at the same moment exactly one is new, whoever
sent them and through whichever process, and a crash leaves all of an article or nothing of it.

Many articles travel together: a batch costs the same few round trips as one article, and each of
its articles is decided as if those before it were stored already. Articles that come one by one while
others are under way make such a batch too (``gathering.py``).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from aggregator.concurrency.priority_gate import PriorityGate
from aggregator.concurrency.yielding import Spawn, YieldControl
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError, NotFound
from aggregator.index import Index
from aggregator.ingest.activity import ActivityBeacon
from aggregator.ingest.batcher import MicroBatcher
from aggregator.ingest.commit import Committer, EventIdsOf
from aggregator.ingest.decide import Decider
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.pending import PendingArticle, split_batches, strip_to_fingerprint
from aggregator.ingest.pipeline import BatchPipeline
from aggregator.ingest.throttle import BulkThrottle, throttled_slice

BATCH_ARTICLES = 32  # more would keep the server from single posts for longer, and saves little
# As many are analysed at once while single articles arrive: one process of the pool takes them.
ANALYSIS_SLICE_ARTICLES = 16
# As many at most are settled without asking whether single articles arrive: a third of a second's worth.
MAX_UNTHROTTLED_ARTICLES = 1024
E = TypeVar("E", bound=Exception)
AnalyzeMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]
OnDelete = Callable[[int, str, int], Awaitable[None]]


async def _no_yield() -> None:
    """Goes on without a pause."""


class IngestService:
    """Check and insert articles. ``clock`` gives ms since 1970 UTC; ``analyse_many`` may use other processes.

    ``begin`` starts work that goes on beside its caller (``rounds.py``); ``give_way`` lets it, and others, go on;
    with ``turns`` the articles that come one by one go before the others, and with ``presence`` and ``pace`` the others are
    slow while such articles arrive, here or elsewhere.
    """

    def __init__(
        self,
        index: Index,
        analyze_many: AnalyzeMany,
        policy: Policy,
        *,
        clock: Callable[[], int],
        store_texts: bool = False,
        fingerprints_only: bool = False,
        event_ids_of: EventIdsOf | None = None,
        on_delete: OnDelete | None = None,
        yield_control: YieldControl = _no_yield,
        spawn: Spawn | None = None,
        priority_gate: PriorityGate | None = None,
        activity: ActivityBeacon | None = None,
        throttle: BulkThrottle | None = None,
        dual_writer: DualWriter | None = None,
        batch_articles: int = BATCH_ARTICLES,
    ) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self._clock = clock
        self._fingerprints_only = fingerprints_only
        self._on_delete = on_delete
        self._dual_writer = dual_writer
        self._batch_articles = batch_articles
        self._priority_gate = priority_gate or PriorityGate()
        self._activity = activity
        self._throttle = throttle
        deciding = Decider(index, policy, dual_writer)
        recording = Committer(index, dual_writer, event_ids_of, store_texts=store_texts)
        self._bulk_pipeline = BatchPipeline(
            index,
            deciding,
            recording,
            clock=clock,
            yield_control=priority_gate.yield_control if priority_gate is not None else yield_control,
            spawn=spawn,
        )
        self._interactive_pipeline = BatchPipeline(
            index, deciding, recording, clock=clock, yield_control=yield_control, spawn=spawn
        )
        self._batcher = MicroBatcher(self._interactive_pipeline.process, batch_articles)

    @property
    def commit_retries(self) -> int:
        """Commits that lost a race, for metrics."""
        return self._bulk_pipeline.commit_retries + self._interactive_pipeline.commit_retries

    async def submit(self, article: Article, *, dry_run: bool = False) -> Answer:
        """One article. Raises NoText, StoreUnavailable."""
        if dry_run:
            result = (await self.submit_many([article], dry_run=True))[0]
        else:
            if self._activity is not None:
                self._activity.record_arrival()
            result = await self._submit_interactive(article)
        if isinstance(result, AggregatorError):
            raise result
        return result

    async def _submit_interactive(self, article: Article) -> Answer | AggregatorError:
        started = time.perf_counter()
        analysis = (await self._analyze_many([article]))[0]
        if isinstance(analysis, AggregatorError):
            return analysis
        analyse_ms = (time.perf_counter() - started) * 1000
        arrival = self._to_pending(PendingArticle(0, article, analysis))
        with (
            self._priority_gate.high_priority()
        ):  # not while it is analysed elsewhere, which may take long and asks nothing of others
            await self._batcher.submit(arrival)
        return _finished_answer(arrival, analyse_ms)

    def _to_pending(self, pending: PendingArticle) -> PendingArticle:
        return strip_to_fingerprint(pending) if self._fingerprints_only else pending

    async def submit_many(
        self, articles: Sequence[Article], *, dry_run: bool = False
    ) -> list[Answer | AggregatorError]:
        """Articles in order; the answers are those of submitting them one by one.

        An article that cannot be used answers with its error and costs the others nothing.
        """
        started = time.perf_counter()
        analysed = await self.analyze_many(articles)
        analyse_ms = (time.perf_counter() - started) * 1000 / max(1, len(articles))
        return await self.process_analyzed(articles, analysed, analyse_ms, dry_run=dry_run)

    async def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """The first half of ``submit_many``, for who has the next articles analysed while these are settled."""
        analysed: list[Analysis | AggregatorError] = []
        while len(analysed) < len(articles):
            rest = articles[len(analysed) :]
            async with throttled_slice(self._throttle, len(rest), ANALYSIS_SLICE_ARTICLES) as count:
                analysed += await self._analyze_many(rest[:count])
        return analysed

    async def process_analyzed(
        self,
        articles: Sequence[Article],
        analyzed: Sequence[Analysis | E],
        analyze_ms: float = 0.0,
        *,
        dry_run: bool = False,
        group_size: int = 0,
    ) -> list[Answer | AggregatorError | E]:
        """The second half; ``analyse_ms``: what the first took, per article. What is no analysis is its own answer.

        ``together``: so many at most share a round (0: as many as ever).
        """
        pending = [
            self._to_pending(PendingArticle(position, article, analysis))
            for position, (article, analysis) in enumerate(zip(articles, analyzed, strict=True))
            if isinstance(analysis, Analysis)
        ]
        done = 0
        while done < len(pending):
            async with throttled_slice(
                self._throttle, min(MAX_UNTHROTTLED_ARTICLES, len(pending) - done)
            ) as count:
                groups = list(split_batches(pending[done : done + count], group_size or self._batch_articles))
                await self._process_groups(groups, dry_run)
                done += count
        results: list[Answer | AggregatorError | E] = list(analyzed)  # type: ignore[arg-type]
        for one in pending:
            results[one.position] = _finished_answer(one, analyze_ms)
        return results

    async def _process_groups(self, groups: Sequence[list[PendingArticle]], dry_run: bool) -> None:
        if not dry_run:
            await self._bulk_pipeline.process_all(groups)
            return
        for group in groups:
            await self._bulk_pipeline.process(group, dry_run)

    async def delete(self, id_: str) -> None:
        """Undo a reservation or take an article down, out of its event too. Raises NotFound.

        What a process that died left undone is done by whoever repeats the delete: its records go last.
        """
        try:
            gone = await self._index.delete(id_)
            firsts = {k.binding.number: (k.binding.first_version, k.space) for k in gone}
            if self._dual_writer is not None:
                await self._dual_writer.replicate_removal(gone)
        except NotFound:
            if self._dual_writer is not None:
                await self._dual_writer.ensure_absent(id_)
            firsts = {r.number: (r.first_version, r.space) for r in await self._index.orphaned_records(id_)}
            if not firsts:
                raise
        for first in dict.fromkeys(first for first, _ in firsts.values()):
            if self._on_delete is not None:
                await self._on_delete(first, id_, self._clock())
        await self._index.delete_records({number: space for number, (_, space) in firsts.items()})


def _finished_answer(pending: PendingArticle, analyze_ms: float) -> Answer | AggregatorError:
    assert pending.answer is not None
    if isinstance(pending.answer, Answer):
        pending.answer.timings_ms["analyse"] = analyze_ms
    return pending.answer
