"""What becomes of one arrival? The verdict, and the transaction that makes it so.

An id that is not bound in its space is inserted; the same text again is a repeat, which changes at most
the metadata; another text under the id is an update. Everything is judged on a snapshot; whether the store
still is as the snapshot says is for the commit to find out.
"""

from __future__ import annotations

from aggregator.dedup.similarity import rank
from aggregator.dedup.verdict import Candidate, Policy, decide, related_candidates
from aggregator.domain import Answer, ArticleRecord, Outcome, arrival_ms_of
from aggregator.index import Index, Probe, Snapshot
from aggregator.index.article_numbers import ArticleNumberGenerator
from aggregator.index.duplicate_groups import BindingSnapshot
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.pending import (
    CommitPlan,
    PendingArticle,
    build_record,
    group_of,
    merge_metadata,
    metadata_fields,
)
from aggregator.store.base import Transaction

MAX_RELATED = 10


class Decider:
    """Decides arrivals by ``policy``; one per process, since it numbers them."""

    def __init__(self, index: Index, policy: Policy, dual_writer: DualWriter | None) -> None:
        self._index = index
        self._policy = policy
        self._dual_writer = dual_writer
        self._number_generator = ArticleNumberGenerator()

    async def decide(
        self, pending: PendingArticle, probe: Probe, snapshot: Snapshot, now_ms: int, dry_run: bool
    ) -> CommitPlan:
        """What follows for one article from what was looked up; the store is only asked about groups of copies."""
        tops = snapshot.writable_keys(probe.space, probe.id)
        touched = snapshot.changed_keys(tops)
        if touched:  # an earlier article of this batch is near
            found = self._index.extend_result(snapshot, probe, now_ms, pending.matches, touched)
            if found is not pending.matches:
                pending.matches, pending.candidate_numbers = found, found.ranked_numbers
        candidates = self._index.build_candidates(snapshot, probe, pending.candidate_numbers, self._policy)
        bound = self._index.live_bindings(snapshot, probe.binding_key, now_ms)
        newest = bound[0].binding.number if bound else 0
        here = next((known for known in bound if known.space == pending.analysis.space), None)
        if here is None:  # a new id, or one whose language changed: then it is another article
            step = await self._plan_insert(
                pending, probe, (tops, touched), snapshot, candidates, now_ms, newest
            )
        elif here is bound[0] and here.binding.text_hash == pending.analysis.text_hash:
            step = await self._plan_repeat(pending, here, snapshot, candidates, dry_run)
        else:
            step = await self._plan_update(pending, here, snapshot, candidates, now_ms, newest)
        version = step.record.number if step.transaction and step.record else newest
        step.latest_number, step.versions_in_other_spaces = version, tuple(k for k in bound if k is not here)
        return step

    async def _plan_insert(
        self,
        pending: PendingArticle,
        probe: Probe,
        bucket_keys: tuple[list[bytes], set[bytes]],
        snapshot: Snapshot,
        candidates: list[Candidate],
        now_ms: int,
        latest_number: int,
    ) -> CommitPlan:
        outcome = decide(pending.analysis, candidates, self._policy)
        led = next((c.canonical[1] for c in candidates if c.canonical[0] == pending.article.id), 0)
        if led and outcome.match is not None:
            # It expired before its copies did, and comes back: it leads them again.
            outcome = Outcome("new", distance=outcome.distance)
        record = await self._assign_number(pending, now_ms, latest_number, led)
        seen = self._index.commit_checks(
            snapshot, probe, *bucket_keys, pending.candidate_numbers, outcome.match
        )
        given = snapshot.no_foreign_commit(probe.space)
        transaction = self._index.transactions(snapshot, probe.space).insert(record, outcome, seen, given)
        return self._build_plan(pending, outcome, candidates, True, transaction, record)

    async def _plan_repeat(
        self,
        pending: PendingArticle,
        current: BindingSnapshot,
        snapshot: Snapshot,
        candidates: list[Candidate],
        dry_run: bool,
    ) -> CommitPlan:
        """The same id with the same text: the stored answer, and newer metadata if it changed."""
        record = snapshot.records.get(current.binding.number)
        if record is not None and not dry_run:
            fresh = merge_metadata(record, pending.article)
            if metadata_fields(fresh) != metadata_fields(record):
                await self._index.update_record_metadata(current, fresh)
                if self._dual_writer is not None:
                    await self._dual_writer.update_metadata(fresh)
        if pending.record_written and pending.number != current.binding.number:
            await self._index.delete_records({pending.number: pending.analysis.space})
        return self._build_plan(pending, current.binding.outcome, candidates, False, None, record)

    async def _plan_update(
        self,
        pending: PendingArticle,
        current: BindingSnapshot,
        snapshot: Snapshot,
        candidates: list[Candidate],
        now_ms: int,
        latest_number: int,
    ) -> CommitPlan:
        """New content under a known id: it keeps its verdict, the old version leaves the index."""
        record = await self._assign_number(pending, now_ms, latest_number, current.binding.first_version)
        transaction = await self._index.update_transaction(snapshot, current, record)
        step = self._build_plan(pending, current.binding.outcome, candidates, True, transaction, record)
        step.superseded_number = current.binding.number
        return step

    async def _assign_number(
        self, pending: PendingArticle, now_ms: int, latest_number: int, first_version: int = 0
    ) -> ArticleRecord:
        """Its record under a number above ``newest``, its id's last; ``first`` is 0 for a first version.

        What was written already is kept, unless it says otherwise.
        """
        if pending.record_written and (
            pending.number <= latest_number or pending.first_version != (first_version or pending.number)
        ):
            await self._index.delete_records({pending.number: pending.analysis.space})
            pending.number, pending.record_written = 0, False
        if pending.number <= latest_number:  # another process may have a faster clock
            pending.number = self._number_generator.next(max(now_ms, arrival_ms_of(latest_number) + 1))
        pending.first_version = first_version or pending.number
        return build_record(pending)

    def _build_plan(
        self,
        pending: PendingArticle,
        outcome: Outcome,
        candidates: list[Candidate],
        stored: bool,
        transaction: Transaction | None,
        record: ArticleRecord | None,
    ) -> CommitPlan:
        own = group_of(outcome.match, record)
        near = related_candidates(pending.analysis, candidates, outcome, self._policy)
        related = rank(near, exclude_group=own, limit=MAX_RELATED) if near else ()
        answer = Answer(
            id=pending.article.id,
            outcome=outcome,
            space=pending.analysis.space,
            fingerprint=pending.analysis.fingerprint,
            short=pending.analysis.short,
            related=related,
            stored=stored,
        )
        groups = dict.fromkeys(c.canonical[1] for c in near)
        if own is not None:
            groups = {own: None, **groups}
        kept = record if stored else None
        return CommitPlan(
            pending, answer, transaction, kept, duplicate_groups=tuple(groups), bound_record=record
        )
