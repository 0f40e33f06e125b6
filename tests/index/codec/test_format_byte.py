"""Format byte: values of another format are distinguished from damaged ones."""

import msgspec
import pytest

from aggregator.errors import StoreUnavailable
from aggregator.index.codec.format_byte import PLAIN, append_checksum, decode_checked, decode_formatted

DECODER = msgspec.msgpack.Decoder(list[int])
DATA = msgspec.msgpack.encode([3, 5])


def test_what_follows_the_expected_byte_is_decoded() -> None:
    """Without and with a checksum."""
    assert decode_formatted(DECODER, PLAIN + DATA, "A list") == [3, 5]
    assert decode_checked(DECODER, append_checksum(DATA), "A list") == [3, 5]


@pytest.mark.parametrize(("data", "found"), [(b"\x02" + DATA, "02"), (b"\xc0", "c0"), (b"", "none")])
def test_another_format_is_named(data: bytes, found: str) -> None:
    """The error has the found and the expected format, and says what to do."""
    with pytest.raises(
        StoreUnavailable, match=f"^A list in the store has format {found}, .* reads 01: .*reindex"
    ):
        decode_formatted(DECODER, data, "A list")


def test_damage_behind_the_byte_is_damage() -> None:
    """Not another format: reindexing with another version would not help."""
    with pytest.raises(StoreUnavailable, match=r"^A list in the store is damaged"):
        decode_formatted(DECODER, PLAIN + DATA[:-1], "A list")
