"""Error middleware: every exception becomes a problem response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.test_utils import make_mocked_request

from aggregator import errors
from aggregator.http.middleware.errors import (
    CLIENT_CLOSED_REQUEST,
    error_middleware,
    malformed_request_response,
    not_ready_response,
)
from tests.support.fake_service import Client, FakeService


def problem_of(response: web.Response) -> dict[str, Any]:
    """The problem in a response."""
    assert isinstance(response.body, bytes)
    assert response.headers["Content-Type"] == "application/problem+json"
    decoded: dict[str, Any] = json.loads(response.body)
    assert decoded["status"] == response.status
    return decoded


@pytest.mark.parametrize(
    ("failure", "status", "headers"),
    [
        (errors.InvalidInput("text: empty.", field="text"), 400, {}),
        (errors.Unauthenticated("A key is needed."), 401, {"WWW-Authenticate": 'Bearer realm="aggregator"'}),
        (errors.Forbidden("Not with this role."), 403, {}),
        (errors.BodyTimeout("body: late.", field="body"), 408, {"Connection": "close"}),
        (errors.Conflict("Merged already."), 409, {}),
        (errors.RateLimited("Too fast."), 429, {"Retry-After": "1"}),
        (errors.StoreUnavailable("The store is down."), 503, {"Retry-After": "1"}),
        (errors.Overloaded("Too busy."), 503, {"Retry-After": "1"}),
    ],
)
async def test_an_error_has_its_status_and_headers(
    client: Client,
    service: FakeService,
    failure: errors.AggregatorError,
    status: int,
    headers: dict[str, str],
) -> None:
    """The problem names the request, so that a report can be matched with the log."""
    service.failure = failure
    response = await client.post(
        "/v1/articles?dry_run=true", json={"text": "One text."}, headers={"X-Request-Id": "crawler-7"}
    )
    problem = await response.json(content_type="application/problem+json")

    assert (response.status, problem["status"]) == (status, status)
    assert {name: response.headers.get(name) for name in headers} == headers
    assert ("Retry-After" in response.headers) == ("Retry-After" in headers)
    assert (problem["instance"], problem["request_id"]) == ("/v1/articles", "crawler-7")
    assert problem["detail"] == str(failure)


async def test_an_unexpected_error_reveals_nothing(client: Client, service: FakeService) -> None:
    """Its message may hold a password or a text."""
    service.failure = RuntimeError("redis://user:geheim@store")
    response = await client.post("/v1/articles", json={"text": "One text."})

    assert response.status == 500
    assert "geheim" not in await response.text()
    assert "aggregator_unhandled_exceptions_total 1.0" in await (await client.get("/metrics")).text()


@pytest.mark.parametrize(
    ("path", "media_type"),
    [("/nothing", "text/html"), ("/v1/nothing", "application/problem+json"),
     ("/static/none.js", "application/problem+json")],
)  # fmt: skip
async def test_a_browser_gets_a_page_outside_the_api(client: Client, path: str, media_type: str) -> None:
    """In the API and among static files programs read the answer, whatever they accept."""
    accepted = await client.get(path, headers={"Accept": "text/html,*/*"})
    other = await client.get(path, headers={"Accept": "*/*"})

    assert (accepted.status, accepted.content_type) == (404, media_type)
    assert (other.status, other.content_type) == (404, "application/problem+json")


async def run(error: BaseException, path: str = "/", **headers: str) -> web.StreamResponse:
    """The response of the middleware to a handler that raises ``error``."""

    async def handler(request: web.Request) -> web.StreamResponse:
        raise error

    return await error_middleware(make_mocked_request("GET", path, headers=headers), handler)


async def test_a_reader_without_a_key_is_sent_to_the_sign_in_page() -> None:
    """And back to the same page with its query afterwards."""
    response = await run(errors.Unauthenticated("x"), "/events/e1?term=a&lang=de", Accept="text/html")

    assert response.status == 303
    assert response.headers["Location"] == "/sign-in?next=%2Fevents%2Fe1%3Fterm%3Da%26lang%3Dde"


async def test_a_disconnect_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody reads the response, and nothing is logged."""
    response = await run(ConnectionResetError("gone"))

    assert response.status == CLIENT_CLOSED_REQUEST
    assert not caplog.records


async def test_redirects_pass_unchanged() -> None:
    """They are exceptions of the framework, but no errors."""
    with pytest.raises(web.HTTPSeeOther):
        await run(web.HTTPSeeOther("/docs"))


@pytest.mark.parametrize(
    ("status", "error", "detail"),
    [
        (400, LineTooLong("header", "8190"), "is too long; the limit is 8190 bytes."),
        (400, BadHttpMessage("\x16\x03\x01"), "Not a valid HTTP/1.1 request."),
        (400, None, "Not a valid HTTP/1.1 request."),
    ],
)
def test_bytes_that_are_no_request_get_a_problem(
    status: int, error: BaseException | None, detail: str
) -> None:
    """They are not repeated in the response."""
    problem = problem_of(malformed_request_response(status, error))

    assert problem["status"] == status
    assert problem["detail"].endswith(detail)


def test_a_failure_of_the_server_before_the_handler_is_a_500() -> None:
    """Without the error's own text."""
    problem = problem_of(malformed_request_response(500, RuntimeError("geheim")))

    assert problem["status"] == 500
    assert "geheim" not in json.dumps(problem)


def test_a_service_that_is_not_ready_says_why() -> None:
    """Load balancers and clients try again after a second."""
    response = not_ready_response("The index is being loaded.")

    assert problem_of(response)["detail"] == "The index is being loaded."
    assert (response.status, response.headers["Retry-After"]) == (503, "1")
