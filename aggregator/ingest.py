"""The story of one article. Read this first.

    analyse    its words become a fingerprint and a sketch           analyse.py, pure
    look up    one read: its id, 68 buckets, its bands               index.snapshot
    examine    one read: records of what was found                   index.fetch
    decide     new, related or duplicate                             verdict.decide, pure
    record     its record, then one atomic commit                    changes.py, store.commit

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
from dataclasses import replace

from aggregator.arrivals import (
    Arrival,
    Step,
    bare,
    chunks,
    compress,
    metadata,
    own_group,
    record_of,
    with_metadata,
)
from aggregator.beside import Beside, Posted
from aggregator.changes import Known
from aggregator.domain import Analysis, Answer, Article, Outcome, Record, arrival_ms_of
from aggregator.errors import AggregatorError, Contention, NotFound
from aggregator.gathering import Gathering
from aggregator.index import ATTEMPTS, Index, Probe, Snapshot
from aggregator.numbers import Numbers
from aggregator.similarity import rank
from aggregator.store import keys
from aggregator.store.base import Append, Transaction
from aggregator.verdict import Candidate, Policy, decide

MAX_RELATED = 10

AnalyseMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]
GiveWay = Callable[[], Awaitable[None]]
EventOf = Callable[[Sequence[int]], Awaitable[dict[int, str]]]
TakenDown = Callable[[int, str, int], Awaitable[None]]


async def _at_once() -> None:
    """Goes on without a pause."""


class Ingest:
    """Check and insert articles. ``clock`` gives ms since 1970 UTC; ``analyse_many`` may use other processes."""

    def __init__(
        self,
        index: Index,
        analyse_many: AnalyseMany,
        policy: Policy,
        *,
        clock: Callable[[], int],
        keep_texts: bool = False,
        fingerprints_only: bool = False,
        event_of: EventOf | None = None,
        taken_down: TakenDown | None = None,
        give_way: GiveWay = _at_once,
        beside: Beside | None = None,
    ) -> None:
        self._index = index
        self._analyse_many = analyse_many
        self._policy = policy
        self._clock = clock
        self._keep_texts = keep_texts
        self._fingerprints_only = fingerprints_only
        self._event_of = event_of
        self._taken_down = taken_down
        self._give_way = give_way
        self._gathering = Gathering(self._settle)
        self._beside = beside
        self._numbers = Numbers()
        self.decided_again = 0  # commits that lost a race, for metrics

    async def submit(self, article: Article, *, dry_run: bool = False) -> Answer:
        """One article. Raises NoText, StoreUnavailable."""
        if dry_run:
            result = (await self.submit_many([article], dry_run=True))[0]
        else:
            started = time.perf_counter()
            analysis = (await self._analyse_many([article]))[0]
            if isinstance(analysis, AggregatorError):
                raise analysis
            analyse_ms = (time.perf_counter() - started) * 1000
            arrival = self._arrived(Arrival(0, article, analysis))
            await self._gathering.add(arrival)
            result = _answered(arrival, analyse_ms)
        if isinstance(result, AggregatorError):
            raise result
        return result

    def _arrived(self, arrival: Arrival) -> Arrival:
        return bare(arrival) if self._fingerprints_only else arrival

    async def submit_many(
        self, articles: Sequence[Article], *, dry_run: bool = False
    ) -> list[Answer | AggregatorError]:
        """Articles in order; the answers are those of submitting them one by one.

        An article that cannot be used answers with its error and costs the others nothing.
        """
        started = time.perf_counter()
        analysed = await self._analyse_many(articles)
        analyse_ms = (time.perf_counter() - started) * 1000 / max(1, len(articles))
        return await self.settle_many(articles, analysed, analyse_ms, dry_run=dry_run)

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """The first half of ``submit_many``, for who has the next articles analysed while these are settled."""
        return await self._analyse_many(articles)

    async def settle_many(
        self,
        articles: Sequence[Article],
        analysed: Sequence[Analysis | AggregatorError],
        analyse_ms: float = 0.0,
        *,
        dry_run: bool = False,
    ) -> list[Answer | AggregatorError]:
        """The second half; ``analyse_ms``: what the first took, per article."""
        pending = [
            self._arrived(Arrival(position, article, analysis))
            for position, (article, analysis) in enumerate(zip(articles, analysed, strict=True))
            if not isinstance(analysis, AggregatorError)
        ]
        for chunk in chunks(pending):
            await self._settle(chunk, dry_run)
        results: list[Answer | AggregatorError] = list(analysed)  # type: ignore[arg-type]
        for one in pending:
            results[one.position] = _answered(one, analyse_ms)
        return results

    async def delete(self, id_: str) -> None:
        """Undo a reservation or take an article down, out of its event too. Raises NotFound."""
        try:
            gone = await self._index.delete(id_)
        except NotFound:
            if self._beside is not None:  # who took it out may have died before it left there too
                await self._beside.absent(id_)
            raise
        if self._beside is not None:
            await self._beside.left(gone)
        for known in gone:
            if self._taken_down is not None:
                await self._taken_down(known.binding.first, id_, self._clock())

    async def _settle(self, pending: list[Arrival], dry_run: bool = False) -> None:
        """Decide and commit until every article has its answer."""
        for _ in range(ATTEMPTS):
            if not pending:
                return
            pending = await self._round(pending, dry_run)
            self.decided_again += len(pending)
        for one in pending:
            one.answer = Contention(
                "Too many near-copies of this article were committed at the same moment; send it again."
            )

    async def _round(self, pending: list[Arrival], dry_run: bool) -> list[Arrival]:
        """Look up, examine, decide, record; returns those whose commit came too late."""
        started = time.perf_counter()
        now_ms = self._clock()
        probes = [self._index.probe(p.analysis, p.article.id) for p in pending]
        snapshot = await self._index.snapshot(probes)
        await self._examine(snapshot, pending, probes, now_ms)
        steps = []
        for one, probe in zip(pending, probes, strict=True):
            await self._give_way()
            step = await self._decide(one, probe, snapshot, now_ms, dry_run)
            if dry_run:
                step.answer = replace(step.answer, stored=False)
            elif step.transaction is not None:
                key = keys.binding(b"", keys.id_hash(probe.id))
                snapshot.apply(step.transaction, snapshot.top(probe.space, key))
                if step.record is not None:
                    snapshot.records[step.record.number] = step.record
            steps.append(step)
        looked_up = time.perf_counter()
        lost = [] if dry_run else await self._record(steps, now_ms)
        await self._answer([s for s in steps if s.pending not in lost])
        recorded = time.perf_counter()
        for step in steps:
            step.answer.timings_ms["lookup"] = (looked_up - started) * 1000 / len(steps)
            step.answer.timings_ms["record"] = (recorded - looked_up) * 1000 / len(steps)
        return lost

    async def _examine(
        self, snapshot: Snapshot, pending: Sequence[Arrival], probes: Sequence[Probe], now_ms: int
    ) -> None:
        """Fetch the records of all candidates, and of ids that are known already."""
        wanted: dict[int, str] = {}
        for one, probe in zip(pending, probes, strict=True):
            await self._give_way()
            one.numbers = self._index.candidate_numbers(snapshot, probe, now_ms)
            for number in one.numbers:
                wanted[number] = probe.analysis.space
            for known in self._index.known(snapshot, probe.id):
                wanted.setdefault(known.binding.number, known.space)
        await self._index.fetch(snapshot, wanted)

    async def _decide(
        self, one: Arrival, probe: Probe, snapshot: Snapshot, now_ms: int, dry_run: bool
    ) -> Step:
        tops = snapshot.tops(probe.space, probe.keys)
        if snapshot.touches(tops):  # an earlier article of this batch is near
            one.numbers = self._index.candidate_numbers(snapshot, probe, now_ms)
        candidates = self._index.candidates(snapshot, probe, one.numbers)
        bound = self._index.known(snapshot, probe.id)
        newest = bound[0].binding.number if bound else 0
        here = next((known for known in bound if known.space == one.analysis.space), None)
        if here is None:  # a new id, or one whose language changed: then it is another article
            step = await self._insert(one, probe, tops, snapshot, candidates, now_ms, newest)
        elif here is bound[0] and here.binding.text_hash == one.analysis.text_hash:
            step = await self._repeat(one, here, snapshot, candidates, dry_run)
        else:
            step = await self._update(one, here, snapshot, candidates, now_ms, newest)
        version = step.record.number if step.transaction and step.record else newest
        return replace(step, version=version, elsewhere=tuple(k for k in bound if k is not here))

    async def _insert(
        self,
        one: Arrival,
        probe: Probe,
        tops: list[bytes],
        snapshot: Snapshot,
        candidates: list[Candidate],
        now_ms: int,
        newest: int,
    ) -> Step:
        outcome = decide(one.analysis, candidates, self._policy)
        led = next((c.canonical[1] for c in candidates if c.canonical[0] == one.article.id), 0)
        if led and outcome.match is not None:
            # It expired before its copies did, and comes back: it leads them again.
            outcome = Outcome("new", distance=outcome.distance)
        record = await self._numbered(one, now_ms, newest, led)
        seen = self._index.seen(snapshot, probe, tops, one.numbers, outcome.match)
        given = snapshot.unwritten(probe.space)
        transaction = self._index.segment(snapshot, probe.space).insert(record, outcome, seen, given)
        return self._step(one, outcome, candidates, True, transaction, record)

    async def _repeat(
        self, one: Arrival, known: Known, snapshot: Snapshot, candidates: list[Candidate], dry_run: bool
    ) -> Step:
        """The same id with the same text: the stored answer, and newer metadata if it changed."""
        record = snapshot.records.get(known.binding.number)
        if record is not None and not dry_run:
            fresh = with_metadata(record, one.article)
            if metadata(fresh) != metadata(record):
                await self._index.rewrite_record(known, fresh)
                if self._beside is not None:
                    await self._beside.rewrite(fresh)
        if one.written and one.number != known.binding.number:
            await self._index.forget_records({one.number: one.analysis.space})
        return self._step(one, known.binding.outcome, candidates, False, None, record)

    async def _update(
        self,
        one: Arrival,
        known: Known,
        snapshot: Snapshot,
        candidates: list[Candidate],
        now_ms: int,
        newest: int,
    ) -> Step:
        """New content under a known id: it keeps its verdict, the old version leaves the index."""
        record = await self._numbered(one, now_ms, newest, known.binding.first)
        transaction = await self._index.update_transaction(snapshot, known, record)
        step = self._step(one, known.binding.outcome, candidates, True, transaction, record)
        return replace(step, superseded=known.binding.number)

    async def _numbered(self, one: Arrival, now_ms: int, newest: int, first: int = 0) -> Record:
        """Its record under a number above ``newest``, its id's last; ``first`` is 0 for a first version.

        What was written already is kept, unless it says otherwise.
        """
        if one.written and (one.number <= newest or one.first != (first or one.number)):
            await self._index.forget_records({one.number: one.analysis.space})
            one.number, one.written = 0, False
        if one.number <= newest:  # another process may have a faster clock
            one.number = self._numbers.next(max(now_ms, arrival_ms_of(newest) + 1))
        one.first = first or one.number
        return record_of(one)

    def _step(
        self,
        one: Arrival,
        outcome: Outcome,
        candidates: list[Candidate],
        stored: bool,
        transaction: Transaction | None,
        record: Record | None,
    ) -> Step:
        own = own_group(outcome.match, record)
        near = [c for c in candidates if c.distance <= self._policy.related_bits]
        related = rank(near, without_group=own, limit=MAX_RELATED)
        answer = Answer(
            id=one.article.id,
            outcome=outcome,
            space=one.analysis.space,
            fingerprint=one.analysis.fingerprint,
            short=one.analysis.short,
            related=related,
            stored=stored,
        )
        groups = dict.fromkeys(c.canonical[1] for c in near)
        if own is not None:
            groups = {own: None, **groups}
        kept = record if stored else None
        return Step(one, answer, transaction, kept, groups=tuple(groups), standing=record)

    async def _record(self, steps: Sequence[Step], now_ms: int) -> list[Arrival]:
        """Write the records, then commit in order; returns the articles that lost a race."""
        changed = [s for s in steps if s.transaction is not None and s.record is not None]
        fresh = [s for s in changed if not s.pending.written and s.record is not None]
        if fresh:
            texts = {s.pending.number: compress(s.pending.analysis.text) for s in fresh if self._keep_texts}
            taken = await self._index.put_records([s.record for s in fresh if s.record], texts)
            for step in fresh:
                step.pending.written = step.pending.number not in taken
                if not step.pending.written:
                    step.pending.number = 0  # somebody has this number: take another one next time
        ready = [s for s in changed if s.pending.written and s.transaction is not None]
        failed = await self._index.store.commit_many([s.transaction for s in ready if s.transaction])
        lost = [s.pending for s, checks in zip(ready, failed, strict=True) if checks]
        lost += [s.pending for s in changed if not s.pending.written]
        marked = {s.answer.space for s, checks in zip(ready, failed, strict=True) if _marked(s, checks)}
        for space in sorted(marked):
            await self._index.segments.seal_if_full(space, now_ms)
        for step in steps:
            if step.pending not in lost:
                await self._take_out(step)
        if self._beside is not None:
            settled = [s for s in steps if s.pending not in lost and s.standing is not None]
            await self._beside.follow([Posted(s.pending.article, s.standing) for s in settled if s.standing])
        return sorted(lost, key=lambda p: p.position)

    async def _take_out(self, step: Step) -> None:
        """The replaced version's record goes, and versions in other languages' spaces do."""
        if step.superseded is not None:
            await self._index.forget_records({step.superseded: step.answer.space})
            if self._beside is not None:
                await self._beside.forget(step.superseded)
        for known in step.elsewhere:
            left = await self._index.leave(known.space, known.binding.id, below=step.version)
            if left and self._beside is not None:
                await self._beside.left([known])

    async def _answer(self, steps: Sequence[Step]) -> None:
        wanted = list(dict.fromkeys(g for s in steps for g in s.groups))
        events = await self._event_of(wanted) if self._event_of and wanted else {}
        for step in steps:
            event = next((events[g] for g in step.groups if g in events), None)
            step.pending.answer = replace(step.answer, event_id=event, timings_ms=step.answer.timings_ms)


def _answered(one: Arrival, analyse_ms: float) -> Answer | AggregatorError:
    assert one.answer is not None
    if isinstance(one.answer, Answer):
        one.answer.timings_ms["analyse"] = analyse_ms
    return one.answer


def _marked(step: Step, failed_checks: Sequence[int]) -> bool:
    """Whether its commit left a mark in its segment, which may be full now."""
    writes = step.transaction.writes if step.transaction and not failed_checks else ()
    return any(isinstance(w, Append) and w.key == keys.marks(keys.tag_of(w.key)) for w in writes)
