"""Transactions: what one insert, update or delete changes in a segment. Pure.

A transaction states what its author relies on (checks) and what follows (writes); the store applies all of
it or nothing. So exactly one of several simultaneous near-duplicates is new: the second commit finds a bucket
longer than it read, and the article is decided again (docs/design/commit-protocol.md).

Nothing is removed from a block bucket: its length is its version. A full sketch key loses its oldest entries
(``snapshot.py``). The number of an article that was deleted or replaced is DEAD; its record is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final

from aggregator.dedup.other_news import AGREEING
from aggregator.domain import ArticleRecord, Match, Outcome, arrival_ms_of
from aggregator.index import keys
from aggregator.index.article_stream import encode_stream_entry
from aggregator.index.bindings import (
    Binding,
    BindingSnapshot,
    DuplicateGroup,
    encode_binding,
    encode_pointer,
    join,
    repoint,
    source_hash,
    with_outcome,
)
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import (
    TERM_POSTING_BYTES,
    encode_postings,
    encode_sketch_postings,
    encode_term_postings,
)
from aggregator.index.segments import NO_SAMPLING, sample_entry
from aggregator.index.snapshot import SegmentStack, trim_writes
from aggregator.store.base import (
    AdvanceVersion,
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
from aggregator.time_units import DAY_MS

# A longer sketch bucket belongs to a shingle of widespread boilerplate: it finds nothing useful, and every
# article with that boilerplate would pay for reading it.
SKETCH_BUCKET_MAX_BYTES = 64 * 1024
NO_BUCKETS: Final[Mapping[bytes, bytes | None]] = MappingProxyType({})
NO_LEADERS: Final[Mapping[str, Binding]] = MappingProxyType({})
NO_RECORDS: Final[Mapping[int, ArticleRecord]] = MappingProxyType({})


class SegmentTransactions:
    """Builds the transactions on the writable segment of ``stack``.

    ``shared_entries_grace_ms``: an exact copy shares the index entries of an article at most this much older.
    """

    def __init__(
        self,
        stack: SegmentStack,
        *,
        shared_entries_grace_ms: int = DAY_MS,
        sampling_exponent: int = NO_SAMPLING,
    ) -> None:
        self._tag = stack.writable_tag
        # Removed keys are deleted, or else set to ABSENT, so that older segments do not show.
        self._is_only_segment = stack.first == stack.last
        self._shared_entries_grace_ms = shared_entries_grace_ms
        self._sampling_exponent = sampling_exponent
        self._sketch_width = stack.sketch_widths[-1]
        # The segment is open, and its sketch buckets are those that the transactions name.
        self._segment_checks = (
            ValueEquals(self._tag + keys.SEALED, None),
            ValueEquals(self._tag + keys.WIDTH, self._sketch_width.encode()),
        )

    def insert(
        self,
        record: ArticleRecord,
        outcome: Outcome,
        lookup_checks: Sequence[Check],
        version_guard: ValueEquals | None = None,
        buckets: Mapping[bytes, bytes | None] = NO_BUCKETS,
    ) -> Transaction:
        """Insert a new id; an exact copy shares the index entries of the article it repeats if it can.

        ``lookup_checks``: everything the decision relies on is unchanged. ``version_guard``: the segment has
        taken no other commit since; while it holds, the store skips the checks. ``buckets``: the article's
        sketch buckets as read, to trim full keys.
        """
        source = source_hash(record.source)
        binding = Binding(record.number, record.first_version, record.text_hash, record.id, outcome, source)
        writes: list[Write] = [
            Put(self._tag + keys.binding(binding.id), encode_binding(binding)),
            StreamAdd(self._tag + keys.STREAM, encode_stream_entry("article", binding, record)),
            *self._sample_writes(record),
        ]
        if not self._may_share_entries(record, outcome):
            writes += self._posting_writes(record, buckets)
        if outcome.match is None:
            writes += self._term_writes(record)
        else:
            writes += self._duplicate_writes(binding, outcome.match)
        return self._transaction(lookup_checks, writes, b"+", record.number, version_guard)

    def update(
        self,
        current: BindingSnapshot,
        record: ArticleRecord,
        outcome: Outcome,
        group: DuplicateGroup,
        records_to_index: Sequence[ArticleRecord],
    ) -> Transaction:
        """Store new content under a known id, which keeps its group, and index copies of the old text."""
        old = current.binding
        source = source_hash(record.source)
        binding = Binding(record.number, old.first_version, record.text_hash, record.id, outcome, source)
        writes: list[Write] = [
            Put(self._tag + keys.binding(binding.id), encode_binding(binding)),
            *self._mark_dead(old),
            *self._posting_writes(record),
            *self._reindex(records_to_index),
            StreamAdd(self._tag + keys.STREAM, encode_stream_entry("article", binding, record)),
            *self._sample_writes(record),
        ]
        writes += self._term_writes(record) if binding.outcome.match is None else [self._state_write(binding)]
        checks = (ValueEquals(current.key, current.raw), *group.unchanged_checks)
        return self._transaction(checks, writes, b"+", record.number)

    def delete(
        self,
        current: BindingSnapshot,
        group: DuplicateGroup,
        new_canonical: BindingSnapshot | None,
        records_to_index: Sequence[ArticleRecord],
        promoted: Sequence[ArticleRecord] = (),
        leaders: Mapping[str, Binding] = NO_LEADERS,
        others: Sequence[BindingSnapshot] = (),
        records: Mapping[int, ArticleRecord] = NO_RECORDS,
    ) -> Transaction:
        """Delete an article; the duplicates of its ``group`` are repointed to ``new_canonical``.

        ``promoted``: the records of those that become canonical. ``leaders``: the canonical articles, by id,
        of those that leave the group. ``others``: what is deleted with it, of the group no longer.
        ``records``: of those that are deleted, by number, if they are still stored.
        """
        removed = current.binding
        left = {other.binding.id for other in others}
        writes = self._repoint_members(removed, group, new_canonical, leaders, promoted, left)
        writes += self._reindex(records_to_index)
        for each in (current, *others):
            entry = encode_stream_entry("deleted", each.binding, records.get(each.binding.number))
            writes += [self._removal_write(each.key), *self._mark_dead(each.binding)]
            writes.append(StreamAdd(self._tag + keys.STREAM, entry))
        if removed.outcome.match is None:
            writes.append(Put(self._tag + keys.tombstone(removed.first_version), keys.DEAD))
        checks = (ValueEquals(current.key, current.raw), *group.unchanged_checks)
        return self._transaction(checks, writes, b"-", removed.number)

    def split(
        self,
        canonical: BindingSnapshot,
        group: DuplicateGroup,
        records_to_index: Sequence[ArticleRecord],
        promoted: Sequence[ArticleRecord],
        leaders: Mapping[str, Binding],
    ) -> Transaction:
        """Let members leave the group of a canonical article; arguments as of ``delete``."""
        writes = self._repoint_members(canonical.binding, group, canonical, leaders, promoted)
        writes += self._reindex(records_to_index)
        return self._transaction(group.unchanged_checks, writes, b"/", canonical.binding.number)

    def mark_notice(self, known: BindingSnapshot) -> Transaction:
        """Mark the text of a stored article as none."""
        marked = with_outcome(known.binding, text_is_article=False)
        write = Put(self._tag + keys.binding(marked.id), encode_binding(marked))
        return self._transaction([ValueEquals(known.key, known.raw)], [write], b"n", known.binding.number)

    def join(self, canonical: BindingSnapshot, group: DuplicateGroup, link: Match) -> list[Write]:
        """The writes by which a canonical article and its duplicates join the older group of ``link``."""
        joining = [canonical.binding, *(member.binding for member in group.members)]
        return self._move(group.first_number, [(binding, join(binding, link)) for binding in joining])

    def copy_in(
        self,
        binding: Binding,
        previous: Binding | None,
        record: ArticleRecord | None,
        lookup_checks: Sequence[Check],
    ) -> Transaction:
        """Copy an article that another space decided, under its number and with its verdict.

        ``previous``: the binding of its id here; ``record`` may be None if this version is stored here and
        remains a duplicate. Exact copies get index entries too: those they share may be missing here.
        """
        is_stored = previous is not None and previous.number == binding.number
        writes: list[Write] = [Put(self._tag + keys.binding(binding.id), encode_binding(binding))]
        if previous is not None and not is_stored:
            writes += self._mark_dead(previous)
        if record is not None and not is_stored:
            writes += [*self._posting_writes(record), *self._sample_writes(record)]
        if binding.outcome.match is not None:
            writes += self._duplicate_writes(binding, binding.outcome.match)
        elif not is_stored or (previous is not None and previous.outcome.match is not None):
            writes += [self._state_write(binding), *(self._term_writes(record) if record is not None else [])]
        return self._transaction(lookup_checks, writes, b"=", binding.number)

    def remove_copy(self, removed: Binding, lookup_checks: Sequence[Check]) -> Transaction:
        """Remove an article that the other space no longer has; its number can never return."""
        removal = self._removal_write(self._tag + keys.binding(removed.id))
        writes = [removal, *self.tombstone_writes(removed)]
        return self._transaction(lookup_checks, writes, b"-", removed.number)

    def tombstone_writes(self, removed: Binding) -> list[Write]:
        """Marks that keep a late writer from adding a version that was removed."""
        writes = self._mark_dead(removed)
        if removed.outcome.match is None and removed.number == removed.first_version:
            writes.append(Put(self._tag + keys.tombstone(removed.first_version), keys.DEAD))
        return writes

    def _repoint_members(
        self,
        removed: Binding,
        group: DuplicateGroup,
        new_canonical: BindingSnapshot | None,
        leaders: Mapping[str, Binding],
        promoted: Sequence[ArticleRecord],
        left: Set[str] = frozenset(),
    ) -> list[Write]:
        stays, moves = new_canonical.binding if new_canonical else None, []
        for binding in (member.binding for member in group.members):
            if binding.id != removed.id and binding.outcome.match is not None:
                leader = leaders.get(binding.id, stays)
                matched = binding.outcome.match.id
                match_left = matched in left or leaders.get(matched, stays) is not leader
                moves.append((binding, repoint(binding, removed, leader, match_left=match_left)))
        writes = self._move(group.first_number, moves)
        return writes + [write for record in promoted for write in self._term_writes(record)]

    def _move(self, first: int, moves: Sequence[tuple[Binding, Binding]]) -> list[Write]:
        """All members of the group ``first``, before and after, to the lists of their groups."""
        writes: list[Write] = []
        rows = {first: b""}
        for before, after in moves:
            if after.outcome.match is not None:
                rows[after.group] = rows.get(after.group, b"") + keys.id_hash(after.id)
            if after != before:
                key = self._tag + keys.binding(after.id)
                writes += [Put(key, encode_binding(after)), self._state_write(after)]
        key, staying = self._tag + keys.duplicate_ids(first), rows.pop(first)
        writes.append(Put(key, staying) if staying else Delete(key))
        lists = tuple(self._tag + keys.duplicate_ids(group) for group in rows)
        return [*writes, AppendMany(lists, tuple(rows.values()))] if lists else writes

    def _transaction(
        self,
        checks: Sequence[Check],
        writes: Sequence[Write],
        operation: bytes,
        number: int,
        version_guard: ValueEquals | None = None,
    ) -> Transaction:
        """Add the version: a hash chain of all commits, so an equal version means an equal history."""
        version = AdvanceVersion(self._tag + keys.VERSION, operation + number.to_bytes(8, "big"))
        return Transaction((*self._segment_checks, *checks), (*writes, version), version_guard)

    def _may_share_entries(self, record: ArticleRecord, outcome: Outcome) -> bool:
        match = outcome.match
        # Later articles are compared with it: as a version that readers have, or as a page that is a notice.
        if match is None or match.rule != "exact" or outcome.keep or record.own_headline <= AGREEING:
            return False
        return arrival_ms_of(record.number) - arrival_ms_of(match.number) <= self._shared_entries_grace_ms

    def _sample_writes(self, record: ArticleRecord) -> list[Write]:
        sample = sample_entry(record.number, self._sampling_exponent)
        return [AppendMany((self._tag + keys.SAMPLES,), (sample,))] if sample else []

    def _mark_dead(self, removed: Binding) -> list[Write]:
        entry = removed.number.to_bytes(8, "little")
        return [
            Put(self._tag + keys.state(removed.number), keys.DEAD),
            AppendMany((self._tag + keys.DEAD_NUMBERS,), (entry,)),
        ]

    def _removal_write(self, key: bytes) -> Write:
        return Delete(key) if self._is_only_segment else Put(key, keys.ABSENT)

    def _state_write(self, binding: Binding) -> Write:
        match, key = binding.outcome.match, self._tag + keys.state(binding.number)
        if match is None:
            return self._removal_write(key)
        return Put(key, encode_pointer(match.canonical_id, match.canonical_first, kept=binding.outcome.keep))

    def _duplicate_writes(self, binding: Binding, match: Match) -> list[Write]:
        group = self._tag + keys.duplicate_ids(match.canonical_first)
        return [self._state_write(binding), AppendMany((group,), (keys.id_hash(binding.id),))]

    def _reindex(self, records_to_index: Sequence[ArticleRecord]) -> list[Write]:
        return [write for record in records_to_index for write in self._posting_writes(record)]

    def _posting_writes(
        self, record: ArticleRecord, buckets: Mapping[bytes, bytes | None] = NO_BUCKETS
    ) -> list[Write]:
        number, blocks = record.number, PLAN.split(record.fingerprint)
        wording = keys.wording_keys(record)
        block_write = AppendMany(
            tuple([keys.block_bucket(self._tag, block, value) for block, (value, _) in enumerate(blocks)]),
            tuple(encode_postings([rest for _, rest in blocks], number, PLAN.remainder_bytes)),
        )
        if not wording:
            return [block_write]
        own_buckets = keys.sketch_buckets(self._tag, wording, self._sketch_width.bits)
        sketch_write = AppendMany(
            tuple(own_buckets), tuple(encode_sketch_postings(wording, number)), SKETCH_BUCKET_MAX_BYTES
        )
        return [block_write, *trim_writes(own_buckets, wording, buckets), sketch_write]

    def _term_writes(self, record: ArticleRecord) -> list[Write]:
        """For canonical articles only: duplicates of one newswire story would displace all others."""
        hashes = keys.index_keys(record)
        if not hashes:
            return []
        buckets = keys.term_buckets(self._tag, hashes)
        entries = encode_term_postings(hashes, record.number)
        return [AppendCapped(tuple(buckets), tuple(entries), keys.MAX_ARTICLES_PER_TERM * TERM_POSTING_BYTES)]
