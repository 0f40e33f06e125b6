"""Snapshot: the newest segment is right, and applied transactions change it as the store will change."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.index import keys
from aggregator.index.snapshot import AppliedTransaction, SegmentBuckets, SegmentStack, Snapshot
from aggregator.store.base import (
    AdvanceVersion,
    Append,
    AppendMany,
    Delete,
    Put,
    StreamAdd,
    Transaction,
    ValueEquals,
)
from aggregator.store.memory import MemoryStore

SPACE = "en.3f2a"
OLD, MIDDLE, NEW = (keys.tag(SPACE, number) for number in (4, 5, 6))
BINDING = NEW + b"ione"


def snapshot(values: dict[bytes, bytes | None], first: int = 4) -> Snapshot:
    """Values of a space with up to three segments."""
    return Snapshot({SPACE: SegmentStack(SPACE, first, 6)}, dict(values))


def test_a_stack_has_the_tags_of_its_segments() -> None:
    """The last one is writable."""
    stack = SegmentStack(SPACE, 4, 6)

    assert (stack.tags, stack.writable_tag) == ((OLD, MIDDLE, NEW), NEW)
    assert stack == replace(stack)


@pytest.mark.parametrize(
    ("old", "middle", "new", "expected"),
    [
        (b"1", None, None, b"1"),
        (b"1", b"2", None, b"2"),
        (b"1", b"2", b"3", b"3"),
        (b"1", b"2", keys.ABSENT, None),
        (b"1", keys.ABSENT, None, None),
        (keys.ABSENT, None, b"3", b"3"),
        (b"1", None, b"", b""),
        (None, None, None, None),
    ],
)
def test_the_newest_segment_with_a_value_is_right(
    old: bytes | None, middle: bytes | None, new: bytes | None, expected: bytes | None
) -> None:
    """``ABSENT`` hides what older segments have; an empty value is a value."""
    read = snapshot({OLD + b"k": old, MIDDLE + b"k": middle, NEW + b"k": new})

    assert read.newest_value(SPACE, b"k") == expected


@given(
    st.dictionaries(
        st.builds(bytes.__add__, st.sampled_from([OLD, MIDDLE, NEW]), st.sampled_from([b"j", b"k", b"l"])),
        st.sampled_from([b"1", b"2", keys.ABSENT, None]),
    ),
    st.integers(4, 6),
)
def test_many_values_equal_single_ones(values: dict[bytes, bytes | None], first: int) -> None:
    """With and without frozen segments."""
    read = snapshot(values, first)
    suffixes = [b"k", b"j", b"l", b"k"]

    assert read.newest_values(SPACE, suffixes) == [read.newest_value(SPACE, suffix) for suffix in suffixes]


def test_a_check_covers_the_writable_segment() -> None:
    """A value in a frozen segment is absent there, and must stay absent."""
    read = snapshot({OLD + b"k": b"1", NEW + b"k": None, NEW + b"j": b"2"})

    assert read.unchanged_check(SPACE, b"k") == ValueEquals(NEW + b"k", None)
    assert read.unchanged_check(SPACE, b"j") == ValueEquals(NEW + b"j", b"2")


def test_append_only_values_are_listed_by_segment() -> None:
    """Oldest segment first."""
    read = snapshot({OLD + b"c": b"1", MIDDLE + b"c": None, NEW + b"c": b"3"})

    assert read.values_in_all_segments(SPACE, [b"c"]) == [b"1", None, b"3"]


WRITES = st.lists(
    st.one_of(
        st.builds(Append, st.sampled_from([NEW + b"a", NEW + b"b"]), st.binary(min_size=1, max_size=3)),
        st.builds(
            AppendMany,
            st.just((NEW + b"a", NEW + b"b")),
            st.just((b"xx", b"yyy")),
            st.sampled_from([0, 4, 6]),
        ),
        st.builds(Put, st.sampled_from([NEW + b"p", NEW + b"a"]), st.binary(max_size=3)),
        st.builds(Delete, st.sampled_from([NEW + b"p", NEW + b"b"])),
        st.builds(AdvanceVersion, st.just(NEW + keys.VERSION), st.binary(min_size=1, max_size=2)),
        st.builds(StreamAdd, st.just(NEW + keys.STREAM), st.just(b"entry")),
    ),
    max_size=8,
)


@given(WRITES)
async def test_applying_a_transaction_changes_values_as_the_store_does(
    writes: list[Append | AppendMany | Put | Delete | AdvanceVersion | StreamAdd],
) -> None:
    """For every kind of write and every key that was read."""
    names = [NEW + b"a", NEW + b"b", NEW + b"p", NEW + keys.VERSION]
    store, read = MemoryStore(), snapshot(dict.fromkeys(names), 6)
    transaction = Transaction((), tuple(writes))

    read.apply(transaction, BINDING, None)
    await store.commit(transaction)

    assert [read.values[name] for name in names] == await store.read(names)


def test_buckets_that_an_earlier_article_changed_are_found() -> None:
    """Only those that the second lookup read, with what was appended since."""
    bucket, other, unread = NEW + b"b0:0001", NEW + b"b1:0002", NEW + b"b2:0003"
    read = snapshot({bucket: b"old", other: None}, 6)
    read.buckets["second"] = [SegmentBuckets([other, bucket], [None, b"old"])]
    assert read.changed_buckets("second") == set()

    read.apply(Transaction((), (AppendMany((bucket, unread), (b"+1", b"+2")),)), BINDING, None)

    assert read.changed_buckets("second") == {bucket}
    assert read.appended_to("second", {bucket}) == {1: b"+1"}
    assert unread not in read.values
    assert read.writers == {bucket: frozenset((BINDING,))}


def batch() -> list[AppliedTransaction]:
    """Three commits of one segment, one after another."""
    planned = snapshot({NEW + keys.VERSION: None, NEW + b"a": None}, 6)
    for letter in (b"x", b"y", b"z"):
        writes = (Append(NEW + b"a", letter), AdvanceVersion(NEW + keys.VERSION, letter))
        planned.apply(Transaction((), writes), BINDING, None)
    return planned.applied


@pytest.mark.parametrize("taken", range(4))
def test_a_snapshot_catches_up_with_the_commits_it_lacks(taken: int) -> None:
    """Whichever of them the store had taken when it was read."""
    commits = batch()
    versions = [None, *(commit.version_after for commit in commits)]
    read = snapshot({NEW + keys.VERSION: versions[taken], NEW + b"a": b"xyz"[:taken] or None}, 6)

    assert read.catch_up(commits)
    assert (read.values[NEW + b"a"], read.values[NEW + keys.VERSION]) == (b"xyz", versions[3])


@pytest.mark.parametrize("values", [{NEW + keys.VERSION: b"foreign"}, {MIDDLE + keys.VERSION: None}])
def test_a_snapshot_of_another_history_does_not_catch_up(values: dict[bytes, bytes | None]) -> None:
    """Another process committed in between, or another segment was read; nothing is applied."""
    read = snapshot(values, 6)

    assert not read.catch_up(batch())
    assert (read.values, read.applied) == (values, [])
