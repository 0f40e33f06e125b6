"""Every invalid body or query gets one sentence that names the field, and never a 5xx."""

import asyncio
import io
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.analysis.article_id import MAX_ID_BYTES
from tests.contract.json_bodies import any_bodies
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration

DEEP = b"[" * 100_000
TEXT = "Two ferries collided in fog off the northern pier."

ARRAY_BODY = (
    "body: expected one article, got an array; send several articles as JSON lines, one object per line."
)
UTF16_BODY = "body: UTF-16 or binary data; expected one JSON object in UTF-8."
HTML_BODY = "body: HTML or XML; expected one JSON object, for an article with the page in `html`."
JOINED_LINES = (
    "body: not valid JSON (trailing characters at byte 16; `curl -d` joins the lines of a file, "
    "`--data-binary` does not)."
)
UNKNOWN_FIELD = "unknown field; allowed: id, url, title, text, html, source, published_at, lang, policy."
INVALID_ARTICLES = [
    (b"", 400, "body", "body: empty; expected one JSON object."),
    (b"   ", 400, "body", "body: empty; expected one JSON object."),
    (b"{", 400, "body", "body: not valid JSON (truncated)."),
    (b"NaN", 400, "body", "body: not valid JSON (invalid character at byte 0)."),
    (b"\n<html><p>A page.</p></html>", 400, "body", HTML_BODY),
    (b'{"title": NaN}', 400, "body", "body: not valid JSON (invalid character at byte 10)."),
    (b'{"title": Infinity}', 400, "body", "body: not valid JSON (invalid character at byte 10)."),
    (b'{"title": "x"} {', 400, "body", JOINED_LINES),
    (b"[]", 400, "body", ARRAY_BODY),
    (b'"text"', 400, "body", "body: expected an object, got a string."),
    (b"null", 400, "body", "body: expected an object, got null."),
    (DEEP, 400, "body", ARRAY_BODY),
    ('{"title": "x"}'.encode("utf-16"), 400, "body", UTF16_BODY),
    ('\n{"title": "x"}'.encode("utf-16-be"), 400, "body", UTF16_BODY),
    (b'{"text":' + DEEP, 400, "text", "text: expected a string, got an array."),
    (b'{"x":' + DEEP, 400, "x", f"x: {UNKNOWN_FIELD}"),
    (b'{"title":"\xff"}', 400, "body", "body: not valid UTF-8 (byte 0xff)."),
    (rb'{"title":"\ud83d', 400, "body", "body: not valid JSON (truncated)."),
    ({"title": 7}, 400, "title", "title: expected a string, got an integer."),
    ({"text": ["a"]}, 400, "text", "text: expected a string, got an array."),
    ({"text": {"a": 1}}, 400, "text", "text: expected a string, got an object."),
    ({"html": True}, 400, "html", "html: expected a string, got a boolean."),
    ({"id": 1.5, "text": "x"}, 400, "id", "id: expected a string, got a number."),
    (b'{"id":' + b"9" * 5000 + b"}", 400, "id", None),
    ({"Title": "x", "text": "x"}, 400, "Title", f"Title: {UNKNOWN_FIELD}"),
    ({"a\nb<script>": 1, "text": "x"}, 400, "a?b<script>", f"a?b<script>: {UNKNOWN_FIELD}"),
    ({}, 400, "text", "text: the article is empty; give text, html or at least a title."),
    (
        {"text": " \n\t", "title": ""},
        400,
        "text",
        "text: the article is empty; give text, html or at least a title.",
    ),
    ({"text": "\x00\x07"}, 400, "text", "text: the article is empty; give text, html or at least a title."),
    (
        {"id": "a\nb", "text": TEXT},
        400,
        "id",
        "id: control characters and line breaks are not allowed in an id.",
    ),
    (
        {"id": "a\x00", "text": TEXT},
        400,
        "id",
        "id: control characters and line breaks are not allowed in an id.",
    ),
    ({"id": "x" * 513, "text": TEXT}, 400, "id", "id: 513 bytes are too long; an id has at most 512."),
    ({"id": "新" * 171, "text": TEXT}, 400, "id", "id: 513 bytes are too long; an id has at most 512."),
    ({"title": "x" * 2001}, 400, "title", "title: expected a string of at most 2000 characters."),
    (
        {"source": "x" * 301, "text": TEXT},
        400,
        "source",
        "source: expected a string of at most 300 characters.",
    ),
    (
        {"url": "javascript:alert(1)", "text": TEXT},
        400,
        "url",
        "url: expected an absolute address that starts with http:// or https://.",
    ),
    (
        {"id": "a", "url": "javascript:alert(1)", "text": TEXT},
        400,
        "url",
        "url: expected an absolute address that starts with http:// or https://.",
    ),
    ({"url": "http://", "text": TEXT}, 400, "url", "url: it has no valid host name."),
    (
        {"published_at": "2026-02-30T00:00:00Z", "text": TEXT},
        400,
        "published_at",
        "published_at: expected an RFC 3339 time with an existing date, such as 2026-11-20T08:00:00Z.",
    ),
    (
        {"published_at": "yesterday", "text": TEXT},
        400,
        "published_at",
        "published_at: expected an RFC 3339 time with an existing date, such as 2026-11-20T08:00:00Z.",
    ),
    (
        {"published_at": "0000-05-01T00:00:00Z", "text": TEXT},
        400,
        "published_at",
        "published_at: expected an RFC 3339 time with an existing date, such as 2026-11-20T08:00:00Z.",
    ),
    (
        {"published_at": "0002-01-01T00:00:00+14:00", "text": TEXT},
        400,
        "published_at",
        "published_at: the year 2 is not between 1700 and 2199.",
    ),
    (
        {"published_at": "9999-12-31T23:59:59-12:00", "text": TEXT},
        400,
        "published_at",
        "published_at: the year 9999 is not between 1700 and 2199.",
    ),
    (
        {"published_at": "2026-11-20T08:00:00", "text": TEXT},
        400,
        "published_at",
        "published_at: the UTC offset is missing; "
        "write e.g. 2026-11-20T08:00:00Z or 2026-11-20T09:00:00+01:00.",
    ),
    (
        {"published_at": 1790000000, "text": TEXT},
        400,
        "published_at",
        "published_at: expected an RFC 3339 time, got an integer.",
    ),
    (
        {"lang": "english", "text": TEXT},
        400,
        "lang",
        'lang: expected a language tag such as "en" or "zh-Hant".',
    ),
    *(
        (
            {"lang": lang, "text": TEXT},
            400,
            "lang",
            'lang: expected a language tag such as "en" or "zh-Hant".',
        )
        for lang in ("?", "english")
    ),
    (
        {"text": "x" * 5_000_000},
        413,
        "body",
        "body: larger than 2097152 bytes (setting max_body_bytes).",
    ),
]


@pytest.mark.parametrize(
    ("body", "status", "field", "sentence"),
    INVALID_ARTICLES,
    ids=[str(n) for n in range(len(INVALID_ARTICLES))],
)
async def test_an_invalid_article_gets_one_sentence(
    client: Client,
    service: FakeService,
    body: bytes | dict[str, object],
    status: int,
    field: str,
    sentence: str | None,
) -> None:
    """Status, field and message; nothing is stored."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = await client.post("/v1/articles", data=io.BytesIO(data))
    problem = await response.json(content_type="application/problem+json")

    assert response.status == problem["status"] == status
    assert problem["field"] == field
    assert problem["detail"].startswith(f"{field}: ")
    assert "\n" not in problem["detail"]
    assert sentence is None or problem["detail"] == sentence
    assert service.stored == {}


@pytest.mark.parametrize("text", ["Storm", "新闻", "عاصفة", "🌪", "x" * 1_000_000, "e" + "\u0301" * 500])
async def test_unusual_texts_are_accepted(client: Client, text: str) -> None:
    """One word, one emoji, one very long word: unusual, but valid."""
    response = await client.post("/v1/articles", json={"text": text})

    assert response.status == 201


async def test_a_declared_length_above_the_limit_is_not_read(client: Client) -> None:
    """413 before any of the body is sent."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
    status = await reader.readline()
    writer.close()
    await writer.wait_closed()

    assert b" 413 " in status


INVALID_QUERIES = [
    ("/v1/events?status=open", "status", None),
    ("/v1/events?limit=0", "limit", "limit: expected an integer of at least 1."),
    ("/v1/events?limit=201", "limit", "limit: expected an integer of at most 200."),
    ("/v1/events?limit=ten", "limit", "limit: expected an integer, got a string."),
    (
        "/v1/events?since=2026-11-20",
        "since",
        "since: expected an RFC 3339 time with an existing date, such as 2026-11-20T08:00:00Z.",
    ),
    ("/v1/events?since=9999-01-01T00:00:00Z", "since", "since: the year 9999 is not between 1700 and 2199."),
    (
        "/v1/events?limt=3",
        "limt",
        "limt: unknown query parameter; "
        "allowed: term, source, lang, min_size, status, watch, since, limit, cursor, sort.",
    ),
    ("/v1/events?limit=3&limit=4", "limit", "limit: query parameter given twice."),
    (
        "/v1/articles/a?verbose=1",
        "verbose",
        "verbose: unknown query parameter; allowed: none.",
    ),
    ("/v1/articles/a/related?exclude_source=" + "x" * 301, "exclude_source", None),
]


@pytest.mark.parametrize(("path", "field", "sentence"), INVALID_QUERIES)
async def test_an_invalid_query_gets_one_sentence(
    client: Client, path: str, field: str, sentence: str | None
) -> None:
    """Invalid, unknown and repeated query parameters."""
    response = await client.get(path)
    problem = await response.json(content_type="application/problem+json")

    assert (response.status, problem["field"]) == (400, field)
    assert sentence is None or problem["detail"] == sentence


async def test_an_id_in_a_path_is_limited_in_length(client: Client) -> None:
    """An id of exactly the limit is accepted; a longer one is an error of a parameter, not of the body."""
    known = await client.get("/v1/articles/" + "x" * MAX_ID_BYTES)
    long = await client.get("/v1/articles/" + "x" * (MAX_ID_BYTES + 1))
    problem = await long.json(content_type="application/problem+json")

    assert (known.status, long.status) == (404, 400)
    assert [error.get("parameter") for error in problem["errors"]] == ["id"]


async def test_a_slow_body_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """408, and the connection is closed."""

    async def endless() -> AsyncIterator[bytes]:
        yield b'{"id": '
        await end.wait()

    end = asyncio.Event()
    monkeypatch.setattr("aggregator.http.body.BODY_TIMEOUT_S", 0.05)
    service = FakeService()
    async with serving(service) as client:
        response = await client.post("/v1/articles", data=endless())
        end.set()
        problem = await response.json(content_type=None)

    assert response.status == 408
    assert response.headers["Connection"] == "close"
    assert problem["code"] == "slow_body"


@given(st.lists(any_bodies, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
async def test_no_body_causes_a_5xx(given_bodies: list[bytes]) -> None:
    """Fuzzing of all JSON routes; a batch answers one line per line."""
    service = FakeService()
    async with serving(service) as client:
        for data in given_bodies:
            for path in ("/v1/articles", "/v1/related", "/v1/explain"):
                response = await client.post(path, data=data)
                assert response.status < 500, (path, data)
                await response.read()
        batch = b"\n".join(given_bodies)
        response = await client.post("/v1/articles/batch", data=batch)
        rows = (await response.read()).splitlines()
        assert len(rows) == sum(1 for row in batch.split(b"\n") if row.strip(b" \t\r"))
        assert not any(json.loads(row).get("error", {}).get("status", 0) >= 500 for row in rows)


async def test_an_unsupported_expectation_is_a_problem(client: Client) -> None:
    """Not aiohttp's plain text; 100-continue works."""
    rejected = await client.post("/v1/articles", json={"title": "Bridge"}, headers={"Expect": "200-maybe"})
    accepted = await client.post("/v1/articles", json={"title": "Bridge"}, expect100=True)

    assert (rejected.status, rejected.content_type) == (417, "application/problem+json")
    assert accepted.status == 201
