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

from aggregator.analysis.shingles import bands
from aggregator.domain import Match, Outcome, Record, arrival_ms_of
from aggregator.index import keys, term_index
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import TOPIC_BYTES, pack_bands, pack_many, pack_topics
from aggregator.index.codec.records import Binding, encode_binding, encode_pointer
from aggregator.index.codec.stream_entries import encode_stream_row
from aggregator.index.duplicate_groups import Group, Known, repointed
from aggregator.index.segment_sampling import NEVER, mark_of
from aggregator.store.base import (
    Append,
    Appends,
    Chain,
    Check,
    Delete,
    Equals,
    Pushes,
    Put,
    StreamAdd,
    Transaction,
    Write,
)

# A band bucket longer than this holds a shingle that half the web prints: it proposes nothing useful
# any more, and reading it would cost every article that carries the same boilerplate.
BAND_BUCKET_BYTES = 64 * 1024


class Segment:
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
        alone: bool = True,
        lean_ms: int = 86_400_000,
        mark_rate: int = NEVER,
    ) -> None:
        self._tag = tag
        self._plan = plan
        self._ttl_ms = ttl_ms
        self._alone = alone
        self._lean_ms = lean_ms
        self._mark_rate = mark_rate

    def insert(
        self, record: Record, outcome: Outcome, seen: Sequence[Check], given: Equals | None = None
    ) -> Transaction:
        """A new id. ``seen``: all that was looked at is as it was, the id and the match included.

        ``given``: the segment has taken no commit since, so there is nothing to look at.

        An exact copy adds no index entries while the text it repeats stands there for as long.
        """
        binding = Binding(record.number, record.first, record.text_hash, record.id, outcome)
        checks: list[Check] = [self._open(), *seen]
        writes: list[Write] = [self._bind(binding), self._announce("article", binding), *self._mark(record)]
        if not self._may_lean(record, outcome.match):
            writes += self._entries(record)
        if outcome.match is None:
            writes += self._topics(record)
        else:
            row = keys.id_hash(record.id)
            writes += [
                self._point(binding),
                Append(keys.copies(self._tag, outcome.match.canonical_first), row),
            ]
        return self._made(checks, writes, b"+", record.number, given)

    def update(self, known: Known, record: Record, group: Group, carriers: Sequence[Record]) -> Transaction:
        """New content under a known id: the new version takes the old one's place and keeps its verdict.

        ``carriers``: stored exact copies of the old text, which must now stand in the index themselves.
        """
        old = known.binding
        binding = Binding(record.number, old.first, record.text_hash, record.id, old.outcome)
        writes: list[Write] = [
            self._bind(binding),
            *self._bury(old),
            *self._entries(record),
            *self._carry(carriers),
            self._announce("article", binding),
            *self._mark(record),
        ]
        writes += self._topics(record) if binding.outcome.match is None else [self._point(binding)]
        checks = (self._open(), Equals(known.key, known.raw), *group.unchanged)
        return self._made(checks, writes, b"+", record.number)

    def delete(
        self,
        known: Known,
        group: Group,
        heir: Known | None,
        carriers: Sequence[Record],
        promoted: Record | None = None,
    ) -> Transaction:
        """Take an article down; its copies are re-pointed to ``heir``, the earliest one left.

        ``group`` is the group the article belongs to; ``heir`` is the canonical article afterwards: the earliest copy when the canonical one goes, else the
        canonical one itself. ``carriers``: see ``update``. ``promoted``: the record of a copy that becomes
        canonical.
        """
        gone = known.binding
        writes: list[Write] = [
            self._remove(known.key),
            *self._carry(carriers),
            *self._bury(gone),
            self._announce("deleted", gone),
        ]
        writes += self._regroup(gone, group, heir)
        writes += self._topics(promoted) if promoted is not None else []
        if gone.outcome.match is None:
            writes.append(self._put(keys.tombstone(self._tag, gone.first), keys.DEAD))
        checks = (self._open(), Equals(known.key, known.raw), *group.unchanged)
        return self._made(checks, writes, b"-", gone.number)

    def adopt(
        self, binding: Binding, before: Binding | None, record: Record | None, seen: Sequence[Check]
    ) -> Transaction:
        """An article that another space decided, under its number and with its verdict; announced there.

        ``before``: what its id is bound to here; ``record`` may be None when this very number is and stays a
        copy. Each text gets entries of its own, exact copies too: what they lean on there may not be here.
        """
        standing = before is not None and before.number == binding.number
        writes: list[Write] = [self._bind(binding)]
        if before is not None and not standing:
            writes += self._bury(before)
        if record is not None and not standing:
            writes += [*self._entries(record), *self._mark(record)]
        match = binding.outcome.match
        if match is not None:
            row = keys.id_hash(binding.id)
            writes += [self._point(binding), Append(keys.copies(self._tag, match.canonical_first), row)]
        elif not standing or (before is not None and before.outcome.match is not None):
            writes += [self._point(binding), *(self._topics(record) if record is not None else [])]
        return Transaction((self._open(), *seen), tuple(writes))

    def retire(self, gone: Binding, seen: Sequence[Check]) -> Transaction:
        """The other space has it no longer: out it goes, and its number can never come back."""
        return Transaction((self._open(), *seen), (self._remove(self._binding_key(gone.id)), *self.bar(gone)))

    def bar(self, gone: Binding) -> list[Write]:
        """What keeps whoever is late from bringing in a number that left."""
        writes = self._bury(gone)
        if gone.outcome.match is None and gone.number == gone.first:
            writes.append(self._put(keys.tombstone(self._tag, gone.first), keys.DEAD))
        return writes

    def _regroup(self, gone: Binding, group: Group, heir: Known | None) -> list[Write]:
        writes: list[Write] = []
        rows = b""
        for member in group.members:
            binding = member.binding
            if binding.id == gone.id:
                continue
            moved = repointed(binding, gone, heir.binding if heir else None)
            if moved.outcome.match is not None:
                rows += keys.id_hash(binding.id)
            if moved != binding:
                writes += [self._bind(moved), self._point(moved)]
        old_key = keys.copies(self._tag, group.first)
        new_key = keys.copies(self._tag, heir.binding.first) if heir else old_key
        if new_key != old_key or not rows:
            writes.append(Delete(old_key))
        if rows:
            writes.append(Put(new_key, rows))  # others will be appended, who live longer
        return writes

    def _made(
        self,
        checks: Sequence[Check],
        writes: Sequence[Write],
        sign: bytes,
        number: int,
        given: Equals | None = None,
    ) -> Transaction:
        """Every commit is a link of the version, so an equal version means that no other came between."""
        version = Chain(keys.version(self._tag), sign + number.to_bytes(8, "big"))
        return Transaction(tuple(checks), (*writes, version), given)

    def _open(self) -> Check:
        return Equals(keys.closed(self._tag), None)

    def _may_lean(self, record: Record, match: Match | None) -> bool:
        if match is None or match.rule != "exact":
            return False
        return arrival_ms_of(record.number) - arrival_ms_of(match.number) <= self._lean_ms

    def _mark(self, record: Record) -> list[Write]:
        mark = mark_of(record.number, self._mark_rate)
        return [Append(keys.marks(self._tag), mark)] if mark else []

    def _bury(self, gone: Binding) -> list[Write]:
        """A version leaves; its entries stay, so its number is dead, and listed for compaction."""
        listed = gone.number.to_bytes(8, "little")
        return [
            self._put(keys.state(self._tag, gone.number), keys.DEAD),
            Append(keys.graves(self._tag), listed),
        ]

    def _remove(self, key: bytes) -> Write:
        return Delete(key) if self._alone else Put(key, keys.ABSENT)

    def _point(self, binding: Binding) -> Write:
        """The state of a number: the group it is a copy in, or nothing when it is canonical."""
        match, key = binding.outcome.match, keys.state(self._tag, binding.number)
        if match is None:
            return self._remove(key)
        return self._put(key, encode_pointer(match.canonical_id, match.canonical_first))

    def _carry(self, carriers: Sequence[Record]) -> list[Write]:
        return [write for record in carriers for write in self._entries(record)]

    def _entries(self, record: Record) -> list[Write]:
        number, cut, wording = record.number, self._plan.cut(record.fingerprint), bands(record.sketch)
        blocks = Appends(
            tuple([keys.bucket(self._tag, block, value) for block, (value, _) in enumerate(cut)]),
            tuple(pack_many([rest for _, rest in cut], number, self._plan.rest_bytes)),
        )
        if not wording:
            return [blocks]
        words = Appends(
            tuple(keys.bands(self._tag, wording)),
            tuple(pack_bands(wording, number)),
            BAND_BUCKET_BYTES,
        )
        return [blocks, words]

    def _topics(self, record: Record) -> list[Write]:
        """Only canonical articles: the copies of one wire story would push out all else under its terms."""
        values = term_index.indexed(record.terms)
        if not values:
            return []
        under, entries = keys.topics(self._tag, values), pack_topics(values, record.number)
        return [Pushes(tuple(under), tuple(entries), term_index.KEPT * TOPIC_BYTES)]

    def _bind(self, binding: Binding) -> Write:
        return self._put(self._binding_key(binding.id), encode_binding(binding))

    def _announce(self, kind: str, binding: Binding) -> Write:
        return StreamAdd(keys.stream(self._tag), encode_stream_row(kind, binding))

    def _binding_key(self, id_: str) -> bytes:
        return keys.binding_of(self._tag, id_)

    def _put(self, key: bytes, value: bytes) -> Put:
        return Put(key, value, self._ttl_ms)
