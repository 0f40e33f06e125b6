"""What one insert, update or delete changes in a segment: pure, as one transaction each.

A transaction says what its author believes (checks) and what follows from it (writes); the store
applies all of it or none. That alone makes "exactly one of several simultaneous near-copies is
new": whoever commits second finds a bucket longer than it read, and decides again (optimistic
commit; model-checked, ARCHITECTURE.md "The commit").

Nothing is ever removed from a bucket: the length is its version. An article that left (deleted, or
superseded by an update) is marked DEAD by number, and its record is gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.analysis.shingles import sketch_keys
from aggregator.domain import ArticleRecord, Match, Outcome, arrival_ms_of
from aggregator.index import keys, term_index
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import (
    TERM_POSTING_BYTES,
    encode_postings,
    encode_sketch_postings,
    encode_term_postings,
)
from aggregator.index.codec.records import Binding, encode_binding, encode_pointer
from aggregator.index.codec.stream_entries import encode_stream_entry
from aggregator.index.duplicate_groups import BindingSnapshot, DuplicateGroup, repoint
from aggregator.index.segment_sampling import NO_SAMPLING, sample_entry
from aggregator.store.base import (
    AdvanceVersion,
    Append,
    AppendCapped,
    AppendMany,
    Check,
    Delete,
    Put,
    StreamAdd,
    Transaction,
    ValueEquals,
    Write,
)

# A band bucket longer than this holds a shingle that half the web prints: it proposes nothing useful
# any more, and reading it would cost every article that carries the same boilerplate.
SKETCH_BUCKET_MAX_BYTES = 64 * 1024


class SegmentTransactions:
    """Builds the transactions of the writable segment of one space.

    ``alone``: there are no older segments, so what is removed is gone; otherwise it is marked ABSENT,
    without a time to live, lest what an older segment says come back. ``lean_ms``: an exact copy leans on
    the entries of a text that came at most so long before. ``mark_rate``: see ``store/marks.py``.
    """

    def __init__(
        self,
        tag: bytes,
        plan: BlockPlan,
        ttl_ms: int | None,
        *,
        is_only_segment: bool = True,
        shared_entries_grace_ms: int = 86_400_000,
        sampling_exponent: int = NO_SAMPLING,
    ) -> None:
        self._tag = tag
        self._plan = plan
        self._ttl_ms = ttl_ms
        self._is_only_segment = is_only_segment
        self._shared_entries_grace_ms = shared_entries_grace_ms
        self._sampling_exponent = sampling_exponent

    def insert(
        self,
        record: ArticleRecord,
        outcome: Outcome,
        lookup_checks: Sequence[Check],
        version_guard: ValueEquals | None = None,
    ) -> Transaction:
        """A new id. ``seen``: all that was looked at is as it was, the id and the match included.

        ``given``: the segment has taken no commit since, so there is nothing to look at.

        An exact copy adds no index entries while the text it repeats stands there for as long.
        """
        binding = Binding(record.number, record.first_version, record.text_hash, record.id, outcome)
        checks: list[Check] = [self._open_check(), *lookup_checks]
        writes: list[Write] = [
            self._binding_write(binding),
            self._stream_write("article", binding),
            *self._sample_writes(record),
        ]
        if not self._may_share_entries(record, outcome.match):
            writes += self._posting_writes(record)
        if outcome.match is None:
            writes += self._term_writes(record)
        else:
            row = keys.id_hash(record.id)
            writes += [
                self._state_write(binding),
                Append(keys.duplicate_ids(self._tag, outcome.match.canonical_first), row),
            ]
        return self._transaction(checks, writes, b"+", record.number, version_guard)

    def update(
        self,
        current: BindingSnapshot,
        record: ArticleRecord,
        group: DuplicateGroup,
        records_to_index: Sequence[ArticleRecord],
    ) -> Transaction:
        """New content under a known id: the new version takes the old one's place and keeps its verdict.

        ``carriers``: stored exact copies of the old text, which must now stand in the index themselves.
        """
        old = current.binding
        binding = Binding(record.number, old.first_version, record.text_hash, record.id, old.outcome)
        writes: list[Write] = [
            self._binding_write(binding),
            *self._mark_dead(old),
            *self._posting_writes(record),
            *self._reindex(records_to_index),
            self._stream_write("article", binding),
            *self._sample_writes(record),
        ]
        writes += self._term_writes(record) if binding.outcome.match is None else [self._state_write(binding)]
        checks = (self._open_check(), ValueEquals(current.key, current.raw), *group.unchanged_checks)
        return self._transaction(checks, writes, b"+", record.number)

    def delete(
        self,
        current: BindingSnapshot,
        group: DuplicateGroup,
        new_canonical: BindingSnapshot | None,
        records_to_index: Sequence[ArticleRecord],
        promoted_record: ArticleRecord | None = None,
    ) -> Transaction:
        """Take an article down; its copies are re-pointed to ``heir``, the earliest one left.

        ``group`` is the group the article belongs to; ``heir`` is the canonical article afterwards: the earliest copy when the canonical one goes, else the
        canonical one itself. ``carriers``: see ``update``. ``promoted``: the record of a copy that becomes
        canonical.
        """
        gone = current.binding
        writes: list[Write] = [
            self._removal_write(current.key),
            *self._reindex(records_to_index),
            *self._mark_dead(gone),
            self._stream_write("deleted", gone),
        ]
        writes += self._repoint_members(gone, group, new_canonical)
        writes += self._term_writes(promoted_record) if promoted_record is not None else []
        if gone.outcome.match is None:
            writes.append(self._put(keys.tombstone(self._tag, gone.first_version), keys.DEAD))
        checks = (self._open_check(), ValueEquals(current.key, current.raw), *group.unchanged_checks)
        return self._transaction(checks, writes, b"-", gone.number)

    def copy_in(
        self,
        binding: Binding,
        previous: Binding | None,
        record: ArticleRecord | None,
        lookup_checks: Sequence[Check],
    ) -> Transaction:
        """An article that another space decided, under its number and with its verdict; announced there.

        ``before``: what its id is bound to here; ``record`` may be None when this very number is and stays a
        copy. Each text gets entries of its own, exact copies too: what they lean on there may not be here.
        """
        standing = previous is not None and previous.number == binding.number
        writes: list[Write] = [self._binding_write(binding)]
        if previous is not None and not standing:
            writes += self._mark_dead(previous)
        if record is not None and not standing:
            writes += [*self._posting_writes(record), *self._sample_writes(record)]
        match = binding.outcome.match
        if match is not None:
            row = keys.id_hash(binding.id)
            writes += [
                self._state_write(binding),
                Append(keys.duplicate_ids(self._tag, match.canonical_first), row),
            ]
        elif not standing or (previous is not None and previous.outcome.match is not None):
            writes += [self._state_write(binding), *(self._term_writes(record) if record is not None else [])]
        return Transaction((self._open_check(), *lookup_checks), tuple(writes))

    def remove_copy(self, removed: Binding, lookup_checks: Sequence[Check]) -> Transaction:
        """The other space has it no longer: out it goes, and its number can never come back."""
        return Transaction(
            (self._open_check(), *lookup_checks),
            (self._removal_write(self._binding_key(removed.id)), *self.tombstone_writes(removed)),
        )

    def tombstone_writes(self, removed: Binding) -> list[Write]:
        """What keeps whoever is late from bringing in a number that left."""
        writes = self._mark_dead(removed)
        if removed.outcome.match is None and removed.number == removed.first_version:
            writes.append(self._put(keys.tombstone(self._tag, removed.first_version), keys.DEAD))
        return writes

    def _repoint_members(
        self, removed: Binding, group: DuplicateGroup, new_canonical: BindingSnapshot | None
    ) -> list[Write]:
        writes: list[Write] = []
        rows = b""
        for member in group.members:
            binding = member.binding
            if binding.id == removed.id:
                continue
            moved = repoint(binding, removed, new_canonical.binding if new_canonical else None)
            if moved.outcome.match is not None:
                rows += keys.id_hash(binding.id)
            if moved != binding:
                writes += [self._binding_write(moved), self._state_write(moved)]
        old_key = keys.duplicate_ids(self._tag, group.first_number)
        new_key = (
            keys.duplicate_ids(self._tag, new_canonical.binding.first_version) if new_canonical else old_key
        )
        if new_key != old_key or not rows:
            writes.append(Delete(old_key))
        if rows:
            writes.append(Put(new_key, rows))  # others will be appended, who live longer
        return writes

    def _transaction(
        self,
        checks: Sequence[Check],
        writes: Sequence[Write],
        operation: bytes,
        number: int,
        version_guard: ValueEquals | None = None,
    ) -> Transaction:
        """Every commit is a link of the version, so an equal version means that no other came between."""
        version = AdvanceVersion(keys.version(self._tag), operation + number.to_bytes(8, "big"))
        return Transaction(tuple(checks), (*writes, version), version_guard)

    def _open_check(self) -> Check:
        return ValueEquals(keys.sealed(self._tag), None)

    def _may_share_entries(self, record: ArticleRecord, match: Match | None) -> bool:
        if match is None or match.rule != "exact":
            return False
        return arrival_ms_of(record.number) - arrival_ms_of(match.number) <= self._shared_entries_grace_ms

    def _sample_writes(self, record: ArticleRecord) -> list[Write]:
        mark = sample_entry(record.number, self._sampling_exponent)
        return [Append(keys.sampled_numbers(self._tag), mark)] if mark else []

    def _mark_dead(self, removed: Binding) -> list[Write]:
        """A version leaves; its entries stay, so its number is dead, and listed for compaction."""
        listed = removed.number.to_bytes(8, "little")
        return [
            self._put(keys.state(self._tag, removed.number), keys.DEAD),
            Append(keys.dead_numbers(self._tag), listed),
        ]

    def _removal_write(self, key: bytes) -> Write:
        return Delete(key) if self._is_only_segment else Put(key, keys.ABSENT)

    def _state_write(self, binding: Binding) -> Write:
        """The state of a number: the group it is a copy in, or nothing when it is canonical."""
        match, key = binding.outcome.match, keys.state(self._tag, binding.number)
        if match is None:
            return self._removal_write(key)
        return self._put(key, encode_pointer(match.canonical_id, match.canonical_first))

    def _reindex(self, records_to_index: Sequence[ArticleRecord]) -> list[Write]:
        return [write for record in records_to_index for write in self._posting_writes(record)]

    def _posting_writes(self, record: ArticleRecord) -> list[Write]:
        number, cut, wording = record.number, self._plan.split(record.fingerprint), sketch_keys(record.sketch)
        blocks = AppendMany(
            tuple([keys.block_bucket(self._tag, block, value) for block, (value, _) in enumerate(cut)]),
            tuple(encode_postings([rest for _, rest in cut], number, self._plan.remainder_bytes)),
        )
        if not wording:
            return [blocks]
        words = AppendMany(
            tuple(keys.sketch_buckets(self._tag, wording)),
            tuple(encode_sketch_postings(wording, number)),
            SKETCH_BUCKET_MAX_BYTES,
        )
        return [blocks, words]

    def _term_writes(self, record: ArticleRecord) -> list[Write]:
        """Only canonical articles: the copies of one wire story would push out all else under its terms."""
        values = term_index.index_keys(record.terms)
        if not values:
            return []
        under, entries = keys.term_buckets(self._tag, values), encode_term_postings(values, record.number)
        return [
            AppendCapped(tuple(under), tuple(entries), term_index.MAX_ARTICLES_PER_TERM * TERM_POSTING_BYTES)
        ]

    def _binding_write(self, binding: Binding) -> Write:
        return self._put(self._binding_key(binding.id), encode_binding(binding))

    def _stream_write(self, kind: str, binding: Binding) -> Write:
        return StreamAdd(keys.stream(self._tag), encode_stream_entry(kind, binding))

    def _binding_key(self, id_: str) -> bytes:
        return keys.binding_by_id(self._tag, id_)

    def _put(self, key: bytes, value: bytes) -> Put:
        return Put(key, value, self._ttl_ms)
