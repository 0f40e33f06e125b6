"""Mutants: commit protocols known to be wrong, every one of which the simulation must catch.

Each mutant changes production code through ``monkeypatch`` and names the small program that reveals it.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from aggregator.domain import arrival_ms_of
from aggregator.index import Probe, keys, lookup
from aggregator.index import snapshot as snapshot_module
from aggregator.index.article_stream import ArticleStream
from aggregator.index.articles import Articles
from aggregator.index.bindings import Binding, DuplicateGroup, bindings_to_index, split_undone
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES
from aggregator.index.lookup import Lookup, LookupResult
from aggregator.index.segments import Segments
from aggregator.index.snapshot import SketchWidth, Snapshot
from aggregator.index.transactions import SegmentTransactions
from aggregator.index.upkeep.compaction import Compactor
from aggregator.index.upkeep.maintenance import RetentionJob
from aggregator.index.upkeep.sketch_rehash import SketchRehash
from aggregator.ingest.commit import Committer, PendingArticle
from aggregator.ingest.decide import Decider
from aggregator.ingest.pipeline import BatchPipeline
from aggregator.store import redis as redis_store
from aggregator.store.base import (
    AdvanceVersion,
    AppendCapped,
    AppendMany,
    Check,
    Delete,
    LengthsUnchanged,
    Transaction,
    ValueEquals,
    Write,
)
from tests.simulation.transport import Transport
from tests.support.store_steps import length_equals

Patch = pytest.MonkeyPatch
BINDINGS_TO_INDEX = "aggregator.index.articles.bindings_to_index"
MUTANTS: dict[str, tuple[str, Callable[[Patch], None]]] = {}


def mutant(name: str, program: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Register a function that applies a mutant; ``program`` is a key of ``programs.SMALL``."""

    def register(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[name] = program, patch
        return patch

    return register


def _without(patch: Patch, method: str, dropped: Callable[[Check], bool]) -> None:
    """Leave some checks out of the transactions of a ``SegmentTransactions`` method."""
    original = getattr(SegmentTransactions, method)

    def unchecked(self: SegmentTransactions, *arguments: Any) -> Transaction:
        transaction: Transaction = original(self, *arguments)
        return replace(transaction, checks=tuple(c for c in transaction.checks if not dropped(c)))

    patch.setattr(SegmentTransactions, method, unchecked)


def _is(part: Check | Write, kind: bytes) -> bool:
    """Whether the key of a check or write is of this kind (``index.keys``)."""
    return _suffix(part)[:1] == kind


def _suffix(part: Check | Write) -> bytes:
    """What follows the tag in the key, or in the first of several keys: all have the same tag."""
    key = part.keys[0] if isinstance(part, LengthsUnchanged | AppendMany | AppendCapped) else part.key
    return key[key.index(b"}") + 1 :]


@mutant("bucket lengths are not checked", "two near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: isinstance(c, LengthsUnchanged))


@mutant("merged commits check nothing", "two near-copies")
def _(patch: Patch) -> None:
    original = redis_store.split_into_runs

    def unchecked(transactions: Sequence[Transaction]) -> list[redis_store.CommitRun]:
        return [
            replace(run, transaction=replace(run.transaction, checks=())) if run.is_merged else run
            for run in original(transactions)
        ]

    patch.setattr(redis_store, "split_into_runs", unchecked)


@mutant("sketch bucket lengths are not checked", "a copy found by sketch keys only")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: _is(c, b"s"))


@mutant("trimmed buckets are checked by their length", "a length that comes back under a full key")
def _(patch: Patch) -> None:
    def by_length(bucket_keys: Sequence[bytes], values: Sequence[bytes | None]) -> Iterator[Check]:
        yield LengthsUnchanged(tuple(bucket_keys), tuple(values))

    patch.setattr(lookup, "unchanged_checks", by_length)


@mutant("buckets are checked by value only above the limit", "a length that comes back under a full key")
def _(patch: Patch) -> None:
    original = snapshot_module.unchanged_checks

    def late(bucket_keys: Sequence[bytes], values: Sequence[bytes | None]) -> Iterator[Check]:
        kept, snapshot_module.KEPT_KEY_ENTRIES = snapshot_module.KEPT_KEY_ENTRIES, 3
        try:
            return iter(list(original(bucket_keys, values)))
        finally:
            snapshot_module.KEPT_KEY_ENTRIES = kept

    patch.setattr(lookup, "unchanged_checks", late)


@mutant("a trimmed bucket drops the newest entries", "the newest entry of a full key")
def _(patch: Patch) -> None:
    def keep_oldest(bucket: bytes, remainder: int, full: int, kept: int) -> bytes:
        return bucket[: kept * SKETCH_POSTING_BYTES]

    patch.setattr(snapshot_module, "trim_sketch_key", keep_oldest)


@mutant("a bucket is trimmed without what the batch appended", "full keys trimmed twice in a batch")
def _(patch: Patch) -> None:
    original = Decider._plan_insert

    async def outdated(self: Decider, case: Any) -> Any:
        """Trims the buckets as they were read, without what the batch has appended since."""
        read = case.snapshot.buckets[case.lookup.probe.id][-1]
        values = dict(case.snapshot.values)
        as_read = dict(zip(read.keys, read.values, strict=True))
        insert = SegmentTransactions.insert

        def stale(
            segment: SegmentTransactions, record: Any, outcome: Any, checks: Any, guard: Any, buckets: Any
        ) -> Transaction:
            return insert(segment, record, outcome, checks, guard, {**values, **as_read})

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SegmentTransactions, "insert", stale)
            return await original(self, case)

    patch.setattr(Decider, "_plan_insert", outdated)


@mutant("an insert does not check the sketch width", "a rehash between near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: _suffix(c) == b"width")


@mutant("an update does not check the sketch width", "a rehash during an update")
def _(patch: Patch) -> None:
    _without(patch, "update", lambda c: _suffix(c) == b"width")


@mutant("look-ups trust a cached sketch width", "a rehash between two articles of one writer")
def _(patch: Patch) -> None:
    original = Segments._update_widths

    def trusting(self: Segments, stacks: Any, stored: Any) -> bool:
        original(self, stacks, stored)
        return False

    patch.setattr(Segments, "_update_widths", trusting)


@mutant("look-ups read the new buckets only during a rehash", "a rehash before a copy")
def _(patch: Patch) -> None:
    patch.setattr(SketchWidth, "bits_to_read", property(lambda self: (self.bits,)))
    patch.setattr(SketchWidth, "encode", SketchWidthAsStored.encode)


@mutant("look-ups read the old buckets only during a rehash", "copies during a rehash")
def _(patch: Patch) -> None:
    patch.setattr(SketchWidth, "bits_to_read", property(lambda self: (self.former_bits or self.bits,)))
    patch.setattr(SketchWidth, "encode", SketchWidthAsStored.encode)


class SketchWidthAsStored(SketchWidth):
    """The stored value whatever is read."""

    def encode(self) -> bytes | None:
        if self == SketchWidth():
            return None
        return b"%d>%d" % (self.former_bits, self.bits) if self.former_bits else b"%d" % self.bits


@mutant("entries are appended to the old buckets during a rehash", "copies during a rehash")
def _(patch: Patch) -> None:
    original = SegmentTransactions._posting_writes

    def late(self: SegmentTransactions, *arguments: Any) -> list[Write]:
        width, self._sketch_width = self._sketch_width, SketchWidth(self._sketch_width.bits_to_read[0])
        try:
            return original(self, *arguments)
        finally:
            self._sketch_width = width

    patch.setattr(SegmentTransactions, "_posting_writes", late)


@mutant("a move does not check the new buckets", "an article stored during a rehash")
def _(patch: Patch) -> None:
    _rehash_with(patch, "_move", lambda transaction: _without_checks(transaction, b"s19:"))


@mutant("a move does not check the old buckets", "two rehashes")
def _(patch: Patch) -> None:
    _rehash_with(patch, "_move", lambda transaction: _without_checks(transaction, b"s", b"width"))


@mutant("another sketch width does not advance the version", "a rehash between near-copies")
def _(patch: Patch) -> None:
    def unnoticed(transaction: Transaction) -> Transaction:
        return replace(
            transaction, writes=tuple(w for w in transaction.writes if not isinstance(w, AdvanceVersion))
        )

    _rehash_with(patch, "_change_width", unnoticed)


@mutant("old buckets stay after a move", "an article stored during a rehash")
def _(patch: Patch) -> None:
    def copied(transaction: Transaction) -> Transaction:
        return replace(transaction, writes=tuple(w for w in transaction.writes if not isinstance(w, Delete)))

    _rehash_with(patch, "_move", copied)


def _rehash_with(patch: Patch, method: str, change: Callable[[Transaction], Transaction]) -> None:
    """Change the transactions of a ``SketchRehash`` method."""
    original = getattr(SketchRehash, method)

    async def changed(self: SketchRehash, *arguments: Any) -> Any:
        store = self._store

        class Changing:
            read = store.read

            async def commit(self, transaction: Transaction) -> tuple[int, ...]:
                return await store.commit(change(transaction))

        self._store = Changing()  # type: ignore[assignment]
        try:
            return await original(self, *arguments)
        finally:
            self._store = store

    patch.setattr(SketchRehash, method, changed)


def _without_checks(transaction: Transaction, *kinds: bytes) -> Transaction:
    """Leave out the checks of keys whose part after the tag begins with one of ``kinds``."""
    kept = [c for c in transaction.checks if not _suffix(c).startswith(kinds)]
    return replace(transaction, checks=tuple(kept))


@mutant("a rehash ends before all is moved", "two rehashes")
def _(patch: Patch) -> None:
    original = SketchRehash._move

    async def partly(self: SketchRehash, tag: bytes, width: Any, values: Sequence[int]) -> bool:
        return values[0] < 1 << 17 or await original(self, tag, width, values)

    patch.setattr(SketchRehash, "_move", partly)


@mutant(
    "sealed segments are compacted during a rehash", "removed articles in a sealed segment during a rehash"
)
def _(patch: Patch) -> None:
    patch.setattr(SketchWidth, "is_rehashing", False)


@mutant("an insert does not check the id", "a retry of an exact copy")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: _is(c, b"i"))


@mutant("an update does not check the id", "two updates of one id")
def _(patch: Patch) -> None:
    _without(patch, "update", lambda c: _is(c, b"i"))


@mutant("the match is not checked", "delete races a copy")
def _(patch: Patch) -> None:
    original = Lookup.commit_checks
    patch.setattr(
        Lookup,
        "commit_checks",
        lambda self, snapshot, probe, changed, numbers, match=None: original(
            self, snapshot, probe, changed, numbers
        ),
    )


@mutant("index entries are written after the commit", "two near-copies")
def _(patch: Patch) -> None:
    original = Transport.commit_many

    async def in_two_steps(self: Transport, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        results = []
        for transaction in transactions:
            others = tuple(w for w in transaction.writes if not _is_entry(w))
            results += await original(self, [replace(transaction, writes=others)])
            if not results[-1]:
                await original(self, [Transaction((), tuple(w for w in transaction.writes if _is_entry(w)))])
        return results

    patch.setattr(Transport, "commit_many", in_two_steps)


def _is_entry(write: Write) -> bool:
    return isinstance(write, AppendMany) and (_is(write, b"b") or _is(write, b"s"))


@mutant("the group is not checked", "delete races a copy")
def _(patch: Patch) -> None:
    _group_with(patch, lambda checks: ())


@mutant("the list of copies is checked by its length", "a copy joins while another leaves")
def _(patch: Patch) -> None:
    def by_length(checks: tuple[ValueEquals, ...]) -> tuple[Check, ...]:
        return (
            length_equals(checks[0].key, len(checks[0].value or b"")),
            *(c for c in checks[1:] if c.value),
        )

    _group_with(patch, by_length)


@mutant("the canonical binding is not checked", "the canonical text changes")
def _(patch: Patch) -> None:
    _group_with(patch, lambda checks: (checks[0], *checks[2:]))


def _group_with(patch: Patch, checks: Callable[[Any], tuple[Check, ...]]) -> None:
    """Replace the checks that a duplicate group is unchanged."""
    original = Articles._read_group

    async def altered(self: Articles, *arguments: Any) -> Any:
        group, canonical = await original(self, *arguments)
        return replace(group, unchanged_checks=checks(group.unchanged_checks)), canonical

    patch.setattr(Articles, "_read_group", altered)


@mutant("a group that joins is not checked", "members leave a united group")
def _(patch: Patch) -> None:
    original = Articles.join

    async def unchecked(self: Articles, *arguments: Any) -> Any:
        return [], *(await original(self, *arguments))[1:]

    patch.setattr(Articles, "join", unchecked)


@mutant("conflicts earlier in the batch are ignored", "a copy between the articles of a batch")
def _(patch: Patch) -> None:
    _without_batch_checks(patch)


def _without_batch_checks(patch: Patch) -> None:
    """Leave out the checks that earlier articles of the batch were committed as decided."""
    original = Lookup.commit_checks

    def unchecked(self: Lookup, snapshot: Snapshot, *rest: Any) -> list[Check]:
        return original(self, replace(snapshot, writers={}), *rest)

    patch.setattr(Lookup, "commit_checks", unchecked)


@mutant("conflicts of the batch before are ignored", "overlapping batches")
def _(patch: Patch) -> None:
    _without_batch_checks(patch)
    original = BatchPipeline.process_all
    conflicted: dict[BatchPipeline, list[PendingArticle]] = {}

    async def finish_commit(self: BatchPipeline, in_flight: Any) -> bool:
        if in_flight.commit is not None:
            commit, in_flight.commit, in_flight.committing = in_flight.commit, None, None
            conflicted.setdefault(self, []).extend(await commit)
        return True

    async def process_all(self: BatchPipeline, batches: Sequence[list[PendingArticle]]) -> None:
        conflicted.pop(self, None)
        await original(self, batches)
        await self.process(conflicted.pop(self, []))

    patch.setattr(BatchPipeline, "_finish_commit", finish_commit)
    patch.setattr(BatchPipeline, "process_all", process_all)


@mutant("versions in other languages stay", "one id in two languages at once")
def _(patch: Patch) -> None:
    original = Committer._remove_replaced

    async def partly(self: Committer, plan: Any) -> None:
        await original(self, replace(plan, older_versions=()))

    patch.setattr(Committer, "_remove_replaced", partly)


@mutant("entries of a removed text are not passed on", "update leaves an exact copy")
def _(patch: Patch) -> None:
    patch.setattr(BINDINGS_TO_INDEX, lambda *arguments: [])


@mutant("entries of a removed exact copy are not passed on", "exact copies removed one after another")
def _(patch: Patch) -> None:
    def not_for_exact_copies(removed: Binding, *rest: Any) -> Sequence[Binding]:
        exact = removed.outcome.match is not None and removed.outcome.match.rule == "exact"
        return [] if exact else bindings_to_index(removed, *rest)

    patch.setattr(BINDINGS_TO_INDEX, not_for_exact_copies)


@mutant("a record keeps an outdated first version", "two updates of one id")
def _(patch: Patch) -> None:
    original = Decider._assign_number

    async def keeping(self: Decider, case: Any, first_version: int) -> Any:
        if case.pending.record_written:
            case = replace(case, now_ms=arrival_ms_of(case.pending.number), newest_number=0)
            return await original(self, case, case.pending.first_version)
        return await original(self, case, first_version)

    patch.setattr(Decider, "_assign_number", keeping)


@mutant("a sealed segment accepts articles", "a seal between near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: _suffix(c) == b"closed")


@mutant("a sealed segment accepts deletes", "a delete over a seal")
def _(patch: Patch) -> None:
    _without(patch, "delete", lambda c: _suffix(c) == b"closed")


@mutant("the head advances before the segment is sealed", "a seal between near-copies")
def _(patch: Patch) -> None:
    async def interrupted(self: Segments, space: str, number: int, now_ms: int) -> None:
        await self._advance_writable(space, number + 1)  # and here the process dies

    patch.setattr(Segments, "seal", interrupted)


@mutant("look-ups trust a cached head", "a look-up over a seal")
def _(patch: Patch) -> None:
    original = Segments.read_keys

    async def trusting(self: Segments, builders: Any, others: Any = ()) -> Any:
        width = SketchWidth()
        if not any(key.startswith(b"b") for builder in builders.values() for key in builder(b"", width)):
            return await original(self, builders, others)
        await self._load_heads(builders)
        stacks = {space: self._stacks[space] for space in builders}
        all_keys = [
            key
            for space, stack in stacks.items()
            for tag in stack.tags
            for key in builders[space](tag, width)
        ]
        all_keys += others
        values = await self._store.read(all_keys)
        return Snapshot(stacks, dict(zip(all_keys, values, strict=True)))

    patch.setattr(Segments, "read_keys", trusting)


@mutant("a delete uncovers the value in an older segment", "a frozen article is deleted")
def _(patch: Patch) -> None:
    patch.setattr(SegmentTransactions, "_removal_write", lambda self, key: Delete(key))


@mutant("sealed buckets are not read", "a seal between near-copies")
def _(patch: Patch) -> None:
    evaluate = Lookup.evaluate_probes

    def writable_only(self: Lookup, snapshot: Snapshot, probes: Sequence[Probe]) -> list[LookupResult]:
        read = copy.copy(snapshot)
        read.buckets = {id_: segments[-1:] for id_, segments in snapshot.buckets.items()}
        return evaluate(self, read, probes)

    patch.setattr(Lookup, "evaluate_probes", writable_only)


@mutant("the oldest segment wins", "a frozen article is updated")
def _(patch: Patch) -> None:
    def oldest(self: Snapshot, space: str, key: bytes) -> bytes | None:
        return next((v for tag in self.stacks[space].tags if (v := self.values.get(tag + key))), None)

    patch.setattr(Snapshot, "newest_value", oldest)


@mutant("the stream moves to the next segment too early", "the stream over a seal")
def _(patch: Patch) -> None:
    async def hasty(self: ArticleStream, tags: Any, after: Any, count: int) -> Any:
        entries = await self._store.stream_read([tag + keys.STREAM for tag in tags], after, count)
        return await self._store.read([tag + keys.SEALED for tag in tags]), entries

    patch.setattr(ArticleStream, "_read_with_sealed", hasty)


@mutant("the writable segment is compacted", "a length that comes back")
def _(patch: Patch) -> None:
    original = Compactor._compact_segment

    async def greedy(self: Compactor, stack: Any, number: int, cursor: int, dead: Any) -> Any:
        for segment in (number, stack.last):
            async for step in original(self, stack, segment, 0, dead):
                yield step

    patch.setattr(Compactor, "_compact_segment", greedy)


@mutant("tombstones are deleted before the entries", "removed articles in a sealed segment")
def _(patch: Patch) -> None:
    async def idle(self: Compactor, *arguments: Any) -> AsyncIterator[None]:
        steps: tuple[None, ...] = ()
        for step in steps:
            yield step

    patch.setattr(Compactor, "_compact_segment", idle)


@mutant("tombstones of the writable segment are deleted", "a removed article in the writable segment")
def _(patch: Patch) -> None:
    original = Compactor._delete_dead_versions

    async def greedy(self: Compactor, tag: bytes, numbers: Any) -> AsyncIterator[None]:
        writable = keys.tag(keys.space_of(tag), keys.segment_of(tag) + 1)
        marked = (await self._store.read([writable + keys.DEAD_NUMBERS]))[0]
        writable_numbers = np.frombuffer(marked or b"", "<u8").tolist()
        for each_tag, dead in ((tag, numbers), (writable, writable_numbers)):
            async for step in original(self, each_tag, dead):
                yield step

    patch.setattr(Compactor, "_delete_dead_versions", greedy)


@mutant("segments with live articles are dropped", "a sealed segment with live articles")
def _(patch: Patch) -> None:
    async def always(self: RetentionJob, *arguments: Any) -> bool:
        return True

    patch.setattr(RetentionJob, "_is_expired", always)


@mutant("an exact copy shares entries indefinitely", "an exact copy long after")
def _(patch: Patch) -> None:
    patch.setattr(
        SegmentTransactions,
        "_may_share_entries",
        lambda self, record, outcome: bool(outcome.match and outcome.match.rule == "exact"),
    )


@mutant("an expired original returns as a copy of its copies", "an original comes back")
def _(patch: Patch) -> None:
    original = Decider._plan_insert

    async def unaware(self: Decider, case: Any) -> Any:
        case.candidates = [
            replace(c, canonical=(c.canonical[0] + "?", c.canonical[1])) for c in case.candidates
        ]
        return await original(self, case)

    patch.setattr(Decider, "_plan_insert", unaware)


@mutant("a take-down refuses only the text that it read first", "a take-down races a batch")
def _(patch: Patch) -> None:
    original = Articles._remove

    async def once(self: Articles, snapshot: Any, known: Any, before: Any = None, **rest: Any) -> Any:
        if before is not None:
            await before(known)
        return await original(self, snapshot, known, **rest)

    patch.setattr(Articles, "_remove", once)


@mutant("a text is refused after its article was removed", "a take-down and its text again")
def _(patch: Patch) -> None:
    original = Articles.delete

    async def late(self: Articles, id_: str, before_removal: Any = None, **rest: Any) -> Any:
        removed = await original(self, id_, **rest)
        for known in removed if before_removal is not None else ():
            await before_removal(known)
        return removed

    patch.setattr(Articles, "delete", late)


@mutant("a refused text is stored", "a take-down and its text again")
def _(patch: Patch) -> None:
    async def never(*arguments: Any) -> None:
        return None

    patch.setattr(Decider, "refusal", never)


@mutant("undoing promotes a copy that was dropped", "undoing races a copy")
def _(patch: Patch) -> None:
    patch.setattr("aggregator.index.articles.split_undone", lambda undone, group: (group, []))


@mutant("undoing does not check its group", "undoing races exact copies")
def _(patch: Patch) -> None:
    def unchecked(undone: Binding, group: DuplicateGroup) -> Any:
        staying, left = split_undone(undone, group)
        return replace(staying, unchanged_checks=()), left

    patch.setattr("aggregator.index.articles.split_undone", unchecked)
