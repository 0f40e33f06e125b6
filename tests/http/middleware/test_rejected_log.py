"""Log of malformed requests: throttled, with a reason and without what was sent."""

import asyncio
import logging
from typing import cast

import pytest
from aiohttp import http_exceptions

from aggregator.app import Service
from aggregator.http.middleware.rejected_log import (
    LOG_INTERVAL_S,
    OTHER_REASON,
    RejectedConnectionLog,
)
from aggregator.http.server import serve
from aggregator.settings import Settings
from tests.support.fake_service import FakeService

LOGGER = "aggregator.http.middleware.rejected_log"


def logged_fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The fields of each logged line."""
    return [record.fields for record in caplog.records if record.name == LOGGER]  # type: ignore[attr-defined]


def test_lines_are_throttled_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The first immediately, then one per 10 s with the number of suppressed ones."""
    now_s = 0.0
    rejected_log = RejectedConnectionLog(lambda: now_s)
    for _ in range(35):
        rejected_log.log("192.0.2.1", 400, http_exceptions.BadHttpMethod("\x16\x03"))
        now_s += LOG_INTERVAL_S / 10

    assert [fields["more"] for fields in logged_fields(caplog)] == [0, 9, 9, 9]
    now_s += LOG_INTERVAL_S
    rejected_log.log(None, 400, None)
    assert logged_fields(caplog)[-1] == {"peer": None, "status": 400, "reason": OTHER_REASON, "more": 4}


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
    server = serve(cast(Service, service), "127.0.0.1", 0, on_ready=ports.put_nowait, stop=stop)
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
