"""Arguments of the commit script and replies of the server: pure functions, compared with pinned values."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.store.base import (
    AdvanceVersion,
    AppendCapped,
    AppendMany,
    Check,
    Delete,
    LengthsUnchanged,
    Put,
    StreamAdd,
    Transaction,
    ValueEquals,
)
from aggregator.store.client import decode_text, first_key
from aggregator.store.redis import (
    encode_transaction,
    failed_checks,
    parse_stream_entries,
    prefix_pattern,
    set_command,
)
from tests.support.store_steps import append, length_equals

LENGTHS = LengthsUnchanged((b"{t}l", b"{t}m", b"{t}n"), (b"abc", None, b""))


def test_a_transaction_of_every_kind_of_step_is_pinned() -> None:
    """The format that ``lua/commit.lua`` reads: keys and values in the order of checks and writes."""
    transaction = Transaction(
        (length_equals(b"{t}a", 8), ValueEquals(b"{t}b", None), ValueEquals(b"{t}c", b"old"), LENGTHS),
        (
            append(b"{t}d", b"1"),
            AppendMany((b"{t}e", b"{t}f"), (b"2", b"3"), 64),
            AppendCapped((b"{t}g",), (b"4",), 32),
            Put(b"{t}h", b"5"),
            Put(b"{t}i", b"6", 900),
            Put(b"{t}j", b"7", 0),
            Delete(b"{t}k"),
            StreamAdd(b"{t}o", b"8"),
            AdvanceVersion(b"{t}p", b"9"),
        ),
    )

    count, *arguments = encode_transaction(transaction)

    assert b"".join(arguments[:count]).replace(b"{t}", b"") == b"abclmndefghijkop"
    assert msgspec.msgpack.decode(arguments[count]) == [
        [8, -1, -2, 3, 0, 0],
        [1, 0, 1, 64, 1, 64, 5, 32, 2, 0, 2, 900, 2, 1, 3, 0, 4, 0, 6, 0],
        False,
    ]
    assert arguments[count + 1 :] == [b"old", *(b"%d" % i for i in range(1, 10))]


def test_the_version_guard_is_the_first_check() -> None:
    """The plan says that it is there, and its value precedes those of the checks."""
    checks = (ValueEquals(b"{t}b", b"old"),)
    encoded = encode_transaction(Transaction(checks, (), ValueEquals(b"{t}v", b"version")))

    assert encoded[:3] == (2, b"{t}v", b"{t}b")
    assert msgspec.msgpack.decode(encoded[3]) == [[-2, -2], [], True]
    assert encoded[4:] == (b"version", b"old")


@pytest.mark.parametrize(
    ("key_numbers", "expected"),
    [([], ()), ([1], (0,)), ([2], (1,)), ([4], (1,)), ([5], (2,)), ([2, 3, 4, 5], (1, 2)), ([1, 5], (0, 2))],
)
def test_numbers_of_keys_become_indices_of_checks(key_numbers: list[int], expected: tuple[int, ...]) -> None:
    """A check of several keys is named once, whichever of them differ."""
    checks: list[Check] = [length_equals(b"{t}a", 8), LENGTHS, ValueEquals(b"{t}b", None)]

    assert failed_checks(key_numbers, checks) == expected


def test_a_time_to_live_is_at_least_one_millisecond() -> None:
    """The server rejects 0; None means no expiry."""
    assert set_command(Put(b"k", b"v")) == ("SET", b"k", b"v")
    assert set_command(Put(b"k", b"v", 0)) == ("SET", b"k", b"v", "PX", 1)
    assert set_command(Put(b"k", b"v", 1500)) == ("SET", b"k", b"v", "PX", 1500)


@pytest.mark.parametrize("command", [("GET", b"k"), ("EVALSHA", "sha", 1, b"k"), ("EVAL", "script", 1, b"k")])
def test_the_first_key_of_a_command(command: tuple[object, ...]) -> None:
    """Behind the script and the number of keys, or directly after the name."""
    assert first_key(command) == b"k"


def test_stream_entries_of_both_clients_are_equal() -> None:
    """One returns the fields as a dictionary, the other as a flat list; None is an absent stream."""
    expected = [(b"1-0", b"one"), (b"2-0", b"p")]

    assert parse_stream_entries([(b"1-0", {b"p": b"one"}), (b"2-0", {b"p": b"p"})]) == expected
    assert parse_stream_entries([[b"1-0", [b"p", b"one"]], [b"2-0", [b"p", b"p"]]]) == expected
    assert parse_stream_entries(None) == []


@given(st.binary(max_size=20))
def test_a_prefix_is_matched_literally(prefix: bytes) -> None:
    r"""Without its escapes the pattern is the prefix and a star; every special byte follows a backslash."""
    pattern = prefix_pattern(prefix)
    literal, i = bytearray(), 0
    while i < len(pattern) - 1:
        if pattern[i : i + 1] == b"\\":
            i += 1
        else:
            assert pattern[i] not in b"*?[]"
        literal.append(pattern[i])
        i += 1

    assert (bytes(literal), pattern[-1:]) == (prefix, b"*")


def test_names_are_text_for_both_clients() -> None:
    """Bytes are decoded, text stays."""
    assert decode_text(b"hafen") == decode_text("hafen") == "hafen"
