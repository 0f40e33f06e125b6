"""Webhook calls: permitted URLs and addresses, signatures, results."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from email.utils import formatdate

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from aggregator.errors import InvalidInput
from aggregator.events.webhooks.outbox import Delivery, DeliveryResult
from aggregator.events.webhooks.sender import (
    MAX_RESPONSE_BYTES,
    TargetSender,
    is_public_address,
    signature_headers,
    validate_url,
)
from aggregator.events.webhooks.subscriptions import Subscription, new_secret
from tests.support.factories import EVENT_MS

NOW_MS = EVENT_MS
CALL = Delivery(
    "msg_1", "h", "e", "fired", json.dumps({"type": "event.fired", "data": {"title": "桥"}}).encode(), 0, 0
)


def webhook(url: str = "https://desk.example/in") -> Subscription:
    """A subscription with a new secret."""
    return Subscription("h", url, new_secret())


async def send_once(url: str, *, allow_private: bool = True) -> DeliveryResult:
    """The result of one call."""
    sender = TargetSender(allow_private=allow_private)
    result = await sender.send(webhook(url), CALL, NOW_MS)
    await sender.close()
    return result


def test_the_reference_package_accepts_our_signature() -> None:
    """It rejects another secret, body or time."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)  # the package compares with the real clock
    signer = webhook()
    headers = signature_headers(signer, CALL, now_ms)

    assert Webhook(signer.secret).verify(CALL.body, headers)["type"] == "event.fired"
    for secret, body, at_ms in (
        (new_secret(), CALL.body, now_ms),
        (signer.secret, CALL.body + b" ", now_ms),
        (signer.secret, CALL.body, now_ms - 600_000),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, signature_headers(signer, CALL, at_ms))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
        "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::",
        "nonsense", "", "::127.0.0.1", "::ffff:0:127.0.0.1", "fec0::1", "64:ff9b:1::7f00:1", "2130706433",
        "127.1", "192.0.0.192", "192.88.99.1", "3fff::1", "::ffff:192.0.0.192", "2002:c000:c0::",
    ],
)  # fmt: skip
def test_internal_addresses_are_not_public(address: str) -> None:
    """In any notation."""
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]
)
def test_public_addresses(address: str) -> None:
    """IPv4, IPv6, and IPv4 embedded in NAT64."""
    assert is_public_address(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://desk.example/in", "ftp://desk.example", "desk.example", "https://", "https:///x",
        "javascript:alert(1)", "https://user:secret@desk.example/", "https://desk.example/a b",
        "https://desk.example/\n", "https://[::1]/", "https://127.0.0.1/", "https://127.1/",
        "https://0x7f.0.0.1/", "https://2130706433/", "https://017700000001/", "https://[::ffff:10.0.0.1]/",
        "https://desk.example:99999/", "https://169.254.169.254/latest/", "https://" + "a" * 2000,
        "https://127.0.0.⑩/", "https://169.254.169.㉕4/", "https://⑩.0.0.⑩/", "https://127.0.0.1./",
        "https://127.1./", "https://[::127.0.0.1]/", "https://[fec0::1]/",
    ],
)  # fmt: skip
def test_invalid_and_internal_urls_are_refused(url: str) -> None:
    """The error names the field."""
    with pytest.raises(InvalidInput, match=r"^url: "):
        validate_url(url, allow_private=False)


def test_private_addresses_can_be_allowed() -> None:
    """Then plain http is permitted too."""
    assert validate_url("http://127.0.0.1:9000/in", allow_private=True)


async def start_receiver(handler: Handler) -> TestServer:
    """A receiver on loopback."""
    app = web.Application()
    app.router.add_post("/in", handler)
    server = TestServer(app)
    await server.start_server()
    return server


@pytest.mark.integration
async def test_a_host_that_resolves_to_loopback_is_refused() -> None:
    """Addresses are checked at the connection, so DNS rebinding after the registration has no effect."""
    received: list[int] = []

    async def record(request: web.Request) -> web.Response:
        received.append(1)
        return web.Response()

    server = await start_receiver(record)
    result = await send_once(f"https://localhost:{server.port}/in", allow_private=False)
    await server.close()

    assert "must not reach" in (result.error or "")
    assert received == []


@pytest.mark.integration
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "127.0.0.⑩", "127.0.0.1.", "[::ffff:127.0.0.1]"]
)
async def test_an_ip_literal_is_refused_at_its_socket(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Second line of defense, for notations that the validation of the URL does not know."""
    monkeypatch.setattr("aggregator.events.webhooks.sender.validate_url", lambda url, allow_private: url)
    received: list[int] = []

    async def record(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(1)
        writer.close()

    server = await asyncio.start_server(record, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    result = await send_once(f"https://{host}:{port}/in", allow_private=False)
    server.close()

    assert result.error
    assert received == []


@pytest.mark.integration
@pytest.mark.parametrize(
    ("status", "headers", "error", "unsubscribed", "retry_after_s"),
    [
        (204, {}, None, False, 0),
        (500, {}, "answered with status 500", False, 0),
        (429, {"Retry-After": "90"}, "answered with status 429", False, 90),
        (503, {"Retry-After": "99999999"}, "answered with status 503", False, 3600),
        (503, {"Retry-After": formatdate(NOW_MS / 1000 + 90)}, "answered with status 503", False, 90),
        (503, {"Retry-After": "Tue, 1 Jan 2019 00:00:00 GMT"}, "answered with status 503", False, 0),
        (503, {"Retry-After": "soon"}, "answered with status 503", False, 0),
        (410, {}, "answered with status 410", True, 0),
        (302, {"Location": "http://127.0.0.1/secret"}, "answered with status 302", False, 0),
    ],
)
async def test_the_result_of_a_response(
    status: int, headers: dict[str, str], error: str | None, unsubscribed: bool, retry_after_s: int
) -> None:
    """Redirects are not followed."""

    async def respond(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers)

    server = await start_receiver(respond)
    result = await send_once(str(server.make_url("/in")))
    await server.close()

    assert (result.error, result.unsubscribed, result.retry_after_s) == (error, unsubscribed, retry_after_s)


@pytest.mark.integration
async def test_an_endless_response_is_cut_off() -> None:
    """Only its status is used."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * MAX_RESPONSE_BYTES)
        except ConnectionError:
            return response

    server = await start_receiver(endless)
    result = await send_once(str(server.make_url("/in")))
    await server.close()

    assert result.error is None
