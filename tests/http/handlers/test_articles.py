"""Article routes used by crawlers: post, get, delete, copies."""

import gzip
import json

import pytest
from yarl import URL

from aggregator.errors import CommitConflict, StoreUnavailable
from aggregator.http.handlers import articles
from aggregator.http.pages import search
from tests.support.fake_service import Client, FakeService

pytestmark = pytest.mark.integration

TEXT = "The harbour bridge stays closed until engineers have looked at every cable."


async def test_a_new_article_is_stored(client: Client) -> None:
    """201 with every field of the contract."""
    response = await client.post("/v1/articles", json={"id": "a", "title": "Bridge closed", "text": TEXT})
    body = await response.json()

    assert response.status == 201
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Location"] == "/v1/articles/a"
    assert response.headers["Server-Timing"] == "analyse;dur=1.25, lookup;dur=0.50"
    assert body.pop("fingerprint")
    assert body == {
        "id": "a",
        "verdict": "new",
        "keep": True,
        "keep_reason": None,
        "distance": None,
        "hamming_class": "new",
        "duplicate_of": None,
        "adds": None,
        "fuller": False,
        "related": [],
        "updated_figures": False,
        "reversed": False,
        "text_is_article": True,
        "part_of": None,
        "follows": None,
        "event_id": None,
        "space": "en.0000",
        "short": False,
        "problems": [],
        "stored_as": None,
        "reused_id": False,
        "replaces": None,
        "withdrawn": [],
        "unchecked": False,
        "stored": True,
        "created": True,
    }


async def test_duplicates_and_repeated_ids_answer_200(client: Client) -> None:
    """The same text under another id is a duplicate; the same id again gets the answer, not `created`."""
    first = await client.post("/v1/articles", json={"id": "a", "text": TEXT})
    again = await client.post("/v1/articles", json={"id": "a", "text": TEXT})
    copy = await client.post("/v1/articles", json={"id": "b", "text": TEXT})

    assert [first.status, again.status, copy.status] == [201, 200, 200]
    assert await first.json() == {**await again.json(), "created": True}
    assert (await copy.json())["duplicate_of"] == {
        "id": "a",
        "canonical_id": "a",
        "distance": 0,
        "overlap": 1.0,
        "rule": "exact",
    }


async def test_the_location_of_an_article_leads_to_it(client: Client) -> None:
    """Also with an id that needs quoting; an answer 200 has none."""
    id_ = "https://news.example/a b?c=1&d=%20#e"
    created = await client.post("/v1/articles", json={"id": id_, "text": TEXT})
    repeated = await client.post("/v1/articles", json={"id": id_, "text": TEXT})

    found = await client.get(URL(created.headers["Location"], encoded=True))

    assert (await found.json())["id"] == id_
    assert "Location" not in repeated.headers


async def test_dry_run_stores_nothing(client: Client, service: FakeService) -> None:
    """?dry_run=true answers 200 without storing the article."""
    response = await client.post("/v1/articles?dry_run=true", json={"id": "a", "text": TEXT})

    assert response.status == 200
    assert service.stored == {}


async def test_null_fields_count_as_missing(client: Client, service: FakeService) -> None:
    """Crawlers send null for unknown values."""
    response = await client.post(
        "/v1/articles", json={"url": None, "id": None, "title": None, "lang": None, "text": TEXT}
    )

    assert response.status == 201
    assert service.submitted[0].lang is None


async def test_published_at_is_converted_to_utc(client: Client, service: FakeService) -> None:
    """RFC 3339 with an offset becomes milliseconds; responses show UTC."""
    await client.post(
        "/v1/articles", json={"id": "a", "text": TEXT, "published_at": "2026-11-20T09:30:00.250+01:00"}
    )
    stored = await (await client.get("/v1/articles/a")).json()

    assert service.submitted[0].published_at_ms == 1_795_163_400_250
    assert stored["published_at"] == "2026-11-20T08:30:00.250000Z"


async def test_control_characters_are_removed(client: Client, service: FakeService) -> None:
    """NUL and terminal escapes are dropped; line breaks are kept in the text but not in the title."""
    await client.post(
        "/v1/articles",
        json={"id": "a", "title": "Bri\x00dge\n\x1b[31m closed", "text": "One\x00 two\nthree\x9f"},
    )

    assert service.submitted[0].title == "Bridge [31m closed"
    assert service.submitted[0].text == "One two\nthree"


async def test_text_takes_precedence_over_html(client: Client, service: FakeService) -> None:
    """With both given, the page is not parsed; a blank text counts as missing."""
    await client.post("/v1/articles", json={"id": "a", "text": TEXT, "html": "<p>" + TEXT})
    await client.post("/v1/articles", json={"id": "b", "text": " ", "html": "<p>" + TEXT})

    assert (service.submitted[0].text, service.submitted[0].html) == (TEXT, "")
    assert (service.submitted[1].text, service.submitted[1].html) == ("", "<p>" + TEXT)


async def test_html_without_text_is_422(client: Client, service: FakeService) -> None:
    """A page without main text is rejected as no_text and not stored."""
    response = await client.post("/v1/articles", json={"id": "a", "html": "<nav>Home</nav>"})
    body = await response.json()

    assert response.status == 422
    assert (body["code"], body["field"]) == ("no_text", "html")
    assert service.stored == {}


async def test_a_gzip_body_is_decompressed(client: Client) -> None:
    """Content-Encoding gzip for a single article."""
    data = gzip.compress(json.dumps({"id": "a", "text": TEXT}).encode())

    response = await client.post("/v1/articles", data=data, headers={"Content-Encoding": "gzip"})

    assert response.status == 201


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "https://Example.org/a/b/?x=1&utm_source=feed#top", "text": TEXT}, "example.org/a/b?x=1"),
        ({"text": TEXT}, "content:"),
        ({"id": "desk:7", "url": "https://example.org/a", "text": TEXT}, "desk:7"),
    ],
)
async def test_derived_ids_work_in_every_path(client: Client, given: dict[str, str], expected: str) -> None:
    """Ids from addresses, from content and given ones, percent-encoded."""
    answer = await (await client.post("/v1/articles", json=given)).json()
    quoted = URL.build(path="/v1/articles/").raw_path + _quoted(answer["id"])

    assert answer["id"].startswith(expected)
    for path, key in [(quoted, "verdict"), (quoted + "/copies", "copies"), (quoted + "/related", "related")]:
        response = await client.get(URL(path, encoded=True))
        assert response.status == 200, path
        assert key in await response.json()
    assert (await client.delete(URL(quoted, encoded=True))).status == 204
    assert (await client.get(URL(quoted, encoded=True))).status == 404


@pytest.mark.parametrize("number", [2, 3, 4])
async def test_the_list_of_copies_is_bounded(
    client: Client, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A group may have any size; ``truncated`` says that articles are missing. A page lists the others."""
    monkeypatch.setattr(articles, "MAX_COPIES", 2)
    monkeypatch.setattr(search, "MAX_DUPLICATES", 2)
    for copy in range(number):
        await client.post("/v1/articles", json={"id": f"copy-{copy}", "text": TEXT})

    found = await (await client.get("/v1/articles/copy-1/copies")).json()
    page = await (await client.get("/search?q=copy-1")).text()

    assert [copy["id"] for copy in found["copies"]] == ["copy-0", "copy-1"]
    assert found["truncated"] == (number > 2)
    assert ('<span class="count">2+</span>' in page) == (number > 3)


async def test_slashes_in_an_id_need_no_escape(client: Client) -> None:
    """/v1/articles/example.org/a works; an id that ends in /copies must be escaped."""
    await client.post("/v1/articles", json={"id": "example.org/a/copies", "text": TEXT})
    await client.post("/v1/articles", json={"id": "example.org/a", "text": TEXT})

    plain = await (await client.get("/v1/articles/example.org/a")).json()
    copies = await (await client.get("/v1/articles/example.org/a/copies")).json()
    escaped = await (await client.get(URL("/v1/articles/example.org%2fa%2Fcopies", encoded=True))).json()

    assert plain["id"] == "example.org/a"
    assert [c["id"] for c in copies["copies"]] == ["example.org/a/copies", "example.org/a"]
    assert copies["canonical_id"] == "example.org/a/copies"
    assert escaped["id"] == "example.org/a/copies"


@pytest.mark.parametrize(
    "id_", ["100%", "a%2Fb", "a b", "新闻/7", "🙂", "{x}", "a:b", "batch", "a+b", "a;b", "..", "a?b#c"]
)
async def test_unusual_ids_survive_the_path(client: Client, id_: str) -> None:
    """Percent signs, spaces, other scripts, emoji, reserved characters and dot segments."""
    await client.post("/v1/articles", json={"id": id_, "text": TEXT})

    response = await client.get(URL("/v1/articles/" + _quoted(id_), encoded=True))

    assert response.status == 200
    assert (await response.json())["id"] == id_


async def test_unknown_ids_are_404(client: Client) -> None:
    """The problem names the id."""
    for method, path in [("GET", ""), ("DELETE", ""), ("GET", "/copies"), ("GET", "/related")]:
        response = await client.request(method, "/v1/articles/unknown" + path)
        body = await response.json(content_type="application/problem+json")
        assert (response.status, body["code"]) == (404, "not_found")
        assert "unknown" in body["detail"]


async def test_control_characters_in_a_path_are_rejected(client: Client) -> None:
    """A line break in an id is invalid input, not an unknown address."""
    response = await client.get(URL("/v1/articles/a%0Ab", encoded=True))

    assert response.status == 400
    assert (await response.json(content_type=None))["field"] == "id"


@pytest.mark.parametrize(
    ("failure", "code"), [(StoreUnavailable, "store_unavailable"), (CommitConflict, "contention")]
)
async def test_store_errors_are_503_with_retry_after(
    client: Client, service: FakeService, failure: type[StoreUnavailable], code: str
) -> None:
    """503 while the store is unavailable; requests succeed again afterwards."""
    service.failure = failure("The store does not answer; try again.")
    unavailable = await client.post("/v1/articles", json={"id": "a", "text": TEXT})
    service.failure = None
    available = await client.post("/v1/articles", json={"id": "a", "text": TEXT})

    assert (unavailable.status, available.status) == (503, 201)
    assert unavailable.headers["Retry-After"] == "1"
    assert (await unavailable.json(content_type=None))["code"] == code


async def test_unexpected_errors_are_logged_without_details_in_the_response(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    """500 with a request id that is also in the log."""
    service.failure = ZeroDivisionError("secret detail")
    response = await client.post("/v1/articles", json={"id": "a", "text": TEXT})
    body = await response.json(content_type="application/problem+json")

    assert response.status == 500
    assert "secret" not in json.dumps(body)
    assert body["request_id"] == response.headers["X-Request-Id"]
    assert body["request_id"] in caplog.text


def _quoted(id_: str) -> str:
    return "".join(chr(b) if chr(b).isascii() and chr(b).isalnum() else f"%{b:02X}" for b in id_.encode())
