"""Header of RDB files: number of keys, and files of other formats."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.store.rdb_header import RdbHeader, parse_header

AUX = b"\xfa\x09redis-ver\x067.0.15\xfa\x0aredis-bits\xc0\x40\xfa\x05ctime\xc2\xec\xf7\x03k"
FUNCTION = b"\xf5\x04code"


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (b"REDIS0010" + AUX + b"\xfe\x00\xfb\x05\x02", RdbHeader(10, "redis 7.0.15", 0, 5, 2)),
        (
            b"REDIS0010" + AUX + FUNCTION + b"\xfe\x03\xfb\x41\x00\x00",
            RdbHeader(10, "redis 7.0.15", 3, 256, 0),
        ),
        (
            b"REDIS0011\xfe\x00\xfb\x80\x00\x01\x00\x00\x81" + b"\x00" * 7 + b"\x09",
            RdbHeader(11, "unknown", 0, 65536, 9),
        ),
        (b"VALKEY080\xfa\x0avalkey-ver\x059.1.2\xff", RdbHeader(80, "valkey 9.1.2", 0, 0, 0)),
    ],
)
def test_the_number_of_keys_is_read(data: bytes, header: RdbHeader) -> None:
    """Lengths of 6, 14, 32 and 64 bits; what follows the header does not matter."""
    assert parse_header(data + b"\x00rest") == header


@pytest.mark.parametrize(
    "data", [b"", b"REDIS", b"HTTP/1.1 200", b"REDIS0010\xfe\x00\x00\x01a", b"REDIS0010\x07"]
)
def test_another_file_is_refused(data: bytes) -> None:
    """Also one that ends within its header."""
    with pytest.raises(ValueError):
        parse_header(data)


@given(st.binary(max_size=60))
def test_damage_raises_no_other_error(tail: bytes) -> None:
    """Whatever follows the magic bytes."""
    with contextlib.suppress(ValueError):
        parse_header(b"REDIS0011" + tail)
