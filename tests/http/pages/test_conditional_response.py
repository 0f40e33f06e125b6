"""Conditional responses (RFC 9110, section 13)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from aggregator.http.pages import conditional_response

MODIFIED = datetime(2026, 11, 20, 8, 0, 0, tzinfo=UTC)
AT, BEFORE, AFTER = (
    "Fri, 20 Nov 2026 08:00:00 GMT",
    "Fri, 20 Nov 2026 07:59:59 GMT",
    "Fri, 20 Nov 2026 08:00:01 GMT",
)


def respond(body: bytes = b"one", modified_at: datetime | None = MODIFIED, **conditions: str) -> web.Response:
    """The response to a request with these headers; "_" replaces "-"."""
    headers = {name.replace("_", "-"): value for name, value in conditions.items()}
    request = make_mocked_request("GET", "/feed", headers=headers)
    return conditional_response(request, body, "text/plain", modified_at=modified_at)


def test_the_first_response_has_body_and_validators() -> None:
    """A client revalidates each time, with either validator."""
    response = respond()

    assert (response.status, response.body) == (200, b"one")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Cache-Control"] == "private, no-cache"
    assert response.headers["Last-Modified"] == AT
    assert response.headers["ETag"][0] == response.headers["ETag"][-1] == '"'


def test_the_etag_depends_on_the_content_only() -> None:
    """All processes of a service send the same one."""
    first, second = respond(modified_at=None), respond()

    assert first.headers["ETag"] == second.headers["ETag"]
    assert first.headers["ETag"] != respond(b"two").headers["ETag"]
    assert "Last-Modified" not in first.headers


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_a_known_etag_gets_304_without_a_body(form: str) -> None:
    """Strong, weak (as a compressing proxy makes it), in a list, or any."""
    tag = respond().headers["ETag"]
    response = respond(If_None_Match=form.format(tag))

    assert (response.status, response.body) == (304, None)
    assert response.headers["ETag"] == tag
    assert response.headers["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize(("since", "status"), [(BEFORE, 200), (AT, 304), (AFTER, 304), ("yesterday", 200)])
def test_the_date_is_compared_without_an_etag(since: str, status: int) -> None:
    """An unreadable date counts as none."""
    assert respond(If_Modified_Since=since).status == status


def test_an_etag_takes_precedence_over_the_date() -> None:
    """RFC 9110, section 13.2.2: two versions may have the same second."""
    assert respond(If_None_Match='"other"', If_Modified_Since=AFTER).status == 200


def test_a_resource_without_a_date_is_never_304_by_date() -> None:
    """Nothing says that the client's copy is current."""
    assert respond(modified_at=None, If_Modified_Since=AFTER).status == 200


def test_given_headers_replace_the_cache_control() -> None:
    """Static files may be cached; the ETag cannot be replaced."""
    response = conditional_response(
        make_mocked_request("GET", "/static/page.js"),
        b"one",
        "image/png",
        charset=None,
        headers={"Cache-Control": "max-age=60", "ETag": '"fake"'},
    )

    assert response.headers["Cache-Control"] == "max-age=60"
    assert response.headers["ETag"] == respond().headers["ETag"]
    assert response.headers["Content-Type"] == "image/png"
