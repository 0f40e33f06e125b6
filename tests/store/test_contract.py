"""What every store promises (``store/base.py``), on each of them: memory, Valkey, Redis, a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.store.base import (
    AdvanceVersion,
    Append,
    AppendCapped,
    AppendMany,
    Delete,
    LengthEquals,
    LengthsUnchanged,
    Put,
    Store,
    StreamAdd,
    Transaction,
    ValueEquals,
    next_version,
)
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import open_redis_store

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
        opened = open_redis_store(request.getfixturevalue(f"{request.param}_url"), max_connections=16)
    await opened.check()
    yield opened
    await opened.close()


async def until_gone(store: Store, key: bytes) -> None:
    """Ask until ``key`` has expired."""
    deadline_s = time.monotonic() + 5
    while (await store.read([key]))[0] is not None:
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0)


def appending(key: bytes, value: bytes, length: int) -> Transaction:
    """Append if the key is still as long as it was read."""
    return Transaction((LengthEquals(key, length),), (Append(key, value),))


async def test_read_keeps_the_order_and_gives_none_for_absent_keys(store: Store) -> None:
    """Values come in the order asked for, over several tags, repeated keys included."""
    await store.put([Put(b"{a}1", b"one"), Put(b"{b}2", b"two"), Put(b"plain", b"")])

    assert await store.read([b"{b}2", b"{c}3", b"{a}1", b"plain", b"{b}2"]) == [
        b"two",
        None,
        b"one",
        b"",
        b"two",
    ]


async def test_empty_input_does_nothing(store: Store) -> None:
    """Empty lists and transactions are answered without complaint."""
    assert await store.read([]) == []
    assert await store.commit(Transaction((), ())) == ()
    assert await store.commit_many([]) == []
    assert await store.commit_many([Transaction((), ())]) == [()]
    assert await store.put([]) == []
    assert await store.delete([]) is None
    assert await store.stream_read([], [], 10) == []
    assert await store.stream_read([b"s"], [b""], 10) == [[]]
    assert await store.stream_read([b"s"], [b""], 0) == [[]]
    assert await store.stream_tail(b"s", 10) == []
    assert await store.stream_lengths([]) == []
    assert await store.stream_lengths([b"s"]) == [0]
    assert await store.stream_tail(b"s", 0) == []
    assert await store.stream_trim(b"s", b"1-0") is None
    assert await store.scan(b"") == []


async def test_commit_applies_every_kind_of_write(store: Store) -> None:
    """One transaction appends, sets, removes and adds to a stream."""
    await store.put([Put(b"{t}old", b"x"), Put(b"{t}grow", b"ab")])

    done = await store.commit(
        Transaction(
            (
                LengthEquals(b"{t}grow", 2),
                LengthEquals(b"{t}none", 0),
                ValueEquals(b"{t}old", b"x"),
                ValueEquals(b"{t}new", None),
            ),
            (
                Append(b"{t}grow", b"cd"),
                Append(b"{t}fresh", b"ef"),
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
    assert await store.stream_lengths([b"{u}s", b"{t}s"]) == [0, 1]


async def test_a_failed_check_names_itself_and_leaves_everything_as_it_was(store: Store) -> None:
    """All failing checks are listed by index; no write of the transaction happens."""
    await store.put([Put(b"{t}a", b"abc"), Put(b"{t}e", b"")])
    checks = (
        LengthEquals(b"{t}a", 3),
        LengthEquals(b"{t}a", 2),
        LengthEquals(b"{t}none", 1),
        ValueEquals(b"{t}a", b"abc"),
        ValueEquals(b"{t}a", b"abd"),
        ValueEquals(b"{t}a", None),
        ValueEquals(b"{t}none", b"x"),
    )

    failed = await store.commit(
        Transaction(
            checks,
            (Append(b"{t}a", b"!"), Put(b"{t}p", b"!"), Delete(b"{t}e"), StreamAdd(b"{t}s", b"!")),
        )
    )

    assert failed == (1, 2, 4, 5, 6)
    assert await store.read([b"{t}a", b"{t}p", b"{t}e"]) == [b"abc", None, b""]
    assert await store.stream_tail(b"{t}s", 1) == []


async def test_absent_and_empty_are_different_for_equals(store: Store) -> None:
    """An empty value is a value; for Length both are 0."""
    await store.put([Put(b"{t}empty", b"")])

    def equals(key: bytes, value: bytes | None) -> Transaction:
        return Transaction((ValueEquals(key, value),), ())

    assert await store.commit(equals(b"{t}empty", b"")) == ()
    assert await store.commit(equals(b"{t}empty", None)) == (0,)
    assert await store.commit(equals(b"{t}none", None)) == ()
    assert await store.commit(equals(b"{t}none", b"")) == (0,)
    assert (
        await store.commit(Transaction((LengthEquals(b"{t}empty", 0), LengthEquals(b"{t}none", 0)), ())) == ()
    )


async def test_a_stream_is_not_absent_and_has_no_value(store: Store) -> None:
    """A key that holds a stream reads as None but is taken."""
    await store.commit(Transaction((), (StreamAdd(b"{t}s", b"p"),)))

    assert await store.read([b"{t}s"]) == [None]
    assert await store.commit(Transaction((ValueEquals(b"{t}s", None),), ())) == (0,)
    assert await store.put([Put(b"{t}s", b"x")], only_if_absent=True) == [False]

    await store.commit(Transaction((), (Delete(b"{t}s"),)))

    assert await store.stream_tail(b"{t}s", 1) == []


async def test_append_stops_at_its_limit(store: Store) -> None:
    """An append that would make the value longer than the limit is skipped, alone."""
    add = Transaction((), (Append(b"{t}a", b"four", max_bytes=8), Append(b"{t}n", b".")))
    for _ in range(3):
        assert await store.commit(add) == ()

    assert await store.read([b"{t}a", b"{t}n"]) == [b"fourfour", b"..."]


async def test_writes_of_one_transaction_see_each_other(store: Store) -> None:
    """They are applied in order: set, then append, then limit."""
    await store.commit(
        Transaction(
            (),
            (Put(b"{t}a", b"1"), Append(b"{t}a", b"2"), Append(b"{t}a", b"3", 2), Append(b"{t}a", b"4", 3)),
        )
    )

    assert await store.read([b"{t}a"]) == [b"124"]


async def test_values_expire_and_a_later_put_outlives_them(store: Store) -> None:
    """A time to live ends a key, and a Put without one lifts it; none is shorter than 1 ms."""
    await store.put([Put(b"{t}short", b"x", 1), Put(b"{t}past", b"x", -5), Put(b"{t}long", b"x", DAY_MS)])
    await store.commit(Transaction((), (Put(b"{t}kept", b"x", 1), Put(b"{t}kept", b"y"))))
    await store.commit(Transaction((), (Put(b"{t}brief", b"x", 0), Append(b"{t}brief", b"tail"))))
    for key in (b"{t}short", b"{t}past", b"{t}brief"):
        await until_gone(store, key)

    assert await store.read([b"{t}long", b"{t}kept"]) == [b"x", b"y"]
    assert (
        await store.commit(Transaction((ValueEquals(b"{t}short", None), LengthEquals(b"{t}brief", 0)), ()))
        == ()
    )
    assert await store.put([Put(b"{t}short", b"again")], only_if_absent=True) == [True]


async def test_put_only_if_absent_tells_which_were_set(store: Store) -> None:
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
async def test_keys_and_values_are_plain_bytes(store: Store, awkward: bytes) -> None:
    """Nothing in a key or value is special, to any method."""
    key, stream, lease = b"{t}k" + awkward, b"{t}s" + awkward, b"{t}l" + awkward

    assert await store.commit(Transaction((ValueEquals(key, None),), (Put(key, awkward),))) == ()
    assert await store.commit(Transaction((ValueEquals(key, awkward),), (Append(key, awkward),))) == ()
    assert await store.read([key]) == [awkward * 2]
    assert await store.commit(Transaction((), (StreamAdd(stream, awkward),))) == ()
    assert [payload for _, payload in await store.stream_tail(stream, 1)] == [awkward]
    assert await store.acquire(lease, awkward, DAY_MS)
    assert await store.scan(b"{t}k" + awkward) == [key]
    assert await store.scan(b"{t}") == sorted({key, stream, lease})


async def test_big_values_and_many_keys(store: Store) -> None:
    """Eight megabytes in one value, five thousand keys in one read."""
    big = bytes(range(256)) * 32_768
    keys = [b"{%d}k" % i for i in range(5000)]
    await store.put([Put(b"{t}big", big), *(Put(key, key) for key in keys[::2])])

    assert await store.commit(appending(b"{t}big", b"tail", len(big))) == ()
    assert (await store.read([b"{t}big"]))[0] == big + b"tail"
    assert await store.commit(Transaction((ValueEquals(b"{t}big", big),), ())) == (0,)
    assert await store.read(keys) == [key if i % 2 == 0 else None for i, key in enumerate(keys)]


async def test_commit_many_applies_in_order_and_each_alone(store: Store) -> None:
    """A failed one changes nothing for the others, which see what came before them."""
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


async def test_exactly_one_of_many_at_once_wins(store: Store) -> None:
    """Of 24 commits that read the same length, one is applied; round after round."""
    for round_number in range(10):
        (seen,) = await store.read([b"{t}a"])
        assert len(seen or b"") == round_number

        done = await asyncio.gather(
            *(store.commit(appending(b"{t}a", b"%c" % (65 + i), round_number)) for i in range(24))
        )

        assert done.count(()) == 1
        assert done.count((0,)) == 23


async def test_no_update_is_lost_when_all_read_and_commit_again(store: Store) -> None:
    """Thirty writers repeat until their own append went in: all are in, once."""

    async def write(number: int) -> None:
        while True:
            (seen,) = await store.read([b"{t}a"])
            if await store.commit(appending(b"{t}a", b"%02d" % number, len(seen or b""))) == ():
                return

    await asyncio.gather(*(write(number) for number in range(30)))
    (value,) = await store.read([b"{t}a"])

    assert value is not None
    assert sorted(value[i : i + 2] for i in range(0, len(value), 2)) == [b"%02d" % i for i in range(30)]


async def test_a_reader_never_sees_half_a_commit(store: Store) -> None:
    """Two keys of one tag always change together."""
    stop = asyncio.Event()

    async def write() -> None:
        for i in range(150):
            await store.commit(Transaction((), (Put(b"{t}x", b"%d" % i), Put(b"{t}y", b"%d" % i))))
        stop.set()

    async def watch() -> None:
        while not stop.is_set():
            x, y = await store.read([b"{t}x", b"{t}y"])
            assert x == y
            await asyncio.sleep(0)

    await asyncio.gather(write(), watch(), watch())


async def test_streams_are_read_in_order_from_a_position(store: Store) -> None:
    """Entries come back in order of adding, a page at a time, from several streams at once."""
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


async def test_trimming_forgets_only_what_is_older(store: Store) -> None:
    """The entry at the position stays; positions go on rising, also from an emptied stream."""
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
    """Its holder renews it, others are refused until it is returned; only the holder returns it."""
    assert await store.acquire(b"{l}", b"one", DAY_MS)
    assert await store.acquire(b"{l}", b"one", DAY_MS)
    assert not await store.acquire(b"{l}", b"two", DAY_MS)

    await store.release(b"{l}", b"two")
    assert not await store.acquire(b"{l}", b"two", DAY_MS)

    await store.release(b"{l}", b"one")
    await store.release(b"{l}", b"one")
    assert await store.acquire(b"{l}", b"two", DAY_MS)


async def test_a_lease_ends_with_its_time(store: Store) -> None:
    """A holder that does not renew loses it; of several that want it one gets it."""
    assert await store.acquire(b"{l}", b"one", 1)
    await until_gone(store, b"{l}")

    got = await asyncio.gather(*(store.acquire(b"{l}", b"%d" % i, DAY_MS) for i in range(16)))

    assert got.count(True) == 1


async def test_scan_finds_exactly_the_prefix(store: Store) -> None:
    """Over all tags, sorted, streams included."""
    await store.put([Put(b"{%d}k" % i, b"") for i in range(300)] + [Put(b"other", b"")])
    await store.commit(Transaction((), (StreamAdd(b"{s}k", b""),)))

    assert await store.scan(b"{") == sorted([b"{%d}k" % i for i in range(300)] + [b"{s}k"])
    assert await store.scan(b"{29") == sorted([b"{29}k", *(b"{29%d}k" % i for i in range(10))])
    assert await store.scan(b"nothing") == []
    steps = [found async for found in store.scan_batches(b"{")]
    assert {key for found in steps for key in found} == set(await store.scan(b"{"))


async def test_info_says_what_it_is(store: Store) -> None:
    """Ready, with a kind, a version, a size and a sentence on durability."""
    info = await store.info()

    assert info.ready and info.problem is None
    assert info.kind in ("memory", "redis", "redis-cluster")
    assert info.version and info.durability
    assert info.memory_bytes >= 0


async def test_push_keeps_the_newest(store: Store) -> None:
    """At least ``keep`` bytes stay, at most twice as many; a time to live stays too."""
    for n in range(9):
        await store.commit(Transaction((), (AppendCapped((b"{t}p", b"{t}q"), (b"%d." % n, b"-"), 6),)))
    assert await store.read([b"{t}p", b"{t}q"]) == [b"4.5.6.7.8.", b"-" * 9]


async def test_close_may_be_repeated(store: Store) -> None:
    """Closing twice is harmless."""
    await store.put([Put(b"a", b"")])
    await store.close()
    await store.close()


KEYS = st.sampled_from([b"{t}a", b"{t}b", b"{t}c"])
PAIRS = st.tuples(KEYS, KEYS)
VALUES = st.sampled_from([b"", b"x", b"yy", b"zzz"])
CHECKS = st.one_of(
    st.builds(LengthEquals, KEYS, st.integers(0, 4)),
    st.builds(
        lambda each: LengthsUnchanged(*zip(*each, strict=True)),
        st.lists(st.tuples(KEYS, st.integers(0, 4).map(bytes)), min_size=1, max_size=3),
    ),
    st.builds(ValueEquals, KEYS, st.one_of(st.none(), VALUES)),
)
WRITES = st.one_of(
    st.builds(Append, KEYS, VALUES, st.integers(0, 5)),
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
    """Any sequence of transactions has the same answers and leaves the same data as in memory."""
    keys = [b"{t}a", b"{t}b", b"{t}c"]
    await store.delete([*keys, b"{t}s"])
    model = MemoryStore()

    assert await store.commit_many(transactions) == await model.commit_many(transactions)
    assert await store.read(keys) == await model.read(keys)
    assert await store.scan(b"{t}") == await model.scan(b"{t}")
    tails = [await each.stream_tail(b"{t}s", 99) for each in (store, model)]
    assert [payload for _, payload in tails[0]] == [payload for _, payload in tails[1]]


async def test_a_chain_names_all_that_was_chained(store: Store) -> None:
    """Each link depends on those before it, so order and number count."""
    for token in (b"a", b"b"):
        assert (
            await store.commit(Transaction((), (AdvanceVersion(b"{t}v", token), Append(b"{t}x", token))))
            == ()
        )

    assert await store.read([b"{t}v", b"{t}x"]) == [next_version(next_version(None, b"a"), b"b"), b"ab"]
    assert (
        next_version(next_version(None, b"b"), b"a")
        != next_version(next_version(None, b"a"), b"b")
        != next_version(None, b"ab")
    )


async def test_while_the_given_holds_checks_are_not_looked_at(store: Store) -> None:
    """Present or absent; the values of checks and writes behind it stay in step."""
    checks = (ValueEquals(b"{t}a", b"wrong"), LengthEquals(b"{t}b", 7), ValueEquals(b"{t}c", b"wrong too"))
    writes = (Put(b"{t}v", b"1"), Append(b"{t}b", b"x"))

    assert await store.commit(Transaction(checks, writes, ValueEquals(b"{t}v", None))) == ()
    assert await store.commit(Transaction(checks, writes, ValueEquals(b"{t}v", b"1"))) == ()
    assert await store.read([b"{t}v", b"{t}b"]) == [b"1", b"xx"]


async def test_when_the_given_fails_the_checks_decide(store: Store) -> None:
    """Failed ones are numbered as if there were no given; when all hold, it is applied all the same."""
    await store.put([Put(b"{t}a", b"a"), Put(b"{t}b", b"bb")])
    stale = ValueEquals(b"{t}v", b"other")
    checks = (ValueEquals(b"{t}a", b"a"), LengthEquals(b"{t}b", 2), ValueEquals(b"{t}c", None))
    wrong = (ValueEquals(b"{t}a", b"b"), LengthEquals(b"{t}b", 2), ValueEquals(b"{t}b", b"no"))

    assert await store.commit(Transaction(wrong, (Put(b"{t}x", b"1"),), stale)) == (0, 2)
    assert await store.read([b"{t}x"]) == [None]
    assert await store.commit(Transaction(checks, (Put(b"{t}x", b"1"),), stale)) == ()
    assert await store.read([b"{t}x"]) == [b"1"]


def _chained(tokens: bytes, version: bytes | None) -> list[Transaction]:
    """Appends of one letter each, every one knowing the version that the one before it makes."""
    made = []
    for i in range(len(tokens)):
        token = tokens[i : i + 1]
        checks = (LengthsUnchanged((b"{t}none", b"{t}x"), (None, bytes(i))),)
        writes = (Append(b"{t}x", token), AdvanceVersion(b"{t}v", token))
        made.append(Transaction(checks, writes, ValueEquals(b"{t}v", version)))
        version = next_version(version, token)
    return made


async def test_commits_that_build_on_one_another_are_the_same_together(store: Store) -> None:
    """While nobody came between, all of them apply, and the version names each."""
    assert await store.commit_many(_chained(b"abc", None)) == [(), (), ()]
    version = next_version(next_version(next_version(None, b"a"), b"b"), b"c")

    assert await store.read([b"{t}x", b"{t}v"]) == [b"abc", version]


async def test_after_a_strangers_commit_each_is_judged_by_what_it_looked_at(store: Store) -> None:
    """One whose keys are as they were is applied all the same; the others fail by their own checks."""
    await store.put([Put(b"{t}v", b"a stranger's")])
    assert await store.commit_many(_chained(b"ab", None)) == [(), ()]
    await store.put([Put(b"{t}v", b"a stranger's"), Put(b"{t}x", b"abc")])

    assert await store.commit_many(_chained(b"abc", None)) == [(0,), (0,), (0,)]
    assert await store.read([b"{t}x", b"{t}v"]) == [b"abc", b"a stranger's"]
