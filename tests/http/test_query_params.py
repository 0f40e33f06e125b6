"""Query parameters: names, repetition and conversion."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from aiohttp.test_utils import make_mocked_request

from aggregator.contract.requests import EventsQuery, IngestQuery, NoQuery, RelatedQuery
from aggregator.errors import InvalidInput
from aggregator.http.query_params import parse_pairs, parse_query


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
    query = parse_query(make_mocked_request("GET", f"/v1/related?since={since}"), RelatedQuery)

    assert query.since == expected


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
