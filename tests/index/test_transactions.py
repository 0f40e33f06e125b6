"""Transactions: the checks and writes of one insert, update or delete."""

from dataclasses import replace

import numpy as np

from aggregator.domain import ArticleRecord, Outcome, Sketch, article_number_at
from aggregator.index import keys
from aggregator.index.bindings import (
    decode_binding,
    decode_pointer,
    next_canonical,
)
from aggregator.index.snapshot import SegmentStack
from aggregator.index.transactions import SegmentTransactions
from aggregator.store.base import AppendMany, Delete, Put, StreamAdd, Transaction, ValueEquals
from tests.index.helpers import TAG, binding_snapshot, group, match
from tests.support.store_steps import append, length_equals

SEGMENT = SegmentTransactions(SegmentStack("en.0000"))


def record(number: int, id_: str = "") -> ArticleRecord:
    """A stored version with three sketch keys."""
    sketch = Sketch(3, np.array([1, 2, 3], np.uint32), np.array([True, False, True]))
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


def appended(transaction: Transaction) -> list[bytes]:
    """The keys that the transaction appends to."""
    return [key for w in transaction.writes if isinstance(w, AppendMany) for key in w.keys]


def test_insert_checks_everything_it_relies_on() -> None:
    """It checks that the segment is open and the lookup unchanged; it appends to 4 + 3 buckets."""
    checks = [length_equals(b"k", 16)]
    transaction = SEGMENT.insert(record(7), Outcome("new"), checks)

    assert ValueEquals(TAG + b"closed", None) in transaction.checks
    assert length_equals(b"k", 16) in transaction.checks
    assert len(appended(transaction)) == 4 + 3
    assert len([w for w in transaction.writes if isinstance(w, StreamAdd)]) == 1
    assert all(w.ttl_ms is None for w in transaction.writes if isinstance(w, Put))


def test_exact_copy_adds_no_index_entries() -> None:
    """Only its binding, its state and a row in the duplicate list."""
    dropped = Outcome("duplicate", match=match(1, 1, "exact"), keep=False)

    assert appended(SEGMENT.insert(record(7), dropped, [])) == [TAG + keys.duplicate_ids(1)]
    # Later articles are compared with one that was kept, and with a page whose headline is not in its text.
    assert len(appended(SEGMENT.insert(record(7), replace(dropped, keep=True), []))) == 1 + 7
    assert len(appended(SEGMENT.insert(replace(record(7), own_headline=0.2), dropped, []))) == 1 + 7


def test_exact_copy_gets_entries_when_it_outlives_its_original() -> None:
    """More than a day later it needs entries, since those of its original expire first."""
    late = record(article_number_at(86_400_002))
    for first, entries in ((article_number_at(2), 0), (article_number_at(1), 7)):
        outcome = Outcome("duplicate", match=match(first, first, "exact"), keep=False)
        assert len(appended(SEGMENT.insert(late, outcome, []))) == 1 + entries


def test_removed_keys_are_marked_absent_above_older_segments() -> None:
    """Deleting the key would uncover the value in the older segment; the mark has no time to live."""
    above = SegmentTransactions(SegmentStack("en.0000", -1, 0))
    removed = binding_snapshot(1)

    assert Put(removed.key, keys.ABSENT) in above.delete(removed, group(1), None, []).writes
    new_canonical = binding_snapshot(2, match(1, 1))
    promotion = above.delete(removed, group(1, new_canonical), new_canonical, [])
    assert Put(TAG + keys.state(2), keys.ABSENT) in promotion.writes


def test_duplicates_of_an_expired_original_keep_its_id() -> None:
    """A member matched to a deleted duplicate is matched to the original, although that has expired."""
    removed, member = binding_snapshot(2, match(1, 1)), binding_snapshot(3, match(2, 1))
    puts = {
        w.key: w.value
        for w in SEGMENT.delete(removed, group(1, member), None, []).writes
        if isinstance(w, Put)
    }
    moved = decode_binding(puts[member.key]).outcome.match

    assert moved is not None
    assert (moved.id, moved.number, moved.canonical_id) == ("a1", 1, "a1")


def test_what_is_deleted_with_an_article_leaves_nothing_behind() -> None:
    """No binding, state or row; what was matched to it is matched to the next canonical article."""
    removed, other = binding_snapshot(1), binding_snapshot(2, match(1, 1), keep=False)
    heir, member = binding_snapshot(3, match(2, 1)), binding_snapshot(4, match(2, 1))
    transaction = SEGMENT.delete(removed, group(1, heir, member), heir, [], others=[other])
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}
    deleted = [w.key for w in transaction.writes if isinstance(w, Delete)]

    assert {removed.key, other.key, TAG + keys.state(3), TAG + keys.duplicate_ids(1)} == set(deleted)
    assert puts[TAG + keys.state(1)] == puts[TAG + keys.state(2)] == keys.DEAD
    assert decode_binding(puts[heir.key]).outcome == Outcome("new")
    assert decode_binding(puts[member.key]).outcome.match == match(3, 3)
    assert len([w for w in transaction.writes if isinstance(w, StreamAdd)]) == 2


def test_update_replaces_the_version_and_stores_the_outcome() -> None:
    """The old number is dead; the binding has the new number and the verdict that was passed."""
    before = binding_snapshot(3, match(1, 1))
    outcome = Outcome("duplicate", 1, match(1, 1), keep=False, adds=0.1)
    transaction = SEGMENT.update(before, record(9, "a3"), outcome, group(before.binding.first_version), [])
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}

    assert puts[TAG + keys.state(3)] == keys.DEAD
    after = decode_binding(puts[before.key])
    assert (after.number, after.first_version, after.outcome) == (9, 3, outcome)
    assert ValueEquals(before.key, before.raw) in transaction.checks


def test_delete_of_a_canonical_article() -> None:
    """The earliest duplicate becomes canonical; every member that was read is checked."""
    members = (
        binding_snapshot(2, match(1, 1)),
        binding_snapshot(5, match(2, 1)),
        binding_snapshot(4, match(1, 1)),
    )
    read = group(1, *members)
    new_canonical = next_canonical(binding_snapshot(1).binding, read)
    assert new_canonical is members[0]

    transaction = SEGMENT.delete(binding_snapshot(1), read, new_canonical, [])
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}

    assert decode_binding(puts[members[0].key]).outcome == Outcome("new")
    moved = decode_binding(puts[members[2].key]).outcome.match
    assert moved is not None
    assert (moved.id, moved.canonical_id, moved.canonical_first) == ("a2", "a2", 2)
    rows = keys.id_hash("a5") + keys.id_hash("a4")
    assert append(TAG + keys.duplicate_ids(2), rows) in transaction.writes
    assert Delete(TAG + keys.duplicate_ids(1)) in transaction.writes
    assert puts[TAG + keys.tombstone(1)] == keys.DEAD
    assert set(read.unchanged_checks) <= set(transaction.checks)


def test_delete_of_an_article_without_duplicates() -> None:
    """Its binding is deleted, its number is dead, and it is checked that it still has no duplicates."""
    removed = binding_snapshot(1)
    transaction = SEGMENT.delete(removed, group(1), None, [])

    assert Delete(removed.key) in transaction.writes
    assert ValueEquals(TAG + keys.duplicate_ids(1), None) in transaction.checks
    assert [w for w in transaction.writes if isinstance(w, AppendMany)] == [
        append(TAG + keys.DEAD_NUMBERS, (1).to_bytes(8, "little"))
    ]


def test_records_to_index_get_entries() -> None:
    """An exact copy of a deleted text is indexed."""
    transaction = SEGMENT.delete(binding_snapshot(1), group(1), None, [record(8)])

    assert len(appended(transaction)) == 4 + 3 + 1


def test_members_that_leave_with_a_deleted_article() -> None:
    """They get a list of their own; a match that stayed behind is replaced by their canonical article."""
    members = [
        binding_snapshot(2, match(1, 1)),
        binding_snapshot(3, match(2, 1)),
        binding_snapshot(4, match(3, 1)),
    ]
    leader, follower = members[1].binding, members[2].binding
    leaders = {leader.id: leader, follower.id: leader}

    transaction = SEGMENT.delete(binding_snapshot(1), group(1, *members), members[0], [], [], leaders)
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}

    assert decode_binding(puts[members[0].key]).outcome == Outcome("new")
    assert decode_binding(puts[members[1].key]).outcome == Outcome("new")
    assert decode_binding(puts[members[2].key]).outcome.match == match(3, 3)
    assert append(TAG + keys.duplicate_ids(3), keys.id_hash("a4")) in transaction.writes
    assert Delete(TAG + keys.duplicate_ids(1)) in transaction.writes


def test_members_leave_an_article_that_stays() -> None:
    """The others stay in its list, which is compared as it was read."""
    members = [binding_snapshot(2, match(1, 1)), binding_snapshot(3, match(1, 1))]
    read = group(1, *members)

    transaction = SEGMENT.split(binding_snapshot(1), read, [], [], {"a3": members[1].binding})
    puts = {w.key: w.value for w in transaction.writes if isinstance(w, Put)}

    assert members[0].key not in puts
    assert decode_binding(puts[members[1].key]).outcome == Outcome("new")
    assert puts[TAG + keys.duplicate_ids(1)] == keys.id_hash("a2")
    assert set(read.unchanged_checks) <= set(transaction.checks)


def test_a_group_joins_an_older_one() -> None:
    """Its canonical article keeps its verdict and gets a link; its duplicates keep the match."""
    member = binding_snapshot(6, match(5, 5))
    writes = SEGMENT.join(binding_snapshot(5), group(5, member), match(1, 1))
    puts = {w.key: w.value for w in writes if isinstance(w, Put)}
    moved = [decode_binding(puts[TAG + keys.binding(id_)]).outcome for id_ in ("a5", "a6")]

    assert moved[0] == replace(Outcome("new"), match=match(1, 1))
    assert moved[1].match == replace(match(5, 5), canonical_id="a1", canonical_first=1)
    assert [decode_pointer(puts[TAG + keys.state(n)]).id for n in (5, 6)] == ["a1", "a1"]
    assert Delete(TAG + keys.duplicate_ids(5)) in writes
    assert append(TAG + keys.duplicate_ids(1), keys.id_hash("a5") + keys.id_hash("a6")) in writes
