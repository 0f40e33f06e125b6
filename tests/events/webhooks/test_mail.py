"""E-mail through a real SMTP server on loopback."""

from __future__ import annotations

import email
import email.policy
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aggregator.errors import InvalidInput
from aggregator.events.webhooks.mail import (
    SmtpServer,
    parse_smtp_url,
    plain_reason,
    send_mail,
    validate_mail_address,
)
from tests.support.factories import EVENT_MS
from tests.support.mail_server import MailServer, mail_server


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    """A running server."""
    async with mail_server() as running:
        yield running


def client_of(server: MailServer, **options: Any) -> SmtpServer:
    """The settings of a client of ``server``."""
    return SmtpServer("127.0.0.1", server.port, "news@newsroom.example", **options)


@pytest.mark.integration
async def test_a_message_arrives_with_its_headers(server: MailServer) -> None:
    """In any script; the Message-ID derives from the delivery."""
    error = await send_mail(
        client_of(server), "desk@newsroom.example", "Harbour:\n桥 closed", "桥\n\nhttps://x.example", "msg_1",
        EVENT_MS,
    )  # fmt: skip
    (envelope,) = server.envelopes
    message = email.message_from_bytes(envelope.content, policy=email.policy.default)

    assert error is None
    assert (envelope.mail_from, envelope.rcpt_tos) == ("news@newsroom.example", ["desk@newsroom.example"])
    assert message["Subject"] == "Harbour: 桥 closed"
    assert message["Message-ID"] == "<msg_1@newsroom.example>"
    assert message["Date"] == "Mon, 21 Sep 2026 14:13:20 -0000"
    bodies = [str(part.get_content()).replace("\r\n", "\n") for part in message.iter_parts()]
    assert bodies == ["桥\n\nhttps://x.example\n", "<p><b>桥</b></p><p><b>https://x.example</b></p>\n"]


@pytest.mark.integration
async def test_the_answer_of_the_server_is_the_error(server: MailServer) -> None:
    """For the recipient and for the message."""
    server.answers = {"RCPT": "550 No such desk"}
    refused = await send_mail(client_of(server), "x@newsroom.example", "T", "B", "m", EVENT_MS)
    server.answers = {"DATA": "452 Mailbox full"}
    full = await send_mail(client_of(server), "x@newsroom.example", "T", "B", "m", EVENT_MS)

    assert refused == "the mail server refused the recipient: 550 No such desk"
    assert full == "the mail server answered 452 Mailbox full"


@pytest.mark.integration
async def test_a_password_is_not_sent_without_tls(server: MailServer) -> None:
    """The server of this test offers none."""
    client = client_of(server, user="news", password="secret")
    error = await send_mail(client, "desk@newsroom.example", "T", "B", "m", EVENT_MS)

    assert error is not None and "offers no TLS" in error and "secret" not in error
    assert server.envelopes == []


async def test_a_server_that_is_away_is_named() -> None:
    """Nobody listens on port 1."""
    error = await send_mail(SmtpServer("127.0.0.1", 1, "n@x.example"), "d@x.example", "T", "B", "m", EVENT_MS)

    assert error == "the mail could not be sent through 127.0.0.1: connection refused"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "there is no such host"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] (_ssl.c:1006)"), "no secure connection: tls failed"),
        (ValueError("odd"), "odd"),
        (OSError(), "OSError"),
    ],
)
def test_reasons_have_no_numbers_of_the_system(error: Exception, reason: str) -> None:
    """Editors read them in the list of targets."""
    assert plain_reason(error) == reason


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example", SmtpServer("mail.example", 25, "s")),
        ("smtps://mail.example/", SmtpServer("mail.example", 465, "s", implicit_tls=True)),
        ("smtp://u%40x:p%2Fw@mail.example:587", SmtpServer("mail.example", 587, "s", "u@x", "p/w")),
    ],
)
def test_the_url_of_the_server(url: str, server: SmtpServer) -> None:
    """User and password are percent-encoded."""
    assert parse_smtp_url(url, "s") == server


@pytest.mark.parametrize("url", ["mail.example:25", "http://mail.example", "smtp://", "smtp://host/path"])
def test_other_urls_are_refused(url: str) -> None:
    """No path, no other scheme."""
    with pytest.raises(ValueError):
        parse_smtp_url(url, "s")


@pytest.mark.parametrize("address", ["desk@newsroom.example", "mailto:d.e+s_k@news.example"])
def test_mail_addresses_are_accepted(address: str) -> None:
    """With and without "mailto:"."""
    assert validate_mail_address(address) == address.removeprefix("mailto:")


@pytest.mark.parametrize(
    "address",
    [
        "", "desk", "desk@", "@news.example", "desk@localhost", "a@b.example, c@d.example",
        "a@b.example;c@d.example",
        "Desk <desk@news.example>", "desk@news.example\nBcc: x@y.example",
        "d esk@news.example", "a@@b.example",
        "dësk@news.example", "desk@" + "x" * 300 + ".example", '"x y"@news.example', "desk@[127.0.0.1]",
    ],
)  # fmt: skip
def test_other_mail_addresses_are_refused(address: str) -> None:
    """Several, with a name, with a line break."""
    with pytest.raises(InvalidInput, match="expected one e-mail address"):
        validate_mail_address(address)
