"""What becomes of one arrival? The verdict, and the transaction that makes it so.

An id that is not bound in its space is inserted; the same text again is a repeat, which changes at most
the metadata; another text under the id is an update. Everything is judged on a snapshot; whether the store
still is as the snapshot says is for the commit to find out.
"""

from __future__ import annotations

from aggregator.dedup.similarity import rank
from aggregator.dedup.verdict import Candidate, Policy, decide, neighbours
from aggregator.domain import Answer, Outcome, Record, arrival_ms_of
from aggregator.index import Index, Probe, Snapshot
from aggregator.index.article_numbers import Numbers
from aggregator.index.duplicate_groups import Known
from aggregator.ingest.dual_write import Beside
from aggregator.ingest.pending import Arrival, Step, metadata, own_group, record_of, with_metadata
from aggregator.store.base import Transaction

MAX_RELATED = 10


class Deciding:
    """Decides arrivals by ``policy``; one per process, since it numbers them."""

    def __init__(self, index: Index, policy: Policy, beside: Beside | None) -> None:
        self._index = index
        self._policy = policy
        self._beside = beside
        self._numbers = Numbers()

    async def decide(
        self, one: Arrival, probe: Probe, snapshot: Snapshot, now_ms: int, dry_run: bool
    ) -> Step:
        """What follows for one article from what was looked up; the store is only asked about groups of copies."""
        tops = snapshot.tops(probe.space, probe.id)
        touched = snapshot.touched(tops)
        if touched:  # an earlier article of this batch is near
            found = self._index.found_again(snapshot, probe, now_ms, one.found, touched)
            if found is not one.found:
                one.found, one.numbers = found, found.numbers
        candidates = self._index.candidates(snapshot, probe, one.numbers, self._policy)
        bound = self._index.standing(snapshot, probe.binding, now_ms)
        newest = bound[0].binding.number if bound else 0
        here = next((known for known in bound if known.space == one.analysis.space), None)
        if here is None:  # a new id, or one whose language changed: then it is another article
            step = await self._insert(one, probe, (tops, touched), snapshot, candidates, now_ms, newest)
        elif here is bound[0] and here.binding.text_hash == one.analysis.text_hash:
            step = await self._repeat(one, here, snapshot, candidates, dry_run)
        else:
            step = await self._update(one, here, snapshot, candidates, now_ms, newest)
        version = step.record.number if step.transaction and step.record else newest
        step.version, step.elsewhere = version, tuple(k for k in bound if k is not here)
        return step

    async def _insert(
        self,
        one: Arrival,
        probe: Probe,
        looked_at: tuple[list[bytes], set[bytes]],
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
        seen = self._index.seen(snapshot, probe, *looked_at, one.numbers, outcome.match)
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
        step.superseded = known.binding.number
        return step

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
        near = neighbours(one.analysis, candidates, outcome, self._policy)
        related = rank(near, without_group=own, limit=MAX_RELATED) if near else ()
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
