"""Notifications to Slack, Telegram, Teams and others: what reaches them, over TLS under their names.

The child process resolves every name to a receiver on loopback with a certificate for these names.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.events.notifications import apprise_sender
from aggregator.events.notifications.apprise_child import to_markdown
from aggregator.events.notifications.apprise_sender import AppriseSender
from aggregator.events.notifications.channels import masked_address, validate_apprise_url
from tests.support.hang_limit import HANG_LIMIT_S

pytest.importorskip("apprise", reason="apprise is not installed")

ROOT = Path(__file__).resolve().parents[3]
TITLE = "World: R&D *bridge* closed"
BODY = "R&D *bridge* closed\n12 items\nhttps://news.example/events/e1.2"
SIG = "PCp0bJ1pBZ5gW4j5LV7R3PYZXLPHIKmYA5ifQRSd1A4"


@dataclass
class Services:
    """All services at once: the calls as (host, path, body), and the status of their answers."""

    status: int = 200
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Keep one call; the answer quotes its path, as an error of Telegram does."""
        self.calls.append((request.host, request.path, await request.text()))
        if request.host == "hooks.slack.com" and self.status == 200:
            return web.Response(text="ok")
        return web.json_response({"ok": True, "description": request.path_qs}, status=self.status)


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Services]:
    """The receiver, to which the child process is redirected."""
    authority, receiver = trustme.CA(), Services()
    names = ("hooks.slack.com", "api.telegram.org", "discord.com", "chat.googleapis.com", "api.pushover.net")
    certificate = authority.issue_cert(*names, "prod-7.westeurope.logic.azure.com")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.handle)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    environment = {
        **apprise_sender.CHILD_ENVIRONMENT,
        "PYTHONPATH": str(ROOT),
        "RECEIVER_PORT": str(server.port),
        "REQUESTS_CA_BUNDLE": str(tmp_path / "ca.pem"),
    }
    monkeypatch.setattr(apprise_sender, "CHILD_ENVIRONMENT", environment)
    monkeypatch.setattr(apprise_sender, "CHILD_MODULE", "tests.support.redirected_apprise")
    yield receiver
    await server.close()


def slack(body: dict[str, Any]) -> tuple[str, str]:
    """Title and text as an attachment, without markup."""
    assert body["mrkdwn"] is False
    return body["attachments"][0]["title"], body["attachments"][0]["text"]


def telegram(body: dict[str, Any]) -> tuple[str, str]:
    """HTML, whose special characters are escaped."""
    assert (body["chat_id"], body["parse_mode"]) == (12315544, "HTML")
    title, _, text = body["text"].replace("\r\n", "\n").partition("\n")
    return title, text


def teams(body: dict[str, Any]) -> tuple[str, str]:
    """An adaptive card of two blocks of Markdown."""
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    title, text = attachment["content"]["body"]
    return title["text"], text["text"]


def discord(body: dict[str, Any]) -> tuple[str, str]:
    """Plain content."""
    title, _, text = body["content"].partition("\r\n")
    return title, text


MARKDOWN = "R&D \\*bridge\\* closed\n\n12 items\n\n[https://news.example/events/e1.2](https://news.example/events/e1.2)"
SERVICES = [
    (
        "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "hooks.slack.com", "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        slack, (TITLE.replace("&", "&amp;"), BODY.replace("&", "&amp;")),
    ),
    (
        "tgram://123456789:AAFabcdefghijklmnopqrstuvwxyz123456/12315544/",
        "api.telegram.org", "/bot123456789:AAFabcdefghijklmnopqrstuvwxyz123456/sendMessage",
        telegram, (f"<b>{TITLE}</b>".replace("&", "&amp;"), BODY.replace("&", "&amp;")),
    ),
    (
        f"https://prod-7.westeurope.logic.azure.com:443/workflows/643e69f83c8944438d68119179a10a64/triggers/manual/"
        f"paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig={SIG}",
        "prod-7.westeurope.logic.azure.com",
        "/workflows/643e69f83c8944438d68119179a10a64/triggers/manual/paths/invoke",
        teams, (TITLE, MARKDOWN),
    ),
    (
        "https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "discord.com", "/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        discord, (TITLE, BODY),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("url", "host", "path", "read", "expected"), SERVICES)
async def test_a_notification_reaches_the_service_in_its_form(
    services: Services, url: str, host: str, path: str, read: Any, expected: tuple[str, str]
) -> None:
    """One call with title, text and link, whose markup is not interpreted; the address is accepted."""
    assert validate_apprise_url(url, allow_private=False) == url
    error = await AppriseSender(allow_private=True, timeout_s=HANG_LIMIT_S).send(url, TITLE, BODY)

    assert error is None
    ((called_host, called_path, body),) = services.calls
    assert (called_host.partition(":")[0], called_path) == (host, path)
    assert read(json.loads(body)) == expected


@pytest.mark.parametrize("url", [SERVICES[1][0], SERVICES[2][0]])
async def test_a_refusal_that_quotes_the_address_discloses_nothing(services: Services, url: str) -> None:
    """The bot's token and the signature are neither in the error nor in what the pages show."""
    services.status = 403
    error = await AppriseSender(allow_private=True, timeout_s=HANG_LIMIT_S).send(url, TITLE, BODY)
    shown = f"{error} {masked_address('apprise', url)}"

    assert error is not None and "403" in error
    assert not any(secret in shown for secret in ("AAFabcdefghijk", "123456789", SIG, "643e69f83c894443"))


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("One\n\nTwo", "One\n\nTwo"),
        ("a_b [c](d) `e` \\", r"a\_b \[c\](d) \`e\` \\"),
        ("Desk: https://n.example/d_1 open", r"Desk: [https://n.example/d\_1](https://n.example/d_1) open"),
    ],
)
def test_plain_text_as_markdown(text: str, markdown: str) -> None:
    """Lines, special characters, addresses within a line."""
    assert to_markdown(text) == markdown
