"""Pagination cursors: a codec that rejects what it did not produce."""

from __future__ import annotations

import base64
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import InvalidInput
from aggregator.http.cursors import decode_cursor, encode_cursor

TIMES_MS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TIMES_MS, TIMES_MS, IDS)
def test_decoding_inverts_encoding(last_seen_ms: int, detected_ms: int, id_: str) -> None:
    """Every sort key survives the round trip."""
    page_key = (last_seen_ms, detected_ms, id_)

    assert decode_cursor(encode_cursor(page_key)) == page_key


@given(TIMES_MS, TIMES_MS, IDS)
def test_a_cursor_needs_no_escape_in_an_address(last_seen_ms: int, detected_ms: int, id_: str) -> None:
    """Its characters are unreserved in RFC 3986; no padding."""
    cursor = encode_cursor((last_seen_ms, detected_ms, id_))

    assert set(cursor) <= set(string.ascii_letters + string.digits + "-_")


def test_a_cursor_belongs_to_its_order() -> None:
    """A page of another order is refused instead of continuing anywhere."""
    cursor = encode_cursor((16, 5, "e1"), "size")

    assert decode_cursor(cursor, "size") == (16, 5, "e1")
    for other, order in ((cursor, "novelty"), (cursor, "time"), (encode_cursor((16, 5, "e1")), "size")):
        with pytest.raises(InvalidInput, match=rf"another order than sort={order}; repeat `sort`"):
            decode_cursor(other, order)  # type: ignore[arg-type]


def _base64(json_text: bytes) -> str:
    return base64.urlsafe_b64encode(json_text).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "a",
        "not base64!",
        "\u6e21\u8f6e",
        "\ud800",
        _base64(b"[1,2"),
        _base64(b"[1,2]"),
        _base64(b'[1,2,"e1",4]'),
        _base64(b'["1",2,"e1"]'),
        _base64(b'[1,2,"\xff"]'),
        _base64(b"[1,2,null]"),
    ],
)
def test_an_invalid_cursor_names_its_parameter(cursor: str) -> None:
    """Bad base64, truncated JSON and wrong types give the same sentence."""
    with pytest.raises(InvalidInput, match=r"^cursor: invalid cursor; use `next`") as caught:
        decode_cursor(cursor)

    assert caught.value.field == "cursor"


@given(st.text(st.characters(), max_size=60))
def test_any_text_decodes_or_is_invalid_input(cursor: str) -> None:
    """No other exception reaches the handler."""
    try:
        last_seen_ms, detected_ms, id_ = decode_cursor(cursor)
    except InvalidInput:
        return
    assert (type(last_seen_ms), type(detected_ms), type(id_)) == (int, int, str)
