"""Conformance suite of the store contract (``store/base.py``): memory, Valkey, Redis and a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.store.base import (
    AdvanceVersion,
    AppendCapped,
    AppendMany,
    Delete,
    LengthsUnchanged,
    Put,
    Store,
    StreamAdd,
    Transaction,
    ValueEquals,
    next_version,
)
from aggregator.store.memory import MemoryStore
from aggregator.store.periodic_task import Lease
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.store_steps import append, length_equals, scan
from tests.support.stores import open_patient_store

DAY_MS = 86_400_000
AWKWARD = [b"", b"\0", b"\r\n", bytes(range(256)), "新闻{}".encode(), b"*?[a-z]\\", b"{", b"}", b"{}x", b" "]


@pytest.fixture(
    params=[
        "memory",
        "valkey",
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("cluster", marks=pytest.mark.services),
    ]
)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """An empty store of each kind."""
    if request.param == "memory":
        opened: Store = MemoryStore()
    else:
        opened = open_patient_store(request.getfixturevalue(f"{request.param}_url"), max_connections=16)
    await opened.check()
    yield opened
    await opened.close()


async def until_gone(store: Store, key: bytes) -> None:
    """Poll until ``key`` has expired."""
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while (await store.read([key]))[0] is not None:
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0)


def appending(key: bytes, value: bytes, length: int) -> Transaction:
    """A transaction that appends ``value`` if ``key`` is ``length`` bytes long."""
    return Transaction((length_equals(key, length),), (append(key, value),))


async def test_read_keeps_the_order_and_returns_none_for_absent_keys(store: Store) -> None:
    """Values are in the order of the keys, over several tags, repeated keys included."""
    await store.put([Put(b"{a}1", b"one"), Put(b"{b}2", b"two"), Put(b"plain", b"")])

    assert await store.read([b"{b}2", b"{c}3", b"{a}1", b"plain", b"{b}2"]) == [
        b"two",
        None,
        b"one",
        b"",
        b"two",
    ]


async def test_empty_input_does_nothing(store: Store) -> None:
    """Empty lists and transactions return empty results."""
    assert await store.read([]) == []
    assert await store.commit(Transaction((), ())) == ()
    assert await store.commit_many([]) == []
    assert await store.commit_many([Transaction((), ())]) == [()]
    assert await store.put([]) == []
    await store.delete([])
    assert await store.stream_read([], [], 10) == []
    assert await store.stream_read([b"s"], [b""], 10) == [[]]
    assert await store.stream_read([b"s"], [b""], 0) == [[]]
    assert await store.stream_tail(b"s", 10) == []
    assert await store.stream_tail(b"s", 0) == []
    await store.stream_trim(b"s", b"1-0")
    assert await scan(store, b"") == []


async def test_commit_applies_every_kind_of_write(store: Store) -> None:
    """One transaction appends, sets, removes and adds to a stream."""
    await store.put([Put(b"{t}old", b"x"), Put(b"{t}grow", b"ab")])

    done = await store.commit(
        Transaction(
            (
                length_equals(b"{t}grow", 2),
                length_equals(b"{t}none", 0),
                ValueEquals(b"{t}old", b"x"),
                ValueEquals(b"{t}new", None),
            ),
            (
                append(b"{t}grow", b"cd"),
                append(b"{t}fresh", b"ef"),
                Put(b"{t}new", b"v"),
                Delete(b"{t}old"),
                Delete(b"{t}absent"),
                StreamAdd(b"{t}s", b"payload"),
            ),
        )
    )

    assert done == ()
    assert await store.read([b"{t}grow", b"{t}fresh", b"{t}new", b"{t}old"]) == [b"abcd", b"ef", b"v", None]
    assert [payload for _, payload in await store.stream_tail(b"{t}s", 9)] == [b"payload"]


async def test_a_failed_check_names_itself_and_leaves_everything_as_it_was(store: Store) -> None:
    """All failed checks are listed by index; no write of the transaction is applied."""
    await store.put([Put(b"{t}a", b"abc"), Put(b"{t}e", b"")])
    checks = (
        length_equals(b"{t}a", 3),
        length_equals(b"{t}a", 2),
        length_equals(b"{t}none", 1),
        ValueEquals(b"{t}a", b"abc"),
        ValueEquals(b"{t}a", b"abd"),
        ValueEquals(b"{t}a", None),
        ValueEquals(b"{t}none", b"x"),
    )

    failed = await store.commit(
        Transaction(
            checks,
            (append(b"{t}a", b"!"), Put(b"{t}p", b"!"), Delete(b"{t}e"), StreamAdd(b"{t}s", b"!")),
        )
    )

    assert failed == (1, 2, 4, 5, 6)
    assert await store.read([b"{t}a", b"{t}p", b"{t}e"]) == [b"abc", None, b""]
    assert await store.stream_tail(b"{t}s", 1) == []


async def test_absent_and_empty_are_different_for_equals(store: Store) -> None:
    """An empty value is a value; ``LengthEquals`` treats both as 0."""
    await store.put([Put(b"{t}empty", b"")])

    def equals(key: bytes, value: bytes | None) -> Transaction:
        return Transaction((ValueEquals(key, value),), ())

    assert await store.commit(equals(b"{t}empty", b"")) == ()
    assert await store.commit(equals(b"{t}empty", None)) == (0,)
    assert await store.commit(equals(b"{t}none", None)) == ()
    assert await store.commit(equals(b"{t}none", b"")) == (0,)
    assert (
        await store.commit(Transaction((length_equals(b"{t}empty", 0), length_equals(b"{t}none", 0)), ()))
        == ()
    )


async def test_a_stream_is_not_absent_and_has_no_value(store: Store) -> None:
    """A key that holds a stream reads as None but exists."""
    await store.commit(Transaction((), (StreamAdd(b"{t}s", b"p"),)))

    assert await store.read([b"{t}s"]) == [None]
    assert await store.commit(Transaction((ValueEquals(b"{t}s", None),), ())) == (0,)
    assert await store.put([Put(b"{t}s", b"x")], only_if_absent=True) == [False]

    await store.commit(Transaction((), (Delete(b"{t}s"),)))

    assert await store.stream_tail(b"{t}s", 1) == []


async def test_append_skips_a_key_that_would_exceed_the_limit(store: Store) -> None:
    """Only the append that would make its value longer than the limit is skipped."""
    add = Transaction((), (AppendMany((b"{t}a",), (b"four",), max_bytes=8), append(b"{t}n", b".")))
    for _ in range(3):
        assert await store.commit(add) == ()

    assert await store.read([b"{t}a", b"{t}n"]) == [b"fourfour", b"..."]


async def test_writes_of_one_transaction_see_each_other(store: Store) -> None:
    """They are applied in order: set, then append, then limit."""
    await store.commit(
        Transaction(
            (),
            (
                Put(b"{t}a", b"1"),
                append(b"{t}a", b"2"),
                AppendMany((b"{t}a",), (b"3",), 2),
                AppendMany((b"{t}a",), (b"4",), 3),
            ),
        )
    )

    assert await store.read([b"{t}a"]) == [b"124"]


async def test_values_expire_unless_a_later_put_replaces_them(store: Store) -> None:
    """A key expires after its time to live; a Put without one removes it; values below 1 ms count as 1."""
    await store.put([Put(b"{t}short", b"x", 1), Put(b"{t}past", b"x", -5), Put(b"{t}long", b"x", DAY_MS)])
    await store.commit(Transaction((), (Put(b"{t}kept", b"x", 1), Put(b"{t}kept", b"y"))))
    await store.commit(Transaction((), (Put(b"{t}brief", b"x", 0), append(b"{t}brief", b"tail"))))
    for key in (b"{t}short", b"{t}past", b"{t}brief"):
        await until_gone(store, key)

    assert await store.read([b"{t}long", b"{t}kept"]) == [b"x", b"y"]
    assert (
        await store.commit(Transaction((ValueEquals(b"{t}short", None), length_equals(b"{t}brief", 0)), ()))
        == ()
    )
    assert await store.put([Put(b"{t}short", b"again")], only_if_absent=True) == [True]


async def test_put_only_if_absent_reports_which_keys_were_set(store: Store) -> None:
    """The first of two equal keys wins, also within one call."""
    await store.put([Put(b"a", b"1")])

    done = await store.put(
        [Put(b"a", b"2"), Put(b"{b}", b"3"), Put(b"{b}", b"4"), Put(b"c", b"5", DAY_MS)], only_if_absent=True
    )

    assert done == [False, True, False, True]
    assert await store.read([b"a", b"{b}", b"c"]) == [b"1", b"3", b"5"]
    assert await store.put([Put(b"a", b"6")]) == [True]


async def test_delete_removes_keys_of_any_tag(store: Store) -> None:
    """Absent keys do not matter."""
    await store.put([Put(b"{a}", b"1"), Put(b"{b}", b"2"), Put(b"{c}", b"3")])
    await store.delete([b"{a}", b"{none}", b"{b}"])

    assert await store.read([b"{a}", b"{b}", b"{c}"]) == [None, None, b"3"]


@pytest.mark.parametrize("awkward", AWKWARD)
async def test_keys_and_values_are_arbitrary_bytes(store: Store, awkward: bytes) -> None:
    """No byte in a key or value is special to any method."""
    key, stream, lease = b"{t}k" + awkward, b"{t}s" + awkward, b"{t}l" + awkward

    assert await store.commit(Transaction((ValueEquals(key, None),), (Put(key, awkward),))) == ()
    assert await store.commit(Transaction((ValueEquals(key, awkward),), (append(key, awkward),))) == ()
    assert await store.read([key]) == [awkward * 2]
    assert await store.commit(Transaction((), (StreamAdd(stream, awkward),))) == ()
    assert [payload for _, payload in await store.stream_tail(stream, 1)] == [awkward]
    assert await Lease(store, lease, DAY_MS).acquire()
    assert await scan(store, b"{t}k" + awkward) == [key]
    assert await scan(store, b"{t}") == sorted({key, stream, lease})


async def test_big_values_and_many_keys(store: Store) -> None:
    """Eight megabytes in one value, five thousand keys in one read."""
    big = bytes(range(256)) * 32_768
    keys = [b"{%d}k" % i for i in range(5000)]
    await store.put([Put(b"{t}big", big), *(Put(key, key) for key in keys[::2])])

    assert await store.commit(appending(b"{t}big", b"tail", len(big))) == ()
    assert (await store.read([b"{t}big"]))[0] == big + b"tail"
    assert await store.commit(Transaction((ValueEquals(b"{t}big", big),), ())) == (0,)
    assert await store.read(keys) == [key if i % 2 == 0 else None for i, key in enumerate(keys)]


async def test_commit_many_applies_in_order_and_each_one_atomically(store: Store) -> None:
    """A failed transaction does not affect the others, which see the writes before them."""
    done = await store.commit_many(
        [
            appending(b"{t}a", b"1", 0),
            appending(b"{t}a", b"2", 1),
            appending(b"{t}a", b"lost", 1),
            Transaction((), ()),
            appending(b"{u}a", b"other", 0),
            appending(b"{t}a", b"3", 2),
        ]
    )

    assert done == [(), (), (0,), (), (), ()]
    assert await store.read([b"{t}a", b"{u}a"]) == [b"123", b"other"]


async def test_many_tags_keep_their_own_order(store: Store) -> None:
    """Interleaved transactions of twenty tags, each tag in the order given."""
    steps = [(tag, i) for i in range(10) for tag in range(20)]
    done = await store.commit_many([appending(b"{%d}a" % tag, b"%d" % i, i) for tag, i in steps])

    assert done == [()] * len(steps)
    assert await store.read([b"{%d}a" % tag for tag in range(20)]) == [b"0123456789"] * 20


async def test_exactly_one_of_many_concurrent_commits_wins(store: Store) -> None:
    """Of 24 commits that read the same length, one is applied, in each of ten rounds."""
    for round_number in range(10):
        (seen,) = await store.read([b"{t}a"])
        assert len(seen or b"") == round_number

        done = await asyncio.gather(
            *(store.commit(appending(b"{t}a", b"%c" % (65 + i), round_number)) for i in range(24))
        )

        assert done.count(()) == 1
        assert done.count((0,)) == 23


async def test_no_update_is_lost_when_all_writers_retry(store: Store) -> None:
    """Thirty writers retry until their append is applied: each is applied once."""

    async def write(number: int) -> None:
        while True:
            (seen,) = await store.read([b"{t}a"])
            if await store.commit(appending(b"{t}a", b"%02d" % number, len(seen or b""))) == ():
                return

    await asyncio.gather(*(write(number) for number in range(30)))
    (value,) = await store.read([b"{t}a"])

    assert value is not None
    assert sorted(value[i : i + 2] for i in range(0, len(value), 2)) == [b"%02d" % i for i in range(30)]


async def test_a_reader_never_sees_a_partial_commit(store: Store) -> None:
    """Two keys of one tag change atomically."""
    stop = asyncio.Event()

    async def write() -> None:
        for i in range(150):
            await store.commit(Transaction((), (Put(b"{t}x", b"%d" % i), Put(b"{t}y", b"%d" % i))))
        stop.set()

    async def observe() -> None:
        while not stop.is_set():
            x, y = await store.read([b"{t}x", b"{t}y"])
            assert x == y
            await asyncio.sleep(0)

    await asyncio.gather(write(), observe(), observe())


async def test_streams_are_read_in_order_from_a_position(store: Store) -> None:
    """Entries are returned in insertion order, a page at a time, from several streams in one call."""
    for i in range(25):
        await store.commit(Transaction((), (StreamAdd(b"{a}s", b"a%d" % i), StreamAdd(b"{a}t", b"t%d" % i))))
    await store.commit(Transaction((), (StreamAdd(b"{b}s", b"b"),)))

    first, other, none = await store.stream_read([b"{a}s", b"{b}s", b"{c}s"], [b"", b"", b""], 10)
    assert [payload for _, payload in first] == [b"a%d" % i for i in range(10)]
    assert [payload for _, payload in other] == [b"b"]
    assert none == []

    second, again = await store.stream_read([b"{a}s", b"{b}s"], [first[-1][0], other[-1][0]], 100)
    assert [payload for _, payload in second] == [b"a%d" % i for i in range(10, 25)]
    assert again == []
    positions = [position for position, _ in first + second]
    assert len(set(positions)) == 25

    assert await store.stream_tail(b"{a}s", 3) == second[:-4:-1]
    assert await store.stream_tail(b"{a}s", 1000) == (first + second)[::-1]
    assert await store.stream_tail(b"{a}s", 2, first[3][0]) == first[2:0:-1]
    assert await store.stream_tail(b"{a}s", 9, first[0][0]) == []


async def test_trimming_removes_only_older_entries(store: Store) -> None:
    """The entry at the position stays; positions keep increasing, even in an emptied stream."""
    await store.commit(Transaction((), tuple(StreamAdd(b"{a}s", b"%d" % i) for i in range(5))))
    ((*_, middle, _, newest),) = await store.stream_read([b"{a}s"], [b""], 10)

    await store.stream_trim(b"{a}s", middle[0])
    assert [payload for _, payload in await store.stream_tail(b"{a}s", 9)] == [b"4", b"3", b"2"]

    ms, sequence = newest[0].split(b"-")
    await store.stream_trim(b"{a}s", b"%s-%d" % (ms, int(sequence) + 1))
    assert await store.stream_tail(b"{a}s", 9) == []

    await store.commit(Transaction((), (StreamAdd(b"{a}s", b"5"),)))
    ((entry,),) = await store.stream_read([b"{a}s"], [newest[0]], 9)
    assert entry[1] == b"5"


async def test_a_lease_has_one_holder(store: Store) -> None:
    """Its holder renews it, others cannot acquire it until it is released; only the holder can release it."""
    first, second = Lease(store, b"{l}", DAY_MS), Lease(store, b"{l}", DAY_MS)
    assert await first.acquire()
    assert await first.acquire()
    assert not await second.acquire()

    second.is_held = True  # as in a replica that was suspended while its lease expired
    await second.release()
    assert not await second.acquire()

    await first.release()
    await first.release()
    assert await second.acquire()


async def test_a_lease_expires(store: Store) -> None:
    """A holder that does not renew it loses it; exactly one of 16 concurrent candidates acquires it."""
    assert await Lease(store, b"{l}", 1).acquire()
    await until_gone(store, b"{l}")

    acquired = await asyncio.gather(*(Lease(store, b"{l}", DAY_MS).acquire() for _ in range(16)))

    assert acquired.count(True) == 1


async def test_a_lease_that_is_not_renewed_is_taken_over_before_it_expires(store: Store) -> None:
    """As of a holder that renewed it while the store's clock was a day ahead, and then died."""
    assert await Lease(store, b"{l}", DAY_MS).acquire()
    monotonic_s = [0.0]
    others = [Lease(store, b"{l}", 3000, monotonic=lambda: monotonic_s[0]) for _ in range(8)]
    assert not any(await asyncio.gather(*(lease.acquire() for lease in others)))
    monotonic_s[0] = 3.0

    acquired = await asyncio.gather(*(lease.acquire() for lease in others))

    assert acquired.count(True) == 1


async def test_scan_returns_exactly_the_keys_with_the_prefix(store: Store) -> None:
    """Over all tags, sorted, streams included."""
    await store.put([Put(b"{%d}k" % i, b"") for i in range(300)] + [Put(b"other", b"")])
    await store.commit(Transaction((), (StreamAdd(b"{s}k", b""),)))

    assert await scan(store, b"{") == sorted([b"{%d}k" % i for i in range(300)] + [b"{s}k"])
    assert await scan(store, b"{29") == sorted([b"{29}k", *(b"{29%d}k" % i for i in range(10))])
    assert await scan(store, b"nothing") == []
    batches = [batch async for batch in store.scan_batches(b"{")]
    assert {key for batch in batches for key in batch} == set(await scan(store, b"{"))


async def test_info_describes_the_store(store: Store) -> None:
    """Ready, with a kind, a version, a size and a sentence on durability."""
    info = await store.info()

    assert info.ready and info.problem is None
    assert info.kind in ("memory", "redis", "redis-cluster")
    assert info.version and info.durability
    assert info.memory_bytes >= 0


async def test_append_capped_keeps_the_newest_bytes(store: Store) -> None:
    """At least ``keep_bytes`` bytes stay, at most twice as many."""
    for n in range(9):
        await store.commit(Transaction((), (AppendCapped((b"{t}p", b"{t}q"), (b"%d." % n, b"-"), 6),)))
    assert await store.read([b"{t}p", b"{t}q"]) == [b"4.5.6.7.8.", b"-" * 9]


async def test_close_is_idempotent(store: Store) -> None:
    """Closing twice is harmless."""
    await store.put([Put(b"a", b"")])
    await store.close()
    await store.close()


KEYS = st.sampled_from([b"{t}a", b"{t}b", b"{t}c"])
PAIRS = st.tuples(KEYS, KEYS)
VALUES = st.sampled_from([b"", b"x", b"yy", b"zzz"])
CHECKS = st.one_of(
    st.builds(length_equals, KEYS, st.integers(0, 4)),
    st.builds(
        lambda each: LengthsUnchanged(*zip(*each, strict=True)),
        st.lists(st.tuples(KEYS, st.integers(0, 4).map(bytes)), min_size=1, max_size=3),
    ),
    st.builds(ValueEquals, KEYS, st.one_of(st.none(), VALUES)),
)
WRITES = st.one_of(
    st.builds(append, KEYS, VALUES),
    st.builds(AppendMany, PAIRS, st.tuples(VALUES, VALUES), st.integers(0, 5)),
    st.builds(AppendCapped, PAIRS, st.tuples(VALUES, VALUES), st.integers(1, 4)),
    st.builds(Put, KEYS, VALUES, st.sampled_from([None, DAY_MS])),
    st.builds(Delete, KEYS),
    st.builds(StreamAdd, st.just(b"{t}s"), VALUES),
)
TRANSACTIONS = st.lists(
    st.builds(Transaction, st.lists(CHECKS, max_size=2).map(tuple), st.lists(WRITES, max_size=3).map(tuple)),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(transactions=TRANSACTIONS)
async def test_all_stores_agree_with_memory(store: Store, transactions: list[Transaction]) -> None:
    """Any sequence of transactions has the same results and leaves the same data as in memory."""
    keys = [b"{t}a", b"{t}b", b"{t}c"]
    await store.delete([*keys, b"{t}s"])
    model = MemoryStore()

    assert await store.commit_many(transactions) == await model.commit_many(transactions)
    assert await store.read(keys) == await model.read(keys)
    assert await scan(store, b"{t}") == await scan(model, b"{t}")
    tails = [await each.stream_tail(b"{t}s", 99) for each in (store, model)]
    assert [payload for _, payload in tails[0]] == [payload for _, payload in tails[1]]


async def test_a_version_depends_on_the_history_of_tokens(store: Store) -> None:
    """Each version depends on those before it, so the order and number of tokens matter."""
    for token in (b"a", b"b"):
        assert (
            await store.commit(Transaction((), (AdvanceVersion(b"{t}v", token), append(b"{t}x", token))))
            == ()
        )

    assert await store.read([b"{t}v", b"{t}x"]) == [next_version(next_version(None, b"a"), b"b"), b"ab"]
    assert (
        next_version(next_version(None, b"b"), b"a")
        != next_version(next_version(None, b"a"), b"b")
        != next_version(None, b"ab")
    )


async def test_checks_are_skipped_while_the_version_guard_holds(store: Store) -> None:
    """For a present and an absent version; the values of skipped checks do not shift those of the writes."""
    checks = (ValueEquals(b"{t}a", b"wrong"), length_equals(b"{t}b", 7), ValueEquals(b"{t}c", b"wrong too"))
    writes = (Put(b"{t}v", b"1"), append(b"{t}b", b"x"))

    assert await store.commit(Transaction(checks, writes, ValueEquals(b"{t}v", None))) == ()
    assert await store.commit(Transaction(checks, writes, ValueEquals(b"{t}v", b"1"))) == ()
    assert await store.read([b"{t}v", b"{t}b"]) == [b"1", b"xx"]


async def test_the_checks_decide_when_the_version_guard_fails(store: Store) -> None:
    """The guard is not counted among failed checks; if all checks hold, the transaction is applied."""
    await store.put([Put(b"{t}a", b"a"), Put(b"{t}b", b"bb")])
    stale = ValueEquals(b"{t}v", b"other")
    checks = (ValueEquals(b"{t}a", b"a"), length_equals(b"{t}b", 2), ValueEquals(b"{t}c", None))
    wrong = (ValueEquals(b"{t}a", b"b"), length_equals(b"{t}b", 2), ValueEquals(b"{t}b", b"no"))

    assert await store.commit(Transaction(wrong, (Put(b"{t}x", b"1"),), stale)) == (0, 2)
    assert await store.read([b"{t}x"]) == [None]
    assert await store.commit(Transaction(checks, (Put(b"{t}x", b"1"),), stale)) == ()
    assert await store.read([b"{t}x"]) == [b"1"]


def _dependent(tokens: bytes, version: bytes | None) -> list[Transaction]:
    """Appends of one letter each; each expects the version that the one before it produces."""
    transactions = []
    for i in range(len(tokens)):
        token = tokens[i : i + 1]
        checks = (LengthsUnchanged((b"{t}none", b"{t}x"), (None, bytes(i))),)
        writes = (append(b"{t}x", token), AdvanceVersion(b"{t}v", token))
        transactions.append(Transaction(checks, writes, ValueEquals(b"{t}v", version)))
        version = next_version(version, token)
    return transactions


async def test_dependent_commits_are_merged_without_a_difference(store: Store) -> None:
    """Without a commit in between all are applied, and the version includes each of them."""
    assert await store.commit_many(_dependent(b"abc", None)) == [(), (), ()]
    version = next_version(next_version(next_version(None, b"a"), b"b"), b"c")

    assert await store.read([b"{t}x", b"{t}v"]) == [b"abc", version]


async def test_after_a_foreign_commit_each_transaction_is_checked_separately(store: Store) -> None:
    """Those whose keys are unchanged are applied; the others fail by their own checks."""
    await store.put([Put(b"{t}v", b"foreign")])
    assert await store.commit_many(_dependent(b"ab", None)) == [(), ()]
    await store.put([Put(b"{t}v", b"foreign"), Put(b"{t}x", b"abc")])

    assert await store.commit_many(_dependent(b"abc", None)) == [(0,), (0,), (0,)]
    assert await store.read([b"{t}x", b"{t}v"]) == [b"abc", b"foreign"]
