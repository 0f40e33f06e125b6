"""Snapshot: the newest segment is right, and applied transactions change it as the store will change."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import DamagedValue
from aggregator.index import keys
from aggregator.index.codec.postings import (
    SKETCH_POSTING_BYTES,
    decode_numbers,
    encode_sketch_postings,
    numbers_sharing_each,
    trim_sketch_key,
)
from aggregator.index.snapshot import (
    FULL_KEY_ENTRIES,
    KEPT_KEY_ENTRIES,
    AppliedTransaction,
    SegmentBuckets,
    SegmentStack,
    SketchWidth,
    Snapshot,
    decode_sketch_width,
    trim_writes,
    unchanged_checks,
)
from aggregator.store.base import (
    AdvanceVersion,
    AppendMany,
    Delete,
    LengthsUnchanged,
    Put,
    StreamAdd,
    Transaction,
    ValueEquals,
)
from aggregator.store.memory import MemoryStore
from tests.index.helpers import TAG
from tests.support.store_steps import append

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
        st.builds(append, st.sampled_from([NEW + b"a", NEW + b"b"]), st.binary(min_size=1, max_size=3)),
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
    writes: list[AppendMany | Put | Delete | AdvanceVersion | StreamAdd],
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
        writes = (append(NEW + b"a", letter), AdvanceVersion(NEW + keys.VERSION, letter))
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


@pytest.mark.parametrize(
    ("stored", "width", "bits_to_read"),
    [
        (None, SketchWidth(18), (18,)),
        (b"18>19", SketchWidth(19, 18), (18, 19)),
        (b"19", SketchWidth(19), (19,)),
        (b"23>24", SketchWidth(24, 23), (23, 24)),
        (b"24", SketchWidth(24), (24,)),
    ],
)
def test_stored_values_are_pinned(
    stored: bytes | None, width: SketchWidth, bits_to_read: tuple[int, ...]
) -> None:
    """A segment without one, also of an earlier version, has 18 bits."""
    assert decode_sketch_width(stored) == width
    assert width.encode() == stored
    assert width.bits_to_read == bits_to_read
    assert width.is_rehashing == (len(bits_to_read) == 2)


@pytest.mark.parametrize("stored", [b"", b"18", b"17>18", b"18>20", b"24>25", b"19>18", b"nineteen", b"19\n"])
def test_damaged_values_are_refused(stored: bytes) -> None:
    """Rather than that look-ups read buckets that hold nothing."""
    with pytest.raises(DamagedValue, match="width of sketch buckets"):
        decode_sketch_width(stored)


OWN, OTHER = 5, 5 + (1 << keys.SKETCH_BUCKET_BITS)  # two sketch keys of one bucket
BUCKET = keys.sketch_buckets(TAG, [OWN])[0]


def bucket_of(*entries: tuple[int, int]) -> bytes:
    """A bucket with these (sketch key, article number)."""
    return b"".join(encode_sketch_postings([key], number)[0] for key, number in entries)


def numbers_of(bucket: bytes | None, key: int) -> list[int]:
    """The numbers that a look-up of the key finds, ascending."""
    found: list[int] = numbers_sharing_each([bucket], [[key]], 0)[0][0].tolist()
    return found


@given(st.lists(st.tuples(st.sampled_from([OWN, OTHER]), st.integers(0, 1 << 60)), max_size=60))
def test_trimming_removes_the_oldest_entries_of_a_full_key_only(entries: list[tuple[int, int]]) -> None:
    """By position, which is the order of commits; entries of other keys stay where they are."""
    bucket, own = bucket_of(*entries), [number for key, number in entries if key == OWN]

    left = trim_sketch_key(bucket, 0, 8, 6)

    dropped = len(own) - 6 if len(own) >= 8 else 0
    kept, seen = [], 0
    for key, number in entries:
        seen += key == OWN
        if key != OWN or seen > dropped:
            kept.append((key, number))
    assert left == bucket_of(*kept)


def test_a_key_below_the_limit_is_not_trimmed() -> None:
    """Also if its bucket is long because of another key, or was not read."""
    almost = bucket_of(*((OWN, n) for n in range(FULL_KEY_ENTRIES - 1)), *((OTHER, n) for n in range(500)))

    assert list(trim_writes([BUCKET], [OWN], {BUCKET: almost})) == []
    assert list(trim_writes([BUCKET], [OWN], {BUCKET: None})) == []
    assert list(trim_writes([BUCKET], [OWN], {})) == []


def test_two_full_keys_of_one_bucket_are_trimmed_together() -> None:
    """One write, without the oldest entries of both."""
    rows = [(key, n) for n in range(FULL_KEY_ENTRIES) for key in (OWN, OTHER)]

    (write,) = trim_writes([BUCKET, BUCKET], [OWN, OTHER], {BUCKET: bucket_of(*rows)})

    assert isinstance(write, Put)
    newest = list(range(FULL_KEY_ENTRIES - KEPT_KEY_ENTRIES, FULL_KEY_ENTRIES))
    assert (numbers_of(write.value, OWN), numbers_of(write.value, OTHER)) == (newest, newest)


async def test_entries_of_a_key_are_bounded_whatever_is_stored() -> None:
    """Every insert finds fewer than the limit, the newest included, and entries of other keys stay."""
    store = MemoryStore()
    await store.commit(Transaction((), (AppendMany((BUCKET,), (bucket_of((OTHER, 1)),)),)))
    for number in range(2, 200):
        (value,) = await store.read([BUCKET])
        found = numbers_of(value, OWN)
        assert len(found) <= FULL_KEY_ENTRIES
        assert found[-KEPT_KEY_ENTRIES:] == list(range(2, number))[-KEPT_KEY_ENTRIES:]
        writes = [*trim_writes([BUCKET], [OWN], {BUCKET: value})]
        entry = AppendMany((BUCKET,), (bucket_of((OWN, number)),))
        assert (
            await store.commit(Transaction((*unchanged_checks([BUCKET], [value]),), (*writes, entry))) == ()
        )
    (value,) = await store.read([BUCKET])
    assert numbers_of(value, OTHER) == [1]


async def test_a_length_that_comes_back_is_noticed() -> None:
    """Whatever the length was: a bucket that may have been trimmed is compared by value."""
    store = MemoryStore()
    history: list[bytes | None] = []
    for number in range(3 * FULL_KEY_ENTRIES):
        (value,) = await store.read([BUCKET])
        for earlier in history:
            checks = tuple(unchanged_checks([BUCKET], [earlier]))
            assert await store.commit(Transaction(checks, ())) == (0,), (number, len(earlier or b""))
        history.append(value)
        writes = [*trim_writes([BUCKET], [OWN], {BUCKET: value})]
        await store.commit(Transaction((), (*writes, AppendMany((BUCKET,), (bucket_of((OWN, number)),)))))
    lengths = [len(value or b"") for value in history]
    assert len(set(lengths)) < len(lengths)


@pytest.mark.parametrize("entries", [0, 1, KEPT_KEY_ENTRIES - 1])
def test_short_buckets_are_checked_by_length(entries: int) -> None:
    """One check for all of them, which sends no content."""
    value = bucket_of(*((OWN, n) for n in range(entries))) or None
    long = b"-" * KEPT_KEY_ENTRIES * SKETCH_POSTING_BYTES

    assert list(unchanged_checks([b"a", b"b"], [value, None])) == [
        LengthsUnchanged((b"a", b"b"), (value, None))
    ]
    assert list(unchanged_checks([b"a", b"b"], [value, long])) == [
        LengthsUnchanged((b"a",), (value,)),
        ValueEquals(b"b", long),
    ]
    assert list(unchanged_checks([b"b"], [long])) == [ValueEquals(b"b", long)]


def test_no_bucket_needs_no_check() -> None:
    """An article without shingles."""
    assert list(unchanged_checks([], [])) == []


def test_a_full_key_keeps_more_than_a_lookup_examines() -> None:
    """Room between both limits, so that most appends do not rewrite the bucket."""
    assert KEPT_KEY_ENTRIES < FULL_KEY_ENTRIES
    assert list(decode_numbers(bucket_of((OWN, 7)), 2)) == [7]
