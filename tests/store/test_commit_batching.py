"""Merging of dependent commits: what is sent, and that the results are those of separate commits."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from aggregator.store.base import (
    AdvanceVersion,
    LengthsUnchanged,
    Put,
    Transaction,
    ValueEquals,
    next_version,
)
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import BACKOFF_CALLS, CommitBatcher, split_into_runs
from tests.support.store_steps import append


class SendRecorder:
    """Sends to a store in memory and records how many transactions each call had."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.sizes: list[int] = []

    async def send(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Commit them one after another."""
        self.sizes.append(len(transactions))
        return await self.store.commit_many(transactions)


def chain(tag: bytes, letters: bytes, version: bytes | None = None, before: bytes = b"") -> list[Transaction]:
    """Appends of one letter each to ``before``; each expects the version that the one before it produces."""
    transactions = []
    for i in range(len(letters)):
        letter = letters[i : i + 1]
        checks = (LengthsUnchanged((tag + b"x",), (before + letters[:i],)),)
        writes = (append(tag + b"x", letter), AdvanceVersion(tag + b"v", letter))
        transactions.append(Transaction(checks, writes, ValueEquals(tag + b"v", version)))
        version = next_version(version, letter)
    return transactions


def version_after(letters: bytes) -> bytes | None:
    """The version that ``chain`` produces from none."""
    version = None
    for letter in letters:
        version = next_version(version, bytes([letter]))
    return version


def test_a_chain_is_one_run_that_checks_only_its_first_version() -> None:
    """It writes the final version directly."""
    (run,) = split_into_runs(chain(b"{t}", b"abc"))

    assert (run.start, run.end, run.is_merged) == (0, 3, True)
    assert run.transaction.checks == (ValueEquals(b"{t}v", None),)
    version = version_after(b"abc")
    assert version is not None
    appends = [append(b"{t}x", letter) for letter in (b"a", b"b", b"c")]
    assert run.transaction.writes == (*appends, Put(b"{t}v", version))


def test_a_run_ends_at_a_gap_another_key_and_a_missing_guard() -> None:
    """All transactions are in exactly one run, in order."""
    first, second = chain(b"{t}", b"abc"), chain(b"{u}", b"ab")
    unguarded = Transaction((), (Put(b"{t}p", b"1"),))

    runs = split_into_runs([first[0], first[2], *second, unguarded, unguarded])

    assert [(r.start, r.end, r.is_merged) for r in runs] == [
        (0, 1, True),
        (1, 2, True),
        (2, 4, True),
        (4, 5, False),
        (5, 6, False),
    ]
    assert runs[-1].transaction is unguarded
    assert split_into_runs([]) == []


async def test_after_a_failed_merge_the_next_calls_do_not_merge() -> None:
    """The transactions are sent again separately, and merging resumes after ``BACKOFF_CALLS`` calls."""
    recorder = SendRecorder()
    batcher = CommitBatcher(recorder.send)
    await recorder.store.put([Put(b"{t}v", b"foreign")])

    assert await batcher.commit(chain(b"{t}", b"ab")) == [(), ()]
    assert recorder.sizes == [1, 2]

    recorder.sizes.clear()
    for i in range(BACKOFF_CALLS + 1):
        assert await batcher.commit(chain(b"{%d}" % i, b"abc")) == [(), (), ()]
    assert recorder.sizes == [3] * BACKOFF_CALLS + [1]


async def test_a_failed_run_leaves_the_others_merged() -> None:
    """Only the transactions of the failed run are sent again, and their results are in place."""
    recorder = SendRecorder()
    await recorder.store.put([Put(b"{t}v", b"foreign"), Put(b"{t}x", b"long")])
    failing = Transaction((ValueEquals(b"{w}a", b"absent"),), ())

    results = await CommitBatcher(recorder.send).commit(
        [*chain(b"{s}", b"ab"), *chain(b"{t}", b"ab"), failing, *chain(b"{u}", b"a")]
    )

    assert results == [(), (), (0,), (0,), (0,), ()]
    assert recorder.sizes == [4, 2]
    assert await recorder.store.read([b"{s}x", b"{t}x", b"{u}x"]) == [b"ab", b"long", b"a"]


@given(
    st.lists(st.tuples(st.sampled_from([b"{s}", b"{t}"]), st.binary(max_size=4)), max_size=4),
    st.sets(st.sampled_from([b"{s}v", b"{t}v", b"{s}x", b"{t}x"])),
)
async def test_merging_changes_neither_results_nor_values(
    parts: list[tuple[bytes, bytes]], foreign: set[bytes]
) -> None:
    """Chains of two segments in turn, on stores that another process may have written to before."""
    transactions: list[Transaction] = []
    done = {b"{s}": b"", b"{t}": b""}
    for tag, letters in parts:
        transactions += chain(tag, letters, version_after(done[tag]), done[tag])
        done[tag] += letters
    merged, plain = SendRecorder(), MemoryStore()
    for store in (merged.store, plain):
        await store.put([Put(key, b"foreign") for key in sorted(foreign)])

    results = await CommitBatcher(merged.send).commit(transactions)

    assert results == await plain.commit_many(transactions)
    written = [b"{s}v", b"{t}v", b"{s}x", b"{t}x"]
    assert await merged.store.read(written) == await plain.read(written)
