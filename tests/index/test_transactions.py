"""What one insert, update or delete consists of."""

import msgspec
import numpy as np

from aggregator.domain import ArticleRecord, Match, Outcome, Sketch, article_number_at
from aggregator.index import keys
from aggregator.index.blocks import PLANS
from aggregator.index.codec.records import Binding, decode_binding, encode_binding
from aggregator.index.duplicate_groups import (
    BindingSnapshot,
    DuplicateGroup,
    bindings_to_index,
    next_canonical,
)
from aggregator.index.transactions import SegmentTransactions
from aggregator.store.base import (
    Append,
    AppendMany,
    Delete,
    LengthEquals,
    Put,
    StreamAdd,
    Transaction,
    ValueEquals,
)

TAG = b"{en.0000.0}"
SEGMENT = SegmentTransactions(TAG, PLANS["4x16"], ttl_ms=1000)


def record(number: int, id_: str = "") -> ArticleRecord:
    """A stored version with three bands."""
    sketch = Sketch(3, np.array([1, 2, 3], np.uint32))
    return ArticleRecord(
        number,
        number,
        id_ or f"a{number}",
        "en.0000",
        "en",
        0x1234,
        b"h" * 16,
        False,
        "",
        "",
        "",
        None,
        sketch,
    )


def known(number: int, match: Match | None = None) -> BindingSnapshot:
    """A binding as it was read."""
    outcome = Outcome("new") if match is None else Outcome("duplicate", match=match)
    binding = Binding(number, number, b"h" * 16, f"a{number}", outcome)
    return BindingSnapshot(
        keys.binding_by_hash(TAG, keys.id_hash(binding.id)), encode_binding(binding), binding
    )


def match(to: int, canonical: int, rule: str = "overlap") -> Match:
    """A match between articles named after their numbers."""
    return Match(f"a{to}", to, f"a{canonical}", canonical, 4, 0.9, rule)  # type: ignore[arg-type]


def group(first: int, *members: BindingSnapshot) -> DuplicateGroup:
    """The group as it was read: its list of copies and each of their bindings."""
    rows = b"".join(keys.id_hash(m.binding.id) for m in members) or None
    bound = (ValueEquals(m.key, m.raw) for m in members)
    return DuplicateGroup(first, members, (ValueEquals(keys.duplicate_ids(TAG, first), rows), *bound))


def appended(transaction: Transaction) -> list[bytes]:
    """The keys that something is appended to."""
    single = [w.key for w in transaction.writes if isinstance(w, Append)]
    return single + [key for w in transaction.writes if isinstance(w, AppendMany) for key in w.keys]


def test_insert_checks_everything_it_believed() -> None:
    """The segment is open and what was seen is as it was; four buckets and the bands are appended to."""
    seen = [LengthEquals(b"k", 16)]
    transaction = SEGMENT.insert(record(7), Outcome("new"), seen)

    assert ValueEquals(TAG + b"closed", None) in transaction.checks
    assert LengthEquals(b"k", 16) in transaction.checks
    assert len(appended(transaction)) == 4 + 3
    assert len([w for w in transaction.writes if isinstance(w, StreamAdd)]) == 1
    assert all(w.ttl_ms == 1000 for w in transaction.writes if isinstance(w, Put))


def test_exact_copy_adds_no_index_entries() -> None:
    """Only its binding, its pointer and a row among the copies."""
    transaction = SEGMENT.insert(record(7), Outcome("duplicate", match=match(1, 1, "exact")), [])

    assert appended(transaction) == [keys.duplicate_ids(TAG, 1)]


def test_exact_copy_stands_by_itself_when_it_outlives_its_original() -> None:
    """A day later it gets entries of its own, since those it would lean on are forgotten first."""
    late = record(article_number_at(86_400_002))
    for first, entries in ((article_number_at(2), 0), (article_number_at(1), 7)):
        outcome = Outcome("duplicate", match=match(first, first, "exact"))
        assert len(appended(SEGMENT.insert(late, outcome, []))) == 1 + entries


def test_what_leaves_is_marked_absent_above_older_segments() -> None:
    """There, a deletion would uncover what the older segment says; and the mark must outlast it."""
    above = SegmentTransactions(TAG, PLANS["4x16"], ttl_ms=1000, is_only_segment=False)
    gone = known(1)

    assert Put(gone.key, keys.ABSENT) in above.delete(gone, group(1), None, []).writes
    heir = known(2, match(1, 1))
    promotion = above.delete(gone, group(1, heir), heir, [])
    assert Put(keys.state(TAG, 2), keys.ABSENT) in promotion.writes


def test_copies_of_an_expired_original_keep_its_name() -> None:
    """Who was matched through a copy that leaves is matched to the original, although that is gone."""
    gone, member = known(2, match(1, 1)), known(3, match(2, 1))
    puts = {
        w.key: w.value for w in SEGMENT.delete(gone, group(1, member), None, []).writes if isinstance(w, Put)
    }
    moved = decode_binding(puts[member.key]).outcome.match

    assert moved is not None
    assert (moved.id, moved.number, moved.canonical_id) == ("a1", 1, "a1")


def test_update_replaces_the_version_and_keeps_the_outcome() -> None:
    """The old number is dead, the binding moves to the new one with the old decision."""
    before = known(3, match(1, 1))
    transaction = SEGMENT.update(before, record(9, "a3"), group(before.binding.first_version), [])
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}

    assert puts[keys.state(TAG, 3)] == keys.DEAD
    after = decode_binding(puts[before.key])
    assert (after.number, after.first_version, after.outcome) == (9, 3, before.binding.outcome)
    assert ValueEquals(before.key, before.raw) in transaction.checks


def test_delete_of_a_canonical_article() -> None:
    """The earliest copy inherits the group; every member that was read is checked."""
    members = (known(2, match(1, 1)), known(5, match(2, 1)), known(4, match(1, 1)))
    read = group(1, *members)
    heir = next_canonical(known(1).binding, read)
    assert heir is members[0]

    transaction = SEGMENT.delete(known(1), read, heir, [])
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}

    assert decode_binding(puts[members[0].key]).outcome == Outcome("new")
    moved = decode_binding(puts[members[2].key]).outcome.match
    assert moved is not None
    assert (moved.id, moved.canonical_id, moved.canonical_first) == ("a2", "a2", 2)
    assert puts[keys.duplicate_ids(TAG, 2)] == keys.id_hash("a5") + keys.id_hash("a4")
    assert Delete(keys.duplicate_ids(TAG, 1)) in transaction.writes
    assert puts[keys.tombstone(TAG, 1)] == keys.DEAD
    assert set(read.unchanged_checks) <= set(transaction.checks)


def test_delete_of_a_lonely_article() -> None:
    """Nothing to re-point: its binding goes, its number is dead; and it must be lonely still."""
    gone = known(1)
    transaction = SEGMENT.delete(gone, group(1), None, [])

    assert Delete(gone.key) in transaction.writes
    assert ValueEquals(keys.duplicate_ids(TAG, 1), None) in transaction.checks
    assert [w for w in transaction.writes if isinstance(w, Append)] == [
        Append(keys.dead_numbers(TAG), (1).to_bytes(8, "little"))
    ]


def test_carriers_get_their_entries() -> None:
    """An exact copy of a text that leaves is entered into the index itself."""
    transaction = SEGMENT.delete(known(1), group(1), None, [record(8)])

    assert len(appended(transaction)) == 4 + 3 + 1


def test_who_carries_a_text_that_leaves() -> None:
    """The earliest exact copy, unless one that stands by itself has the text; a promoted heir always."""
    gone = known(1).binding
    first, second = known(2, match(1, 1, "exact")).binding, known(3, match(2, 1, "exact")).binding
    edited = known(4, match(1, 1)).binding

    assert bindings_to_index(gone, []) == []
    assert bindings_to_index(gone, [second, first]) == [first]
    assert bindings_to_index(gone, [first, second, edited]) == []
    assert bindings_to_index(gone, [first, second], new_canonical=first) == [first]
    assert bindings_to_index(first, [gone, second]) == []
    other = msgspec.structs.replace(first, text_hash=b"o" * 16)
    assert bindings_to_index(gone, [second, other], new_canonical=other) == [other, second]
