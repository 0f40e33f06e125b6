"""Decisions, and the JSON of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator_client.decision import (
    ARTICLE_FIELDS,
    NOT_AN_AGGREGATOR,
    Decision,
    JsonDates,
    decode_decision,
    decode_line_decision,
    encode_article,
    problem_of,
)
from aggregator_client.errors import InvalidInput, Unavailable

ANSWER: dict[str, Any] = {
    "id": "a2",
    "verdict": "duplicate",
    "keep": False,
    "keep_reason": None,
    "adds": 0.05,
    "fuller": False,
    "reversed": False,
    "text_is_article": True,
    "part_of": None,
    "follows": None,
    "distance": 1,
    "hamming_class": "duplicate",
    "duplicate_of": {"id": "a1", "canonical_id": "a0", "distance": 1, "overlap": 0.9, "rule": "overlap"},
    "related": [],
    "updated_figures": False,
    "event_id": None,
    "space": "en.0000",
    "fingerprint": "00000000000000ff",
    "short": False,
    "stored_as": None,
    "reused_id": False,
    "replaces": None,
}


def problem(status: int) -> dict[str, Any]:
    """A problem as in an answer or a line of a batch."""
    return {"type": "about:blank", "title": "No", "status": status, "detail": "text: empty.", "code": "x"}


@pytest.mark.parametrize("name", sorted({*ARTICLE_FIELDS} - {"published_at"}))
@pytest.mark.parametrize("value", [b"words", bytearray(b"words"), memoryview(b"words")])
def test_bytes_are_no_text(name: str, value: Any) -> None:
    """As JSON they would be Base64, which the service would store as the text."""
    with pytest.raises(InvalidInput) as caught:
        encode_article({"text": "Words.", name: value})

    assert str(caught.value) == f"{name}: expected str, found {type(value).__name__}; decode it."
    assert caught.value.field == name


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("verdict", ["new", "related", "duplicate"])
def test_the_service_says_what_to_keep(verdict: str, keep: bool) -> None:
    """Whatever the verdict is, in an answer as in a line of a batch."""
    data = json.dumps({**ANSWER, "verdict": verdict, "keep": keep}).encode()

    assert decode_decision(data).keep is decode_line_decision(data).keep is keep


def test_a_duplicate_is_not_kept() -> None:
    """Its canonical article is the first of the group, not the nearest one."""
    decision = decode_decision(json.dumps({**ANSWER, "created": True}).encode())

    assert (decision.verdict, decision.keep, decision.stored) == ("duplicate", False, True)
    assert (decision.id, decision.canonical_id) == ("a2", "a0")


@pytest.mark.parametrize("verdict", ["new", "related"])
def test_other_articles_are_kept(verdict: str) -> None:
    """They have an id and no canonical article."""
    answer = {**ANSWER, "verdict": verdict, "keep": True, "duplicate_of": None}
    decision = decode_decision(json.dumps(answer).encode())

    assert (decision.keep, decision.id, decision.canonical_id) == (True, "a2", None)


@pytest.mark.parametrize("verdict", ["unknown", "refused"])
def test_an_article_without_an_answer_is_kept(verdict: Any) -> None:
    """A lost article costs more than a duplicate."""
    decision = Decision(verdict, problem="text: empty.")

    assert (decision.keep, decision.id, decision.canonical_id, decision.stored) == (True, None, None, False)


def test_a_newer_service_may_add_fields() -> None:
    """An older client ignores them."""
    assert decode_decision(json.dumps({**ANSWER, "mood": "calm"}).encode()).id == "a2"


@given(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b"null", b"<html>", b'{"verdict":"new"}']))
def test_anything_else_is_no_verdict(data: bytes) -> None:
    """The page of a proxy must not drop articles."""
    with pytest.raises(Unavailable) as caught:
        decode_decision(data)

    assert str(caught.value) == NOT_AN_AGGREGATOR


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_line_is_a_decision(status: int) -> None:
    """A retry would give the same."""
    decision = decode_line_decision(json.dumps({"error": problem(status)}).encode())

    assert decision == Decision("refused", problem="text: empty.", kind="refused")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failed_line_must_be_retried(status: int) -> None:
    """Overload and failures of the service say nothing about the article."""
    with pytest.raises(Unavailable, match=r"^text: empty\.$"):
        decode_line_decision(json.dumps({"error": problem(status)}).encode())


def test_a_line_with_a_verdict_is_its_decision() -> None:
    """A null error counts as none."""
    for line in (ANSWER, {**ANSWER, "error": None}):
        decision = decode_line_decision(json.dumps(line).encode())
        assert (decision.verdict, decision.id, decision.stored) == ("duplicate", "a2", False)


@pytest.mark.parametrize("line", [b"", b"[]", b'{"error":"no"}', b"{}", b'{"error":{"status":400}}'])
def test_a_line_of_another_server_is_no_decision(line: bytes) -> None:
    """Neither a verdict nor a problem."""
    with pytest.raises(Unavailable, match=r"not an aggregator"):
        decode_line_decision(line)


def test_only_problems_of_the_service_are_decoded() -> None:
    """The error page of a proxy is not a verdict."""
    found = problem_of(json.dumps(problem(400)).encode())

    assert found is not None and found.detail == "text: empty."
    assert problem_of(b"<h1>Bad Gateway</h1>") is None
    assert problem_of(b"{}") is None


def test_none_counts_as_missing() -> None:
    """Crawlers fill fields that they did not find with None; times become RFC 3339."""
    published = datetime(2026, 11, 20, 8, tzinfo=UTC)
    encoded = encode_article({"id": "a1", "title": None, "text": "渡轮", "published_at": published})

    assert msgspec.json.decode(encoded) == {
        "id": "a1", "text": "渡轮", "published_at": "2026-11-20T08:00:00+00:00",
    }  # fmt: skip


def test_a_title_cut_in_the_middle_of_an_emoji_is_sent() -> None:
    """By a program that counts in UTF-16; a whole pair is its character."""
    encoded = encode_article({"id": "a1", "title": "Storm \ud83c", "text": "Ferry \ud83d\ude00 渡轮"})

    assert msgspec.json.decode(encoded) == {"id": "a1", "title": "Storm \ufffd", "text": "Ferry 😀 渡轮"}


def test_an_unreadable_date_does_not_cost_the_article() -> None:
    """It is left out, and reported."""
    undated: list[Mapping[str, Any]] = []
    report = undated.append
    tokyo = ZoneInfo("Asia/Tokyo")
    article = {"title": "Ferry", "published_at": "2026-11-20 17:00"}

    assert msgspec.json.decode(encode_article(article, on_unread=report)) == {"title": "Ferry"}
    assert undated == [article]
    assert msgspec.json.decode(encode_article(article, tokyo, report)) == {
        "title": "Ferry", "published_at": "2026-11-20T08:00:00+00:00",
    }  # fmt: skip
    assert undated == [article]


def test_dates_of_articles_that_are_json_are_converted() -> None:
    """Usual dates, and what the service has to refuse, stay as they are."""
    dates = JsonDates()
    unchanged = (
        b'{"published_at":"2026-11-20T08:00:00+01:00"}', b'{"title":"a"}', b'{"published_at":null}',
        b"{oops", b"[1]", b"", b'{"published_at":"soon","id":"a","id":"b"}', b"[" * 100_000, b'"\xff"',
    )  # fmt: skip
    assert [dates.convert(data) for data in unchanged] == list(unchanged)
    assert dates.unread == 0

    converted = dates.convert('{"title":"渡轮 \\ud83d","published_at":"Fri, 20 Nov 2026 09:00 CET"}'.encode())
    assert json.loads(converted) == {"title": "渡轮 \ud83d", "published_at": "2026-11-20T08:00:00+00:00"}
    for date in (b'"soon"', b"7", b'"9999-12-31T00:00:00Z"', b'"2026-02-30T00:00:00Z"'):
        assert dates.convert(b'{"title":"a","published_at":' + date + b"}") == b'{"title": "a"}'
    assert dates.convert(b'{"title":"a","published_at":""}') == b'{"title": "a"}'
    assert dates.unread == 4


@pytest.mark.parametrize(
    ("article", "message"),
    [
        ({"id": "a1", "txt": "x", "body": "y"}, "body, txt: unknown field; allowed: "),
        ({"id": "a1", "text": object()}, "The article cannot be written as JSON: "),
        (["id", "text"], "An article is a mapping of "),
        ("text", "An article is a mapping of "),
        (None, "An article is a mapping of "),
    ],
)
def test_an_unusable_article_is_rejected_before_sending(article: Any, message: str) -> None:
    """The error says what to change."""
    with pytest.raises(InvalidInput) as caught:
        encode_article(article)

    assert str(caught.value).startswith(message)
