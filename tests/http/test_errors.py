"""Problem responses for errors, and the log of what was refused."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any, cast

import pytest
from aiohttp import http_exceptions, web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.test_utils import make_mocked_request

from aggregator import errors
from aggregator.app import Service
from aggregator.http.errors import (
    CLIENT_CLOSED_REQUEST,
    LOG_INTERVAL_S,
    OTHER_REASON,
    REFUSAL_LOG,
    RefusalLog,
    error_response,
    malformed_request_response,
    not_ready_response,
)
from aggregator.http.server import serve
from aggregator.log_limits import LogThrottle
from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService


def problem_of(response: web.Response) -> dict[str, Any]:
    """The problem in a response."""
    assert isinstance(response.body, bytes)
    assert response.headers["Content-Type"] == "application/problem+json"
    decoded: dict[str, Any] = json.loads(response.body)
    assert decoded["status"] == response.status
    return decoded


@pytest.mark.integration
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


@pytest.mark.integration
async def test_an_unexpected_error_reveals_nothing(client: Client, service: FakeService) -> None:
    """Its message may hold a password or a text."""
    service.failure = RuntimeError("redis://user:geheim@store")
    response = await client.post("/v1/articles", json={"text": "One text."})

    assert response.status == 500
    assert "geheim" not in await response.text()
    assert "aggregator_unhandled_exceptions_total 1.0" in await (await client.get("/metrics")).text()


@pytest.mark.integration
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


async def run(error: Exception, path: str = "/", **headers: str) -> web.Response:
    """The response to a request whose handler raises ``error``."""
    return error_response(make_mocked_request("GET", path, headers=headers), error)


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


LOGGER = "aggregator.http.errors"


def logged_fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The fields of each logged line."""
    return [record.fields for record in caplog.records if record.name == LOGGER]  # type: ignore[attr-defined]


def test_lines_are_throttled_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The first immediately, then one per 10 s with the number of suppressed ones."""
    now_s = 0.0
    refusal_log = RefusalLog(lambda: now_s)
    for _ in range(35):
        refusal_log.malformed("192.0.2.1", 400, http_exceptions.BadHttpMethod("\x16\x03"))
        now_s += LOG_INTERVAL_S / 10

    assert [fields["more"] for fields in logged_fields(caplog)] == [0, 9, 9, 9]
    now_s += LOG_INTERVAL_S
    refusal_log.malformed(None, 400, None)
    assert logged_fields(caplog)[-1] == {"peer": None, "status": 400, "reason": OTHER_REASON, "more": 4}


@pytest.mark.integration
async def test_an_outage_is_one_line_per_cause(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    """Not one for each refused request; the next line says how many were."""
    now_s = 0.0
    client.app[REFUSAL_LOG]._throttle = LogThrottle(LOG_INTERVAL_S, lambda: now_s)
    for text in ("The store is full.", "The store is full.", "The store is full.", "The store is gone."):
        service.failure = errors.StoreUnavailable(text)
        assert (await client.get("/v1/articles/a", headers={"X-Request-Id": "r-1"})).status == 503
    now_s, service.failure = LOG_INTERVAL_S, errors.StoreUnavailable("The store is full.")
    await client.get("/v1/articles/a", headers={"X-Request-Id": "r-2"})

    assert [record.getMessage() for record in caplog.records if record.name == LOGGER] == [
        "request r-1: The store is full; 0 more since the last such line",
        "request r-1: The store is gone; 0 more since the last such line",
        "request r-2: The store is full; 2 more since the last such line",
    ]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 secret\r\n\r\n", "not an HTTP method, perhaps TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization\x00: Bearer secret\r\n\r\n", OTHER_REASON),
        (b"GET /" + b"secret" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", "line too long"),
        (b"GET /secret\x1b[31m HTTP/9\r\n\r\n", OTHER_REASON),
    ],
)
async def test_the_reason_is_logged_without_the_data(
    caplog: pytest.LogCaptureFixture, sent: bytes, reason: str
) -> None:
    """The data may contain a key or terminal escapes."""
    caplog.set_level(logging.INFO)
    ports: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    service = FakeService(Settings(store_url="memory"))
    server = serve(
        cast(Service, service), socket.create_server(("127.0.0.1", 0)), on_ready=ports.put_nowait, stop=stop
    )
    task = asyncio.create_task(server)
    reader, writer = await asyncio.open_connection("127.0.0.1", await ports.get())
    writer.write(sent)
    response = await reader.read()
    writer.close()
    stop.set()
    await task

    assert response.split()[1] == b"400"
    assert [(fields["peer"], fields["reason"]) for fields in logged_fields(caplog)] == [("127.0.0.1", reason)]
    assert "secret" not in caplog.text and "\x1b" not in caplog.text
