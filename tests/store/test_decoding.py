"""Decoding: damaged values of any kind raise StoreUnavailable with a remedy."""

from __future__ import annotations

import msgspec
import pytest

from aggregator.errors import StoreUnavailable
from aggregator.store.decoding import (
    PLAIN,
    append_checksum,
    corrupt_error,
    decode_checked,
    decode_formatted,
    decode_value,
)


class Berth(msgspec.Struct):
    """An invented stored value."""

    ship: str
    length_m: int


JSON = msgspec.json.Decoder(Berth)
MSGPACK = msgspec.msgpack.Decoder(Berth)


def test_a_sound_value_is_decoded() -> None:
    """As JSON and as MessagePack."""
    berth = Berth("Alba", 90)

    assert decode_value(JSON, msgspec.json.encode(berth), "A berth") == berth
    assert decode_value(MSGPACK, msgspec.msgpack.encode(berth), "A berth") == berth


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"ship": "Alba"}',
        b'{"ship": "Alba", "length_m": "long"}',
        b'{"ship": "\xff", "length_m": 1}',
        b'{"ship": "Alba", "length_m": 1} ,',
        b'{"other": ' + b"[" * 100_000,
    ],
)
def test_a_damaged_value_is_unavailable(data: bytes) -> None:
    """Absent, cut, incomplete, of another type, not UTF-8, with something behind it, nested too deeply."""
    with pytest.raises(StoreUnavailable, match=r"^A berth in the store is damaged \(.*aggregator doctor"):
        decode_value(JSON, data, "A berth")


def test_the_reason_is_part_of_the_error() -> None:
    """Together with the name of the value."""
    assert "A berth in the store is damaged (too short)" in str(corrupt_error("A berth", "too short"))


NUMBERS = msgspec.msgpack.Decoder(list[int])
DATA = msgspec.msgpack.encode([3, 5])


def test_what_follows_the_expected_byte_is_decoded() -> None:
    """Without and with a checksum."""
    assert decode_formatted(NUMBERS, PLAIN + DATA, "A list") == [3, 5]
    assert decode_checked(NUMBERS, append_checksum(DATA), "A list") == [3, 5]


@pytest.mark.parametrize(("data", "found"), [(b"\x02" + DATA, "02"), (b"\xc0", "c0"), (b"", "none")])
def test_another_format_is_named(data: bytes, found: str) -> None:
    """The error has the found and the expected format, and says what to do."""
    with pytest.raises(
        StoreUnavailable, match=f"^A list in the store has format {found}, .* reads 01: .*migrate"
    ):
        decode_formatted(NUMBERS, data, "A list")


def test_damage_behind_the_byte_is_damage() -> None:
    """Not another format: reindexing with another version would not help."""
    with pytest.raises(StoreUnavailable, match=r"^A list in the store is damaged"):
        decode_formatted(NUMBERS, PLAIN + DATA[:-1], "A list")
