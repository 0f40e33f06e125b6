"""Stored articles by id: reading, groups of duplicates, updates and deletes.

Bindings, states and duplicate lists are changed in the writable segment only, whichever segment the article
was inserted into: a value there overrides the frozen segments (``snapshot.py``). So an article of a frozen
segment can be matched, updated, deleted and promoted in one commit of one segment. Duplicate lists add up
over the segments; a row whose binding no longer belongs to the group is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from aggregator.analysis.shingles import distinct
from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.grouping import IsCopy, leaving
from aggregator.domain import ArticleRecord, Match, Outcome, StreamItem
from aggregator.errors import DamagedValue
from aggregator.index import keys
from aggregator.index.article_stream import record_fields
from aggregator.index.bindings import (
    Binding,
    Bindings,
    BindingSnapshot,
    DuplicateGroup,
    binding_in_space,
    bindings_to_index,
    expired_error,
    foreign_article_error,
    is_owned,
    next_canonical,
    shares_entries,
    split_undone,
)
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import ArticleNumbers, decode_numbers
from aggregator.index.codec.record_codec import decode_record_summary_uncached
from aggregator.index.records import Records
from aggregator.index.segments import Segments, scan_block
from aggregator.index.snapshot import SegmentStack, Snapshot
from aggregator.index.transactions import NO_LEADERS, SegmentTransactions
from aggregator.store.base import Check, Store, Transaction, Write
from aggregator.store.optimistic import commit_attempts

# Dead numbers per space that ``orphaned_records`` examines: a delete that failed is repeated soon.
RECENT_DEAD_LIMIT = 1024

BeforeRemoval = Callable[[BindingSnapshot], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StoredArticle:
    """An article as it is stored now."""

    record: ArticleRecord
    outcome: Outcome

    @property
    def group(self) -> int:
        """The number of its duplicate group: the first version of the canonical article."""
        return self.outcome.group(self.record.first_version)


class Articles:
    """Reads and changes stored articles. ``transactions``, ``plans``: see ``Index``."""

    def __init__(
        self,
        store: Store,
        segments: Segments,
        records: Records,
        bindings: Bindings,
        transactions: Callable[[SegmentStack], SegmentTransactions],
    ) -> None:
        self._store = store
        self._segments = segments
        self._records = records
        self._bindings = bindings
        self._transactions = transactions

    async def get(self, id_: str) -> StoredArticle:
        """The article stored under an id. Raises NotFound, Expired."""
        known = await self._bindings.find(id_)
        number = known.binding.number
        record = (await self._records.read({number: known.space})).get(number)
        if record is None:
            raise expired_error(id_)
        return StoredArticle(record, known.binding.outcome)

    async def get_many(self, ids: Sequence[str]) -> dict[str, StoredArticle]:
        """The stored articles among these ids: two round trips."""
        found = await self._bindings.find_many(ids)
        records = await self._records.read({known.binding.number: known.space for known in found.values()})
        return {
            id_: StoredArticle(records[known.binding.number], known.binding.outcome)
            for id_, known in found.items()
            if known.binding.number in records
        }

    async def current(self, spaces_by_number: Mapping[int, str]) -> dict[int, StoredArticle]:
        """Those of the versions that are bound to their ids now, by number: two round trips."""
        records = await self._records.read(spaces_by_number)
        bound = await self._bindings.find_many([record.id for record in records.values()])
        return {
            number: StoredArticle(record, known.binding.outcome)
            for number, record in records.items()
            if (known := bound.get(record.id)) is not None and known.binding.number == number
        }

    async def group_members(self, id_: str, limit: int | None = None) -> list[ArticleRecord]:
        """The duplicate group of an id: the canonical article first, then by arrival.

        ``limit``: of the number of articles, beyond the canonical one and the one with this id. Raises
        NotFound, Expired.
        """
        snapshot, found = await self._bindings.find_all(id_)
        known = found[0]
        group, canonical = await self._read_group(snapshot, known, limit)
        bindings = [m.binding for m in (canonical, *group.members) if m is not None]
        by_id = {binding.id: binding for binding in (*bindings, known.binding)}
        ordered = sorted(by_id.values(), key=lambda b: (b.outcome.match is not None, b.first_version))
        records = await self._records.read({binding.number: known.space for binding in ordered})
        return [records[binding.number] for binding in ordered if binding.number in records]

    async def numbers(self, space: str) -> ArticleNumbers:
        """Article numbers of all versions with postings that have not expired, ascending; (n,).

        Versions that left are included. They are sorted in a thread: 10^7 of them take 0.2 s.
        """
        stack = await self._segments.stack(space)
        found = [np.empty(0, np.uint64)]
        for tag in stack.tags:
            async for bucket in scan_block(self._store, tag):
                found.append(decode_numbers(bucket, PLAN.remainder_bytes))
        return await asyncio.to_thread(_not_expired, found, stack.floor)

    async def load_items(self, space: str, numbers: Sequence[int]) -> list[StreamItem]:
        """Those of the versions that are current, with their verdicts: two round trips."""
        values = await self._store.read([keys.record(space, number) for number in numbers])
        records = [
            decode_record_summary_uncached(data, space, number)
            for number, data in zip(numbers, values, strict=True)
            if data is not None
        ]
        binding_keys = [keys.binding(record.id) for record in records]
        snapshot = await self._segments.read({space: binding_keys})
        items = []
        for record, key in zip(records, binding_keys, strict=True):
            known = binding_in_space(snapshot, space, key)
            if known is not None and known.binding.number == record.number:
                items.append(
                    StreamItem(
                        number=record.number,
                        first_version=record.first_version,
                        id=record.id,
                        verdict=known.binding.outcome.verdict,
                        arrived_ms=record.arrived_ms,
                        **record_fields(record),
                    )
                )
        return items

    async def update_metadata(self, known: BindingSnapshot, record: ArticleRecord) -> None:
        """Replace the metadata of a stored version; its record is deleted again if it left meanwhile."""
        await self._records.replace(record)
        key = keys.binding(record.id)
        current = binding_in_space(await self._segments.read({known.space: [key]}), known.space, key)
        if current is None or current.binding.number != record.number:
            await self._records.delete({record.number: record.space})

    async def update_transaction(
        self, snapshot: Snapshot, known: BindingSnapshot, record: ArticleRecord, outcome: Outcome
    ) -> Transaction:
        """The transaction that stores ``record`` as the new version of ``known``, read in ``snapshot``."""
        group, canonical = await self._read_group(snapshot, known)
        to_index = bindings_to_index(known.binding, _remaining_members(known, group, canonical))
        records = await self._read_records(record.space, to_index)
        return self._transactions(snapshot.stacks[record.space]).update(
            known, record, outcome, group, list(records.values())
        )

    async def join(
        self, snapshot: Snapshot, heads: Sequence[ArticleRecord]
    ) -> tuple[list[Check], list[Write], list[bytes]]:
        """What makes the groups of canonical articles one, in the commit of the article that shows it.

        ``heads``, the oldest first, are of one space. Also returns the id hashes of those that join it. One
        that an earlier article of a batch stores is not found: then the checks fail, and it is repeated.
        """
        oldest, space = heads[0], heads[0].space
        transactions = self._transactions(snapshot.stacks[space])
        checks: list[Check] = [snapshot.unchanged_check(space, keys.state(head.number)) for head in heads]
        writes: list[Write] = []
        joining: list[bytes] = []
        for head in heads[1:]:
            key, distance = keys.binding(head.id), hamming_distance(head.fingerprint, oldest.fingerprint)
            read = await self._segments.read_more(snapshot, space, [key])
            checks.append(read.unchanged_check(space, key))
            known, first = binding_in_space(read, space, key), oldest.first_version
            if known is not None and known.binding.outcome.match is None:
                group, _ = await self._read_group(snapshot, known)
                link = Match(oldest.id, oldest.number, oldest.id, first, distance, None, "overlap")
                checks += group.unchanged_checks
                writes += transactions.join(known, group, link)
                joining += [keys.id_hash(m.binding.id) for m in (known, *group.members)]
        return checks, writes, joining

    async def split(self, id_: str, is_copy: IsCopy) -> Mapping[str, Binding]:
        """Let the members that are no copies of a canonical article leave its group.

        Returns their new canonical articles, as they were, by the ids of members.
        """
        for _ in commit_attempts(_conflict_message(id_)):
            snapshot, found = await self._bindings.find_all(id_)
            known = found[0]
            group, _canonical = await self._read_group(snapshot, known)
            is_canonical = known.binding.outcome.match is None
            leaders, to_index, promoted = await self._examine(known, group, is_copy if is_canonical else None)
            transaction = self._transactions(snapshot.stacks[known.space]).split(
                known, group, to_index, promoted, leaders
            )
            if not leaders or not await self._store.commit(transaction):
                return leaders
        raise AssertionError("unreachable")

    async def mark_notices(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Mark the texts of articles as none; the outcomes of those that were not marked before, by id."""
        found = (await self._bindings.find_many(ids)).values()
        unmarked = [known for known in found if known.binding.outcome.text_is_article]
        marks = [self._transactions(await self._segments.stack(k.space)).mark_notice(k) for k in unmarked]
        failed = await self._store.commit_many(marks)
        return {k.binding.id: k.binding.outcome for k, f in zip(unmarked, failed, strict=True) if not f}

    async def _examine(
        self, canonical: BindingSnapshot, group: DuplicateGroup, is_copy: IsCopy | None
    ) -> tuple[Mapping[str, Binding], list[ArticleRecord], list[ArticleRecord]]:
        """Who leaves the group of ``canonical``: ``leaders``, records to index, and those promoted."""
        members = {m.binding.id: m.binding for m in group.members}
        wanted = [canonical.binding, *members.values()] if is_copy is not None and members else []
        records = {r.id: r for r in (await self._read_records(canonical.space, wanted)).values()}
        own = records.pop(canonical.binding.id, None)
        if own is None or is_copy is None:
            return NO_LEADERS, [], []
        left = leaving(own, records.values(), is_copy)
        texts = {members[id_].text_hash for id_ in left}
        return (
            {id_: members[leader] for id_, leader in left.items()},
            [r for r in records.values() if r.text_hash in texts and shares_entries(members[r.id])],
            [records[id_] for id_, leader in left.items() if id_ == leader],
        )

    async def delete(
        self,
        id_: str,
        *,
        sources: Sequence[str] = (),
        is_copy: IsCopy | None = None,
        before_removal: BeforeRemoval | None = None,
        undo: bool = False,
    ) -> list[BindingSnapshot]:
        """Delete an article; its duplicates are repointed to the earliest one left.

        Those that are no copies of that by ``is_copy`` leave the group. ``before_removal`` is awaited with
        each binding before it is removed, again if it changes meanwhile. ``undo``: with ``split_undone``.
        Raises NotFound, Expired, and Forbidden for an article of none of ``sources`` (empty: of any). Returns
        the deleted bindings; the caller deletes their records last, so that a retry completes the delete.
        """
        for _ in commit_attempts(_conflict_message(id_)):
            snapshot, found = await self._bindings.find_all(id_)
            if not all(is_owned(known.binding, sources) for known in found):
                raise foreign_article_error(id_, sources)
            removed = list[BindingSnapshot]()
            for known in found:
                removed += await self._remove(
                    snapshot, known, sources=sources, is_copy=is_copy, before=before_removal, undo=undo
                )
            if removed:
                return removed
        raise AssertionError("unreachable")

    async def orphaned_records(self, id_: str) -> list[ArticleRecord]:
        """Records of recently deleted versions of an id that a crash before the clean-up left behind."""
        tags = {space: (await self._segments.stack(space)).writable_tag for space in self._bindings.spaces}
        dead_by_space = await self._store.read([tag + keys.DEAD_NUMBERS for tag in tags.values()])
        spaces_by_number: dict[int, str] = {}
        for space, dead in zip(tags, dead_by_space, strict=True):
            latest = np.frombuffer(dead or b"", "<u8")[-RECENT_DEAD_LIMIT:]
            spaces_by_number.update(dict.fromkeys(latest.tolist(), space))
        records = await self._records.read(spaces_by_number)
        return [record for record in records.values() if record.id == id_]

    async def remove_older(self, older: BindingSnapshot, *, below_number: int) -> list[BindingSnapshot]:
        """Undo the article of an id in another space if its number is smaller; what was removed."""
        key = keys.binding(older.binding.id)
        snapshot = await self._segments.read({older.space: [key]})
        known = binding_in_space(snapshot, older.space, key)
        return await self._remove(snapshot, known, below_number=below_number, undo=True) if known else []

    async def _remove(
        self,
        snapshot: Snapshot,
        known: BindingSnapshot,
        *,
        below_number: int | None = None,
        sources: Sequence[str] = (),
        is_copy: IsCopy | None = None,
        before: BeforeRemoval | None = None,
        undo: bool = False,
    ) -> list[BindingSnapshot]:
        """Remove an owned binding, whatever version it binds meanwhile; what was removed, maybe nothing."""
        space, key = known.space, keys.binding(known.binding.id)
        for _ in commit_attempts(_conflict_message(known.binding.id)):
            if below_number is not None and known.binding.number >= below_number:
                return []
            if before is not None:
                await before(known)
            transaction, removed = await self.removal_transaction(snapshot, known, is_copy, undo=undo)
            if not await self._store.commit(transaction):
                return removed
            snapshot = await self._segments.read({space: [key]})
            current = binding_in_space(snapshot, space, key)
            if current is None or not is_owned(current.binding, sources):
                return []
            known = current
        raise AssertionError("unreachable")

    async def removal_transaction(
        self, snapshot: Snapshot, known: BindingSnapshot, is_copy: IsCopy | None = None, *, undo: bool = False
    ) -> tuple[Transaction, list[BindingSnapshot]]:
        """The transaction that removes ``known`` as by ``delete``, and all that it removes."""
        group, canonical = await self._read_group(snapshot, known)
        group, others = split_undone(known.binding, group) if undo else (group, list[BindingSnapshot]())
        is_canonical = known.binding.outcome.match is None
        new_canonical = next_canonical(known.binding, group) if is_canonical else canonical
        promoted = new_canonical.binding if is_canonical and new_canonical else None
        removed, remaining = [known, *others], _remaining_members(known, group, canonical)
        entering = [b for each in removed for b in bindings_to_index(each.binding, remaining, promoted)]
        to_index = list({b.number: b for b in entering}.values())
        records = await self._read_records(known.space, [*to_index, promoted] if promoted else to_index)
        own = dict[int, ArticleRecord]()
        with suppress(DamagedValue):
            own = await self._read_records(known.space, [each.binding for each in removed])
        leaders, indexed, leading = NO_LEADERS, list[ArticleRecord](), list[ArticleRecord]()
        if new_canonical is not None and is_canonical:
            leaders, indexed, leading = await self._examine(new_canonical, group, is_copy)
        transaction = self._transactions(snapshot.stacks[known.space]).delete(
            known,
            group,
            new_canonical,
            [*indexed, *(records[b.number] for b in to_index if b.number in records)],
            [*leading, *(r for n, r in records.items() if promoted and n == promoted.number)],
            leaders,
            others,
            own,
        )
        return transaction, removed

    async def _read_group(
        self, snapshot: Snapshot, known: BindingSnapshot, limit: int | None = None
    ) -> tuple[DuplicateGroup, BindingSnapshot | None]:
        """The group of a binding (``limit`` members of it) and its canonical binding, maybe ``known``."""
        space, match = known.space, known.binding.outcome.match
        group_number = known.binding.group
        list_key = keys.duplicate_ids(group_number)
        canonical_key = keys.binding(match.canonical_id if match else known.binding.id)
        read = await self._segments.read_more(snapshot, space, [list_key, canonical_key])
        canonical = binding_in_space(read, space, canonical_key)
        if canonical is not None and canonical.binding.first_version != group_number:
            canonical = None  # expired, and its id was inserted again
        rows = b"".join(filter(None, read.values_in_all_segments(space, [list_key])))
        id_hashes = dict.fromkeys(rows[i : i + 16] for i in range(0, len(rows), 16))
        member_keys = [keys.BINDING + id_hash for id_hash in list(id_hashes)[:limit]]
        members_read = await self._segments.read_more(snapshot, space, member_keys)
        found = [binding_in_space(members_read, space, key) for key in member_keys]
        bound = [(m, m.binding.outcome.match) for m in found if m is not None]
        members = [m for m, match in bound if match and match.canonical_first == group_number]
        checks = [read.unchanged_check(space, list_key), read.unchanged_check(space, canonical_key)]
        checks += [members_read.unchanged_check(space, key) for key in member_keys]
        return DuplicateGroup(group_number, tuple(members), tuple(checks)), canonical

    async def _read_records(self, space: str, bindings: Sequence[Binding]) -> dict[int, ArticleRecord]:
        return await self._records.read(dict.fromkeys((b.number for b in bindings), space))


def _remaining_members(
    known: BindingSnapshot, group: DuplicateGroup, canonical: BindingSnapshot | None
) -> list[Binding]:
    members = (canonical, *group.members)
    return [m.binding for m in members if m is not None and m.binding.id != known.binding.id]


def _conflict_message(id_: str) -> str:
    return f"The article {id_[:200]!r} kept changing while it was deleted; try again."


def _not_expired(parts: Sequence[ArticleNumbers], floor: int) -> ArticleNumbers:
    numbers = distinct(np.concatenate(parts))
    return numbers[numbers.searchsorted(np.uint64(floor)) :]
