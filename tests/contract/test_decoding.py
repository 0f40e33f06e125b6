"""Decoding of requests: any input gives a valid value or one sentence that names the field."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.contract.decoding import (
    UTF8_BOM,
    check_ids,
    convert_strings,
    decode,
    decode_article,
    to_article,
    to_single_line,
    to_unix_ms,
)
from aggregator.contract.requests import EventsQuery, ExplainIn
from aggregator.errors import InvalidInput
from aggregator_client.dates import MAX_YEAR, MIN_YEAR
from aggregator_client.wire import ArticleIn
from tests.contract.json_bodies import any_bodies


@given(any_bodies)
@settings(max_examples=300, deadline=None)
def test_decoding_raises_only_invalid_input(data: bytes) -> None:
    """For any bytes: an article, or one InvalidInput with a field."""
    try:
        article = decode_article(data)
    except InvalidInput as error:
        assert error.field
        assert "\n" not in str(error)
    else:
        assert article.id
        assert article.title or article.text or article.html


@given(any_bodies)
def test_a_byte_order_mark_changes_nothing(data: bytes) -> None:
    """Some crawlers write one before the object."""
    results: list[ArticleIn | str] = []
    for body in (data.removeprefix(UTF8_BOM), UTF8_BOM + data.removeprefix(UTF8_BOM)):
        try:
            results.append(decode(body, ArticleIn))
        except InvalidInput as error:
            results.append(str(error))

    assert results[0] == results[1]


@given(st.text())
def test_a_single_line_has_no_control_characters(text: str) -> None:
    """It has no line break or double space either, and is unchanged by a second pass."""
    line = to_single_line(text)

    assert line == " ".join(line.split()) == to_single_line(line)
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in line)


def test_text_takes_precedence_over_html() -> None:
    """HTML is kept only if the text is white space."""
    assert to_article(ArticleIn(text="A ferry.", html="<p>B</p>")).html == ""
    blank = to_article(ArticleIn(text=" \n", html="<p>B</p>"))
    assert (blank.text, blank.html) == ("", "<p>B</p>")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (rb"Storm \ud83d", "Storm \ufffd"),
        (rb"Storm \uDE00.", "Storm \ufffd."),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"\\\ud83d \\ud83d \ud55c\n", "\\\ufffd \\ud83d 한"),
        (b"Storm \xed\xa0\xbd", "Storm \ufffd"),
        (b"\xed\xa0\xbd\xed\xb8\x80 \xe6\xb8\xa1", "😀 渡"),
    ],
)
def test_half_a_surrogate_pair_costs_one_character(given: bytes, read: str) -> None:
    """In any text; a title cut by a program that counts in UTF-16 has one at its end."""
    article = decode_article(
        b'{"id": "%s", "title": "%s", "text": "%s"}' % (given.removesuffix(rb"\n"), given, given)
    )

    assert (article.title, article.text.strip()) == (read, read)
    assert article.id == read


@pytest.mark.parametrize(
    "body",
    [
        rb'{"title": "\ud83d' + b'\xff"}',
        rb'{"title": "\ud83d", "text": "x", "text": "y"}',
        rb'{"te\ud83dxt": "x"}',
        b'{"te\xed\xa0\xbdxt": "x"}',
    ],
)
def test_what_is_not_utf_8_stays_an_error(body: bytes) -> None:
    """Also next to half a pair, half a pair in a name, and a name that is given twice."""
    with pytest.raises(InvalidInput):
        decode_article(body)


@pytest.mark.parametrize(
    "date",
    [
        *('""', '" "', "null", '"0001-01-01T00:00:00Z"', '"0001-01-01T00:00:00+01:00"', '"0001-01-01"'),
        '"0000-00-00 00:00:00"',
    ],
)
@pytest.mark.parametrize("id_", ['""', '" "', "null"])
def test_what_programs_write_for_nothing_is_nothing(date: str, id_: str) -> None:
    """Zero values of Go, .NET and MySQL; the id is derived."""
    article = decode_article(f'{{"id": {id_}, "title": "Ferry \\ud83d", "published_at": {date}}}'.encode())

    assert article.published_at_ms is None
    assert article.id.startswith("content:")


def test_a_blank_date_hides_no_other_error() -> None:
    """Members that are given twice, wrong types, and other dates."""
    for rest in ('"source": "a", "source": "b"', '"text": 7', '"id": "a\\u0000"', '"published_at": ""'):
        with pytest.raises(InvalidInput):
            decode_article(f'{{"title": "Ferry", "published_at": "", {rest}}}'.encode())
    with pytest.raises(InvalidInput, match="published_at: expected an RFC 3339 time"):
        decode_article(b'{"title": "Ferry", "published_at": "soon"}')


def test_a_headline_is_stored_as_it_is_shown() -> None:
    """Without the Markdown and the name of a channel: in the API, in feeds, files and on pages alike."""
    article = to_article(
        ArticleIn(title="**Ferry [sinks](https://a.example)**.\n@portnews", text="**Ferry**")
    )

    assert (article.title, article.text) == ("Ferry sinks.", "**Ferry**")


def test_an_article_of_control_characters_is_empty() -> None:
    """What remains of it decides, not what was sent."""
    with pytest.raises(InvalidInput, match="the article is empty") as refusal:
        to_article(ArticleIn(title="\x00\x07", text="\x01 \x02"))
    assert refusal.value.field == "text"


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b'{"id": "", "url": "::", "text": 7}', ["text", "url"]),
        (b'\xef\xbb\xbf{"title": 1, "published_at": "1066-10-14T00:00:00Z"}', ["title", "published_at"]),
        (b'{"source": 1}', ["source", "text"]),
        (b'{"txet": "A ferry.", "title": "Ferry"}', ["txet"]),
        (
            b'{"title": "Ferry"' + b"".join(b', "x%d": 1' % n for n in range(60)) + b"}",
            [f"x{n}" for n in range(50)],
        ),
    ],
)
def test_wrong_types_do_not_hide_values_that_break_a_rule(data: bytes, fields: list[str]) -> None:
    with pytest.raises(InvalidInput) as raised:
        decode_article(data)
    assert [error.field for error in (raised.value, *raised.value.others)] == fields


def test_an_article_that_is_not_stored_needs_no_id() -> None:
    """A stored one gets an id derived from its content, the same for the same content."""
    body = ArticleIn(title="Ferry aground")

    assert to_article(body, for_storage=False).id == ""
    assert to_article(body).id == to_article(ArticleIn(title=" Ferry  aground")).id != ""
    assert to_article(ArticleIn(id_="a1", title="t"), for_storage=False).id == "a1"


@pytest.mark.parametrize("for_storage", [True, False])
def test_an_invalid_url_is_refused_with_an_id_or_without(for_storage: bool) -> None:
    """The address is checked also where no id is derived from it."""
    for id_ in (None, "a1"):
        with pytest.raises(InvalidInput) as refusal:
            to_article(ArticleIn(id_=id_, url="ftp://one.example/x", title="t"), for_storage=for_storage)
        assert refusal.value.field == "url"


@pytest.mark.parametrize(
    ("year", "valid"), [(MIN_YEAR - 1, False), (MIN_YEAR, True), (MAX_YEAR, True), (2200, False)]
)
def test_years_far_from_today_are_refused(year: int, valid: bool) -> None:
    """The first and the last year are accepted."""
    time = datetime(year, 7, 1, tzinfo=UTC)

    if valid:
        assert to_unix_ms(time, "since") is not None
    else:
        with pytest.raises(InvalidInput, match=f"since: the year {year} is not between") as refusal:
            to_unix_ms(time, "since")
        assert refusal.value.field == "since"


def test_an_offset_is_applied() -> None:
    """The same instant in two offsets is the same number; fractions of a millisecond are dropped."""
    local = datetime(1970, 1, 1, 1, 0, 0, 1_999, tzinfo=timezone(timedelta(hours=1)))

    assert to_unix_ms(local, "since") == 1
    assert to_unix_ms(None, "since") is None


def test_an_invalid_id_of_a_list_is_named_by_its_position() -> None:
    """Positions count from 0, as in JSON paths."""
    assert check_ids(["a", "b"]) == ["a", "b"]
    with pytest.raises(InvalidInput) as refusal:
        check_ids(["a", "b\n"])
    assert refusal.value.field == "ids[1]"


def test_query_parameters_are_converted_from_text() -> None:
    """A misspelled parameter is refused as such, a wrong status with the allowed ones."""
    assert convert_strings({"min_size": "20", "status": "closed"}, EventsQuery) == EventsQuery(
        min_size=20, status="closed"
    )
    with pytest.raises(InvalidInput, match="mni_size: unknown query parameter; allowed: term, source"):
        convert_strings({"mni_size": "20"}, EventsQuery)
    with pytest.raises(InvalidInput, match=r"status: expected one of .*breaking"):
        convert_strings({"status": "open"}, EventsQuery)


def test_a_missing_and_a_nested_field_are_named_by_their_path() -> None:
    """The path has no leading "$."."""
    with pytest.raises(InvalidInput, match="b: required field is missing") as refusal:
        decode(b'{"a": "a1"}', ExplainIn)
    assert refusal.value.field == "b"
    with pytest.raises(InvalidInput, match="expected a string, got an integer") as refusal:
        decode(b'{"a": {"title": 7}, "b": "b1"}', ExplainIn)
    assert refusal.value.field == "a.title"


def test_line_breaks_of_an_unknown_field_do_not_reach_the_message() -> None:
    """A message is one line in the log."""
    with pytest.raises(InvalidInput) as refusal:
        decode_article(b'{"ti\\ntle": "x"}')
    assert refusal.value.field == "ti?tle"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"id": "a", "source": "Radio", "text": "x", "source": "Gazette"}', "source"),
        (b'{"id": "a", "id": "a", "text": "x"}', "id"),
        (b'{"id": "a", "text": "x", "\\u0069d": "b"}', "id"),
        (b'{"text": "x", "text": null}', "text"),
        (b'\xef\xbb\xbf{"text": "x", "te\\u0078t": "y"}', "text"),
    ],
)
def test_a_member_that_is_named_twice_is_refused(data: bytes, field: str) -> None:
    """Also the same name written with an escape; the error names it."""
    with pytest.raises(InvalidInput) as caught:
        decode_article(data)

    assert caught.value.field == field
    assert str(caught.value) == f"{field}: given more than once; name each member once."


def test_a_repeated_member_of_a_nested_object_is_refused() -> None:
    """In every body, not only in articles; equal names in two objects are no repetition."""
    with pytest.raises(InvalidInput, match="text: given more than once"):
        decode(b'{"a": "x", "b": {"text": "one", "text": "two"}}', ExplainIn)

    assert isinstance(decode(b'{"a": {"text": "one"}, "b": {"text": "two"}}', ExplainIn).b, ArticleIn)


def test_names_and_values_may_be_equal() -> None:
    """A text may contain the names of members, quoted or not."""
    article = decode_article(b'{"title": "id", "source": "text", "text": "\\"text\\": 1, \\"text\\": 2\\n"}')

    assert (article.title, article.source) == ("id", "text")


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ("2026-11-27T00:00:00+05:30", "2026-11-27T00:00:00Z"),
        ("2026-11-27T00:00:00.000-08:00", "2026-11-27T00:00:00Z"),
        ("2026-11-27T00:00:01+01:00", "2026-11-26T23:00:01Z"),
    ],
)
def test_midnight_at_any_offset_is_a_date_without_a_time(stated: str, read: str) -> None:
    """The day that the outlet states."""
    article = decode_article(json.dumps({"id": "a", "title": "A", "published_at": stated}).encode())

    assert article.published_at_ms == datetime.fromisoformat(read).timestamp() * 1000
