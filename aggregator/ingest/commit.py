"""Execution of commit plans: records first, then one atomic commit per article, then clean-up.

A record is written under its own number before anything refers to it. An article whose commit found the store
changed is **conflicted**: the pipeline looks it up and decides it again. For committed articles the replaced
version's record is deleted, versions in spaces of other languages are removed and a full segment is sealed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from aggregator.index import Index
from aggregator.index.codec.stored_text import compress_text
from aggregator.index.duplicate_groups import BindingSnapshot
from aggregator.index.ownership import is_owned
from aggregator.index.segment_sampling import sample_entry
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.ingest.pending import CommitPlan, PendingArticle

# First numbers of duplicate groups -> id of the event of each group that is part of one.
EventIdsOf = Callable[[Sequence[int]], Awaitable[dict[int, str]]]

# Reads of the binding of an id posted simultaneously in another language; each is one round trip to the
# store, and the other process needs about two to withdraw its own.
MAX_WITHDRAWAL_CHECKS = 8


class Committer:
    """Stores the articles of commit plans and sets their answers.

    ``event_ids_of`` looks up the events named in answers (None: no events); ``store_texts`` keeps each text.
    """

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
        self._store_texts = store_texts

    async def write_records(self, plans: Sequence[CommitPlan]) -> None:
        """Write the records that no earlier attempt has written; nothing refers to them yet."""
        missing = [p for p in _plans_with_writes(plans) if not p.pending.record_written]
        if not missing:
            return
        texts = {
            p.pending.number: compress_text(p.pending.analysis.text) for p in missing if self._store_texts
        }
        taken = await self._index.records.insert([p.record for p in missing if p.record], texts)
        for plan in missing:
            plan.pending.record_written = plan.pending.number not in taken
            if not plan.pending.record_written:
                plan.pending.number = 0  # another process uses this number: assign another one next time

    async def commit(self, plans: Sequence[CommitPlan], now_ms: int) -> list[PendingArticle]:
        """Commit the plans whose records are written, in order; return the conflicted articles."""
        writes = _plans_with_writes(plans)
        ready = [p for p in writes if p.pending.record_written]
        failed_checks = await self._index.store.commit_many([p.transaction for p in ready if p.transaction])
        conflicted = [p.pending for p, failed in zip(ready, failed_checks, strict=True) if failed]
        conflicted += [p.pending for p in writes if not p.pending.record_written]
        exponent = self._index.segments.sampling_exponent
        sampled = {p.answer.space for p in ready if p.record and sample_entry(p.record.number, exponent)}
        for space in sorted(sampled):
            await self._index.segments.seal_if_full(space, now_ms)
        committed = [p for p in plans if p.pending not in conflicted] if conflicted else plans
        raced, withdrawn = await self._resolve_language_race(
            [p for p in committed if p.transaction is not None]
        )
        if withdrawn:
            conflicted += withdrawn
            committed = [p for p in committed if p.pending not in withdrawn]
        for plan in committed:
            await self._remove_replaced(plan, raced.get(plan.pending.article.id, plan.older_versions))
        if self._dual_writer is not None:
            await self._dual_writer.replicate(
                [PostedArticle(p.pending.article, p.record) for p in committed if p.record]
            )
        return sorted(conflicted, key=lambda p: p.position)

    async def _resolve_language_race(
        self, plans: Sequence[CommitPlan]
    ) -> tuple[dict[str, tuple[BindingSnapshot, ...]], list[PendingArticle]]:
        """Of one id posted in several languages at the same time, let one version stay.

        Returns by id the older versions to remove, and the articles whose version was withdrawn. A version is
        withdrawn if a newer one is stored, or one that its caller may not replace. Its article is decided
        again and not acknowledged: the other version may be withdrawn as well, and then neither is stored.
        Every process checks after its own commit, so the last one sees all versions.
        """
        if not plans or len(self._index.spaces) < 2:
            return {}, []
        found = await self._index.bindings.in_other_spaces(
            {p.pending.article.id: p.answer.space for p in plans}
        )
        older: dict[str, tuple[BindingSnapshot, ...]] = {}
        withdrawn: list[PendingArticle] = []
        for plan in plans:
            id_ = plan.pending.article.id
            others, is_overruled = await self._with_owners(plan, found[id_])
            if is_overruled:
                others = await self._wait_for_withdrawal(plan, others)
                others, is_overruled = await self._with_owners(plan, others)
            if is_overruled or (others and _is_newer(others[0], plan)):
                await self._withdraw(plan)
                withdrawn.append(plan.pending)
            else:
                older[id_] = tuple(others)
        return older, withdrawn

    async def _withdraw(self, plan: CommitPlan) -> None:
        """Remove a committed version again; its article then needs another number and record."""
        await self._index.articles.remove_older(
            plan.answer.space, plan.pending.article.id, below_number=plan.latest_number + 1
        )
        await self._delete_superseded(plan)
        plan.pending.number, plan.pending.record_written = 0, False

    async def _wait_for_withdrawal(
        self, plan: CommitPlan, others: Sequence[BindingSnapshot]
    ) -> Sequence[BindingSnapshot]:
        """The bindings in other spaces, read again while the newest one has a higher number than the plan's.

        Two commits that each see the other must not both be withdrawn again and again: the one with the
        higher number withdraws at once, the other one waits for that. It withdraws as well if the higher one
        stays, because that one may have been acknowledged before this commit.
        """
        for _ in range(MAX_WITHDRAWAL_CHECKS):
            if not others or not _is_newer(others[0], plan):
                break
            others = await self._read_others(plan)
        return others

    async def _read_others(self, plan: CommitPlan) -> Sequence[BindingSnapshot]:
        id_ = plan.pending.article.id
        return (await self._index.bindings.in_other_spaces({id_: plan.answer.space}))[id_]

    async def _with_owners(
        self, plan: CommitPlan, others: Sequence[BindingSnapshot]
    ) -> tuple[Sequence[BindingSnapshot], bool]:
        """The bindings in other spaces, and whether the article's caller may not replace one of them.

        They are read again while the record of one is missing, since that version has left.
        """
        if not others or not plan.pending.sources:
            return others, False
        for _ in range(MAX_WITHDRAWAL_CHECKS):
            records = await self._index.records.read({b.binding.number: b.space for b in others})
            if len(records) == len(others):
                break
            again = await self._read_others(plan)
            if again == others:  # the record alone is lost
                break
            others = again
        return others, not all(is_owned(records.get(b.binding.number), plan.pending.sources) for b in others)

    async def _remove_replaced(self, plan: CommitPlan, older_versions: Sequence[BindingSnapshot]) -> None:
        """Delete the replaced version's record and the id's older versions in other spaces."""
        await self._delete_superseded(plan)
        for older in older_versions:
            removed = await self._index.articles.remove_older(
                older.space,
                older.binding.id,
                below_number=plan.latest_number,
                sources=plan.pending.sources,
            )
            if removed and self._dual_writer is not None:
                await self._dual_writer.replicate_removal([older])

    async def _delete_superseded(self, plan: CommitPlan) -> None:
        """Delete the record of the version that the plan's version replaced, if any."""
        if plan.superseded_number is not None:
            await self._index.records.delete({plan.superseded_number: plan.answer.space})
            if self._dual_writer is not None:
                await self._dual_writer.drop_record(plan.superseded_number)

    async def set_answers(self, plans: Sequence[CommitPlan]) -> None:
        """Set the answers of the articles, with the id of the event that each is part of."""
        groups = list(dict.fromkeys(g for p in plans for g in p.duplicate_groups))
        events = await self._event_ids_of(groups) if self._event_ids_of and groups else {}
        for plan in plans:
            event = next((events[g] for g in plan.duplicate_groups if g in events), None) if events else None
            plan.pending.answer = replace(plan.answer, event_id=event) if event else plan.answer


def _plans_with_writes(plans: Sequence[CommitPlan]) -> list[CommitPlan]:
    return [p for p in plans if p.transaction is not None and p.record is not None]


def _is_newer(other: BindingSnapshot, plan: CommitPlan) -> bool:
    return other.binding.number > plan.latest_number
