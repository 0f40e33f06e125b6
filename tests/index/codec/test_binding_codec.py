"""Stored form of bindings: it round-trips, and other formats are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Match, Outcome
from aggregator.errors import DamagedValue, StoreUnavailable
from aggregator.index.codec.binding_codec import Binding, decode_binding, encode_binding, source_hash

PINNED = (
    "049907c0c41068686868686868686868686868686868a471756179a96475706c696361746502c397a4706965"
    "7204a4706f72740302cb3fedc28f5c28f5c3a76f7665726c6170000abc88d1"
)
MATCHED = Outcome("duplicate", 2, Match("pier", 4, "port", 3, 2, 0.93, "overlap"), True)


@pytest.mark.parametrize("first", [5, 7])
@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("new"),
        Outcome("related", 6, None, True),
        MATCHED,
        Outcome("duplicate", 0, Match("port", 3, "port", 3, 0, None, "exact")),
    ],
)
def test_bindings_round_trip(first: int, outcome: Outcome) -> None:
    """Every kind of verdict, in a first version and in a later one."""
    binding = Binding(7, first, b"h" * 16, "quay", outcome, source_hash("Gazette"))
    assert decode_binding(encode_binding(binding)) == binding


def test_the_stored_binding_is_pinned() -> None:
    """Golden value. A first version stores its number once."""
    data = encode_binding(Binding(7, 7, b"h" * 16, "quay", MATCHED))
    assert data.hex() == PINNED


def test_bindings_of_the_first_format_are_rejected() -> None:
    """The start-up check rejects such a store; a single value is rejected as well."""
    with pytest.raises(StoreUnavailable, match="format 01, this version reads 04"):
        decode_binding(b"\x01" + encode_binding(Binding(7, 5, b"h" * 16, "quay", MATCHED))[1:])


@given(st.integers(8, 8 * len(bytes.fromhex(PINNED)) - 1))
def test_every_flipped_bit_of_a_binding_is_noticed(bit: int) -> None:
    """Behind the format byte."""
    data = bytearray(bytes.fromhex(PINNED))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedValue):
        decode_binding(bytes(data))
