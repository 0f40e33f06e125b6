"""Commit plans and their execution: records first, then one atomic commit per article, then clean-up.

``PendingArticle`` keeps the article's number and record across attempts, ``CommitPlan`` is the decision of
one. An article whose commit found the store changed is **conflicted**: it is looked up and decided again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from aggregator.dedup.grouping import is_stored_copy
from aggregator.dedup.other_news import AGREEING
from aggregator.dedup.policy import Profile
from aggregator.dedup.verdict import Candidate
from aggregator.domain import Analysis, Answer, Article, ArticleRecord
from aggregator.errors import AggregatorError, CommitConflict, Expired, NotFound
from aggregator.index import Index, keys
from aggregator.index.bindings import Binding, BindingSnapshot
from aggregator.index.codec.record_codec import compress_text
from aggregator.index.segments import sample_entry
from aggregator.ingest.dual_write import DualWriter, PostedArticle
from aggregator.store.base import Transaction

# First numbers of duplicate groups -> id of the event of each group that is part of one.
EventIdsOf = Callable[[Sequence[int]], Awaitable[dict[int, str]]]


@dataclass(slots=True, eq=False)
class PendingArticle:
    """An article with its analysis; ``position`` is its index in the request.

    ``number`` and ``first_version`` are those of its record (0: not assigned), which is stored if
    ``record_written``: a retry after a conflict writes no second record unless its contents differ.
    ``sources``: those whose articles alone the caller may replace; () for all. ``profile`` is selected once,
    so that a retry decides by the same. ``posted_id``: the id that was sent, if it is stored under another.
    """

    position: int
    article: Article
    analysis: Analysis
    number: int = 0
    first_version: int = 0
    record_written: bool = False
    answer: Answer | AggregatorError | None = None
    sources: tuple[str, ...] = ()
    profile: Profile = field(default_factory=Profile)
    posted_id: str = ""
    withdrawn: tuple[str, ...] = ()
    withheld: bool = False  # answered and not stored, since its source is untrusted


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The decision on one article, and everything its commit needs.

    ``transaction`` is None for a repeat, ``record`` for a repeat whose record has expired.
    ``older_versions``: bindings in other languages, to be removed. ``duplicate_groups``: first numbers, own
    group first. ``removed``: what leaves with the former article of its id. ``joining``: id hashes of
    articles that join its group. ``notices``: the candidates with its text, if that is no article.
    """

    pending: PendingArticle
    answer: Answer
    transaction: Transaction | None
    record: ArticleRecord | None
    latest_number: int
    superseded_number: int | None
    older_versions: tuple[BindingSnapshot, ...]
    duplicate_groups: tuple[int, ...]
    removed: Sequence[BindingSnapshot] = ()
    joining: Sequence[bytes] = ()
    notices: Sequence[Candidate] = ()


class Committer:
    """Stores the articles of commit plans and sets their answers, with the events from ``event_ids_of``."""

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
        missing = [p for p in plans if p.transaction and p.record and not p.pending.record_written]
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
        writes = [p for p in plans if p.transaction and p.record]
        ready = [p for p in writes if p.pending.record_written]
        failed_checks = await self._index.store.commit_many([p.transaction for p in ready if p.transaction])
        conflicted = [p.pending for p, failed in zip(ready, failed_checks, strict=True) if failed]
        conflicted += [p.pending for p in writes if not p.pending.record_written]
        exponent = self._index.segments.sampling_exponent
        sampled = {p.answer.space for p in ready if p.record and sample_entry(p.record.number, exponent)}
        for space in sorted(sampled):
            await self._index.segments.seal_if_full(space, now_ms)
        committed = [p for p in plans if p.pending not in conflicted] if conflicted else plans
        self._index.memory.pending += sum(plan.record is not None for plan in committed)
        for plan in committed:
            if plan.superseded_number is not None or plan.older_versions:
                await self._remove_replaced(plan)
        moved = [hashed for plan in committed for hashed in plan.joining]
        for plan in committed:
            if plan.notices:
                moved += await self._withdraw(plan.pending, plan.notices)
        if self._dual_writer is not None:
            posted = [PostedArticle(p.pending.article, p.record) for p in committed if p.record]
            await self._dual_writer.replicate(posted, moved)
        return sorted(conflicted, key=lambda p: p.position)

    async def _remove_replaced(self, plan: CommitPlan) -> None:
        removed = list(plan.removed)
        for older in plan.older_versions:
            removed += await self._index.articles.remove_older(older, below_number=plan.latest_number)
        numbers = {known.binding.number: known.space for known in removed}
        if plan.superseded_number is not None:
            numbers[plan.superseded_number] = plan.answer.space
        if self._dual_writer is not None:
            await self._dual_writer.replicate_removal(removed)
            await self._dual_writer.drop_records(list(numbers))
        await self._index.records.delete(numbers)
        plan.pending.withdrawn = tuple(k.binding.id for k in removed if k.binding.id != plan.answer.id)

    async def _withdraw(self, pending: PendingArticle, notices: Sequence[Candidate]) -> list[bytes]:
        """Withdraw the verdicts on pages whose text is no article; the id hashes of those that changed.

        A page whose headline occurs in the text, such as that of the notice itself, is about it and stays.
        """
        is_copy = partial(is_stored_copy, policy=pending.profile.policy, notice=pending.analysis)
        left = dict[str, Binding]()
        duplicates = [c for c in notices if c.canonical[1] != c.record.first_version]
        for id_ in dict.fromkeys(c.canonical[0] for c in duplicates):
            with suppress(NotFound, Expired, CommitConflict):  # the next such article finds the rest
                left |= await self._index.articles.split(id_, is_copy)
        pages = [c.record.id for c in notices if c.record.own_headline <= AGREEING]
        marked = await self._index.articles.mark_notices(pages)
        withdrawn = [b.id for key, b in left.items() if b.id == key and b.outcome.verdict == "duplicate"]
        withdrawn += [id_ for id_, outcome in marked.items() if outcome.keep]
        pending.withdrawn += tuple(dict.fromkeys(withdrawn))
        return [keys.id_hash(id_) for id_ in {**left, **marked}]

    async def set_answers(self, plans: Sequence[CommitPlan]) -> None:
        """Set the answers of the articles, with the id of the event that each is part of."""
        groups = list(dict.fromkeys(g for p in plans for g in p.duplicate_groups))
        events = await self._event_ids_of(groups) if self._event_ids_of and groups else {}
        for plan in plans:
            event = next((events[g] for g in plan.duplicate_groups if g in events), None)
            plan.pending.answer = replace(plan.answer, event_id=event, withdrawn=plan.pending.withdrawn)
