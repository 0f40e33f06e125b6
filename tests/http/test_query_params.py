"""Query parameters and cursors."""

from __future__ import annotations

import base64
import string
from datetime import UTC, datetime, timedelta, timezone

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from aggregator.contract.requests import EventsQuery, IngestQuery, NoQuery, RelatedQuery
from aggregator.errors import InvalidInput
from aggregator.http.endpoint import parse_pairs, parse_query
from aggregator.http.handlers.events import decode_cursor, encode_cursor


def test_values_are_converted_and_missing_ones_have_defaults() -> None:
    """Strings become the types of the struct."""
    query = parse_query(make_mocked_request("GET", "/v1/events?min_size=7&status=breaking"), EventsQuery)

    assert (query.min_size, query.status, query.limit, query.cursor) == (7, "breaking", 50, "")


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2026-11-20T08:00:00+01:00", datetime(2026, 11, 20, 8, tzinfo=timezone(timedelta(hours=1)))),
        ("2026-11-20T08:00:00%2B01:00", datetime(2026, 11, 20, 8, tzinfo=timezone(timedelta(hours=1)))),
        ("2026-11-20T08:00:00-05:30", datetime(2026, 11, 20, 13, 30, tzinfo=UTC)),
        ("2026-11-20T08:00:00Z", datetime(2026, 11, 20, 8, tzinfo=UTC)),
    ],
)
def test_the_plus_sign_of_an_offset_needs_no_escape(since: str, expected: datetime) -> None:
    """Unescaped, it arrives as a space."""
    query = parse_query(make_mocked_request("GET", f"/v1/events?since={since}"), EventsQuery)

    assert query.since == expected


def test_a_list_is_given_by_repeating_its_parameter() -> None:
    """A list is never split at commas, which names contain."""
    query = parse_pairs([("source", "A"), ("limit", "3"), ("source", "B, C")], RelatedQuery)

    assert (query.source, query.limit, query.exclude_source) == (["A", "B, C"], 3, [])


def test_a_space_elsewhere_stays_a_space() -> None:
    """Only an offset after a time is repaired."""
    query = parse_pairs([("term", "gate 12:30 TV 12:30 news"), ("source", "T9 01")], EventsQuery)

    assert (query.term, query.source) == ("gate 12:30 TV 12:30 news", "T9 01")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("dryrun", "1")], "dryrun: unknown query parameter; allowed: dry_run, policy, backfill."),
        ([("DRY_RUN", "1")], "DRY_RUN: unknown query parameter; allowed: dry_run, policy, backfill."),
        ([("dry_run", "true"), ("dry_run", "true")], "dry_run: query parameter given twice."),
        ([("dry_run", "perhaps")], "dry_run: "),
    ],
)
def test_an_unusable_parameter_is_named(pairs: list[tuple[str, str]], message: str) -> None:
    """The error has one sentence, and the name as its field."""
    with pytest.raises(InvalidInput) as caught:
        parse_pairs(pairs, IngestQuery)

    assert str(caught.value).startswith(message)
    assert caught.value.field == pairs[0][0]


def test_a_call_without_parameters_says_so() -> None:
    """The list of allowed names is "none", not empty."""
    with pytest.raises(InvalidInput, match=r"^page: unknown query parameter; allowed: none\.$"):
        parse_pairs([("page", "2")], NoQuery)


def test_a_hostile_name_is_shortened_to_one_line() -> None:
    """Line breaks, control characters and length cannot disturb a log."""
    with pytest.raises(InvalidInput) as caught:
        parse_pairs([("a\r\nb\x1b[2J" + "x" * 5000, "1")], NoQuery)

    assert caught.value.field is not None
    assert caught.value.field.startswith("a b[2Jx")
    assert len(caught.value.field) == 80
    assert str(caught.value).isprintable()


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
