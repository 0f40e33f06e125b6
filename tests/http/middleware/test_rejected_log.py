"""What never becomes a request is told of in one line of log, seldom, and without what was sent."""

import asyncio
import logging

import pytest
from aiohttp import http_exceptions

from aggregator.http.middleware.rejected_log import (
    LOG_INTERVAL_S,
    OTHER_REASON,
    RejectedConnectionLog,
)
from aggregator.http.server import serve
from aggregator.settings import Settings
from tests.support.fake_service import FakeService

LOGGER = "aggregator.http.middleware.rejected_log"


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The fields of what was logged."""
    return [record.fields for record in caplog.records if record.name == LOGGER]  # type: ignore[attr-defined]


def test_a_line_now_and_then_says_how_many_there_were(caplog: pytest.LogCaptureFixture) -> None:
    """The first at once; of a flood one in ten seconds."""
    now_s = 0.0
    turned_away = RejectedConnectionLog(lambda: now_s)
    for _ in range(35):
        turned_away.log("192.0.2.1", 400, http_exceptions.BadHttpMethod("\x16\x03"))
        now_s += LOG_INTERVAL_S / 10

    assert [line["more"] for line in lines(caplog)] == [0, 9, 9, 9]
    now_s += LOG_INTERVAL_S
    turned_away.log(None, 400, None)
    assert lines(caplog)[-1] == {"peer": None, "status": 400, "reason": OTHER_REASON, "more": 4}


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 secret\r\n\r\n", "not an HTTP method, perhaps TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization\x00: Bearer secret\r\n\r\n", OTHER_REASON),
        (b"GET /" + b"secret" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", "line too long"),
        (b"GET /secret\x1b[31m HTTP/9\r\n\r\n", OTHER_REASON),
    ],
)
async def test_what_was_sent_is_named_and_not_repeated(
    caplog: pytest.LogCaptureFixture, sent: bytes, reason: str
) -> None:
    """It may hold a key, and is a stranger's word in any case."""
    caplog.set_level(logging.INFO)
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    service = FakeService(Settings(store_url="memory"))
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, on_ready=told.put_nowait, stop=stop))  # type: ignore[arg-type]
    reader, writer = await asyncio.open_connection("127.0.0.1", await told.get())
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    stop.set()
    await task

    assert answer.split()[1] == b"400"
    assert [(line["peer"], line["reason"]) for line in lines(caplog)] == [("127.0.0.1", reason)]
    assert "secret" not in caplog.text and "\x1b" not in caplog.text
