"""How does what was decided get into the store, and what has to be tidied up afterwards?

Records first, each under its own number, where nothing points to them yet; then one commit for each article, in
order. An article whose commit found the store changed has **lost**: it is looked up and decided again. For the
others the replaced versions' records go, versions in other languages' spaces leave, a full segment is sealed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from aggregator.index import Index
from aggregator.index.segment_sampling import sample_entry
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.ingest.pending import CommitPlan, PendingArticle, compress_text

EventIdsOf = Callable[[Sequence[int]], Awaitable[dict[int, str]]]


class Committer:
    """Writes down steps. ``event_of`` names the events that groups of copies belong to."""

    def __init__(
        self,
        index: Index,
        dual_writer: DualWriter | None,
        event_ids_of: EventIdsOf | None,
        *,
        store_texts: bool,
    ) -> None:
        self._index = index
        self._dual_writer = dual_writer
        self._event_ids_of = event_ids_of
        self._keep_texts = store_texts

    async def write_records(self, plans: Sequence[CommitPlan]) -> None:
        """Write the records, where nothing points to them yet."""
        fresh = [s for s in _plans_with_writes(plans) if not s.pending.record_written]
        if not fresh:
            return
        texts = {s.pending.number: compress_text(s.pending.analysis.text) for s in fresh if self._keep_texts}
        taken = await self._index.put_records([s.record for s in fresh if s.record], texts)
        for step in fresh:
            step.pending.record_written = step.pending.number not in taken
            if not step.pending.record_written:
                step.pending.number = 0  # somebody has this number: take another one next time

    async def commit(self, plans: Sequence[CommitPlan], now_ms: int) -> list[PendingArticle]:
        """Commit what is written, in order; returns the articles that lost a race, by position."""
        changed = _plans_with_writes(plans)
        ready = [s for s in changed if s.pending.record_written and s.transaction is not None]
        failed = await self._index.store.commit_many([s.transaction for s in ready if s.transaction])
        lost = [s.pending for s, checks in zip(ready, failed, strict=True) if checks]
        lost += [s.pending for s in changed if not s.pending.record_written]
        rate = self._index.segments.sampling_exponent
        marked = {s.answer.space for s in ready if s.record and sample_entry(s.record.number, rate)}
        for space in sorted(marked):
            await self._index.segments.seal_if_full(space, now_ms)
        settled = [s for s in plans if s.pending not in lost] if lost else plans
        await self._resolve_language_race([s for s in settled if s.transaction is not None])
        for step in settled:
            await self._remove_replaced(step)
        if self._dual_writer is not None:
            await self._dual_writer.replicate(
                [PostedArticle(s.pending.article, s.bound_record) for s in settled if s.bound_record]
            )
        return sorted(lost, key=lambda p: p.position)

    async def _resolve_language_race(self, plans: Sequence[CommitPlan]) -> None:
        """The same id may have come in another language at the same moment: of the two the later number stays.

        Each looks after its own commit, so whoever looks last sees both.
        """
        if not plans or len(self._index.spaces) < 2:
            return
        found = await self._index.bindings_in_other_spaces(
            {s.pending.article.id: s.answer.space for s in plans}
        )
        for step in plans:
            others = found[step.pending.article.id]
            step.versions_in_other_spaces = tuple(
                known for known in others if known.binding.number < step.latest_number
            )
            for later in others[:1]:
                if later.binding.number > step.latest_number:
                    await self._index.remove_older(
                        step.answer.space, later.binding.id, below_number=later.binding.number
                    )

    async def _remove_replaced(self, plan: CommitPlan) -> None:
        """The replaced version's record goes, and versions in other languages' spaces do."""
        if plan.superseded_number is not None:
            await self._index.delete_records({plan.superseded_number: plan.answer.space})
            if self._dual_writer is not None:
                await self._dual_writer.drop_record(plan.superseded_number)
        for known in plan.versions_in_other_spaces:
            left = await self._index.remove_older(
                known.space, known.binding.id, below_number=plan.latest_number
            )
            if left and self._dual_writer is not None:
                await self._dual_writer.replicate_removal([known])

    async def set_answers(self, plans: Sequence[CommitPlan]) -> None:
        """Give the arrivals their answers, with the events that they are part of."""
        wanted = list(dict.fromkeys(g for s in plans for g in s.duplicate_groups))
        events = await self._event_ids_of(wanted) if self._event_ids_of and wanted else {}
        for step in plans:
            event = next((events[g] for g in step.duplicate_groups if g in events), None) if events else None
            step.pending.answer = replace(step.answer, event_id=event) if event else step.answer


def _plans_with_writes(plans: Sequence[CommitPlan]) -> list[CommitPlan]:
    return [s for s in plans if s.transaction is not None and s.record is not None]
