"""Decoding: damaged values of any kind raise StoreUnavailable with a remedy."""

from __future__ import annotations

import msgspec
import pytest

from aggregator.errors import StoreUnavailable
from aggregator.store.decoding import corrupt_error, decode_value


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
