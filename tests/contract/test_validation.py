"""All errors of an input at once, each with its place and reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from aggregator.contract.decoding import decode, decode_article, to_article
from aggregator.contract.problems import to_problem
from aggregator.contract.requests import DeskIn, EventsQuery, ExplainIn, RelatedBatchIn, RelatedIn
from aggregator.contract.validation import MAX_ERRORS, REASONS
from aggregator.errors import InvalidInput
from aggregator.http.endpoint import errors_in_parameters, parse_pairs
from aggregator_client.wire import ArticleIn, Problem
from tests.contract.json_bodies import any_bodies


def problem_of(data: bytes, type_: Any = ArticleIn) -> Problem:
    """The problem of a body that is not a valid ``type_``."""
    with pytest.raises(InvalidInput) as caught:
        decode(data, type_)
    return to_problem(caught.value)


def places(problem: Problem) -> list[tuple[str | None, str]]:
    """Place and code of each error of a problem."""
    return [(e.pointer or e.parameter, e.code) for e in problem.errors or ()]


def test_all_errors_of_a_body_are_listed() -> None:
    """That at which the decoder stops is first, and the one of ``detail`` and ``field``."""
    problem = problem_of(b'{"published_at": "yesterday", "id": 5, "text": ["a"], "txt": 1, "lang": "?"}')

    assert places(problem) == [
        ("#/published_at", "bad_format"),
        ("#/id", "wrong_type"),
        ("#/text", "wrong_type"),
        ("#/lang", "bad_format"),
        ("#/txt", "unknown"),
    ]
    assert problem.field == "published_at"
    assert problem.errors
    assert problem.detail == problem.errors[0].detail + " Number of further errors: 4, see `errors`."


@pytest.mark.parametrize(
    ("type_", "body", "pointer", "code"),
    [
        (ArticleIn, {"title": "x" * 2001}, "#/title", "too_long"),
        (ArticleIn, {"published_at": "2026-11-20T08:00:00"}, "#/published_at", "bad_format"),
        (ArticleIn, {"a/b~c.d[0] é": 1}, "#/a~1b~0c.d%5B0%5D%20%C3%A9", "unknown"),
        (ArticleIn, [], "#", "wrong_type"),
        (RelatedBatchIn, {"ids": []}, "#/ids", "too_short"),
        (RelatedIn, {"ids": ["a"] * 51}, "#/ids", "too_long"),
        (RelatedIn, {"ids": [{"id": "a", "read_at": "soon"}]}, "#/ids/0/read_at", "bad_format"),
        (RelatedIn, {"text": "x", "limit": 0}, "#/limit", "out_of_range"),
        (RelatedIn, {"ids": ["a", 1]}, "#/ids/1", "wrong_type"),
        (ExplainIn, {"a": "x", "b": {"title": 7}}, "#/b/title", "wrong_type"),
        (ExplainIn, {"a": "x"}, "#/b", "missing"),
        (DeskIn, {"name": "", "terms": []}, "#/name", "too_short"),
        (DeskIn, {"name": "d", "languages": ["en", "??"]}, "#/languages/1", "bad_format"),
        (DeskIn, {"name": "d", "pause_minutes": 1441}, "#/pause_minutes", "out_of_range"),
    ],
)
def test_one_error_is_located(type_: Any, body: object, pointer: str, code: str) -> None:
    """By a JSON pointer, also within lists and nested objects; a single error changes no detail."""
    problem = problem_of(json.dumps(body).encode(), type_)

    assert places(problem) == [(pointer, code)]
    assert problem.errors
    assert problem.errors[0].detail == problem.detail


def test_a_length_of_one_is_singular() -> None:
    """The sentence of msgspec has neither a unit nor a plural."""
    assert problem_of(b'{"name": ""}', DeskIn).detail.startswith(
        "name: expected a string of at least 1 character."
    )
    assert problem_of(b'{"ids": []}', RelatedBatchIn).detail == "ids: expected an array of at least 1 item."


def test_errors_of_items_are_listed_each() -> None:
    """Every wrong item of a list, and every wrong member of both articles."""
    assert places(problem_of(b'{"ids": [1, "a", null], "title": 2}', RelatedIn)) == [
        ("#/ids/0", "wrong_type"),
        ("#/title", "wrong_type"),
        ("#/ids/2", "wrong_type"),
    ]
    assert places(problem_of(b'{"a": {"id": 1, "x": 1}, "b": {"lang": "?"}}', ExplainIn)) == [
        ("#/a/id", "wrong_type"),
        ("#/a/x", "unknown"),
        ("#/b/lang", "bad_format"),
    ]


def test_rules_on_content_are_checked_together() -> None:
    """After the types: an empty article, its id, its URL and its time."""
    body = b'{"id": "\\u0001", "url": "ftp://one.example/x", "published_at": "0900-01-01T00:00:00Z"}'
    with pytest.raises(InvalidInput) as caught:
        decode_article(body)

    assert places(to_problem(caught.value)) == [
        ("#/text", "missing"),
        ("#/id", "invalid"),
        ("#/url", "invalid"),
        ("#/published_at", "out_of_range"),
    ]


def test_the_number_of_errors_is_bounded() -> None:
    """An object of 5,000 unknown members lists the first ones; only one names the allowed members."""
    problem = problem_of(json.dumps({f"m{n}": n for n in range(5000)}).encode())

    assert problem.errors
    assert len(problem.errors) == MAX_ERRORS
    assert sum("allowed:" in error.detail for error in problem.errors) == 1


@pytest.mark.parametrize(
    "data", [b'{"id": 5, "text": ', b'{"id": 5, "x": NaN}', b'{"id":5,"text":' + b"[" * 100_000]
)
def test_data_that_is_not_json_has_the_first_error_only(data: bytes) -> None:
    """The decoder stopped at a wrong value before it found that."""
    assert places(problem_of(data)) == [("#/id", "wrong_type")]


def test_an_error_that_a_second_value_hides_is_kept() -> None:
    """The second reading sees the last value of a name, the decoder the first."""
    assert places(problem_of(b'{"id": 5, "id": "a"}')) == [("#/id", "wrong_type")]


def test_query_parameters_are_named_as_parameters() -> None:
    """Unknown and repeated ones, and those with invalid values."""
    pairs = [("limt", "3"), ("limit", "0"), ("sort", "x"), ("sort", "time"), ("since", "2026-11-20")]
    with pytest.raises(InvalidInput) as caught, errors_in_parameters():
        parse_pairs(pairs, EventsQuery)
    problem = to_problem(caught.value)

    assert [(error.parameter, error.code) for error in problem.errors or ()] == [
        ("limt", "unknown"),
        ("sort", "repeated"),
        ("since", "bad_format"),
        ("limit", "out_of_range"),
        ("sort", "not_allowed"),
    ]
    assert all(error.pointer is None for error in problem.errors or ())


@given(any_bodies)
@settings(max_examples=300, deadline=None)
def test_any_invalid_body_has_known_reasons(data: bytes) -> None:
    """1 to 50 errors of different places, each one sentence with a known reason; the first is the detail."""
    try:
        to_article(decode(data, ArticleIn))
    except InvalidInput as error:
        problem = to_problem(error)
        assert problem.errors
        assert {e.code for e in problem.errors} <= REASONS.keys()
        assert all((e.pointer or "").startswith("#") for e in problem.errors)
        assert problem.detail.startswith(problem.errors[0].detail)
        assert len({e.pointer for e in problem.errors}) == len(problem.errors) <= MAX_ERRORS
