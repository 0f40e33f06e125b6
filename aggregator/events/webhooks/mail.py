"""Sends one e-mail through the SMTP server of the settings. The server is the operator's choice alone."""

from __future__ import annotations

import asyncio
import os
import re
import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from functools import partial
from html import escape
from urllib.parse import unquote, urlsplit

from aggregator.errors import InvalidInput

TIMEOUT_S = 20.0
STEP_TIMEOUT_S = 8.0  # of each step of the SMTP dialogue; the whole has TIMEOUT_S
_LINKED = re.compile(r"^(.*) (https?://\S+)$", re.MULTILINE)
MAX_ADDRESS_CHARS = 254  # RFC 5321, section 4.5.3.1.3


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """An SMTP server: ``implicit_tls`` for smtps://, otherwise STARTTLS if the server offers it."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = ""
    implicit_tls: bool = False


def parse_smtp_url(url: str, sender: str) -> SmtpServer:
    """The server of a URL such as ``smtp://user:password@mail.example:587``. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(url)
    implicit_tls = parts.scheme == "smtps"
    return SmtpServer(
        host=parts.hostname,
        port=parts.port or (465 if implicit_tls else 25),
        sender=sender,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        implicit_tls=implicit_tls,
    )


def validate_mail_address(address: str) -> str:
    """An e-mail address without a display name. Raises InvalidInput."""
    address = address.strip().removeprefix("mailto:")
    try:
        parsed = Address(addr_spec=address)
    except (MessageError, ValueError, IndexError):
        parsed = Address()
    is_plain = address.isascii() and address.isprintable() and not {*address} & {*' ,;<>"()[]'}
    if not is_plain or len(address) > MAX_ADDRESS_CHARS or not parsed.username or "." not in parsed.domain:
        raise InvalidInput("address: expected one e-mail address, such as desk@example.org.", field="address")
    return address


async def send_mail(
    server: SmtpServer, recipient: str, title: str, body: str, delivery_id: str, now_ms: int
) -> str | None:
    """Send one message, with one Message-ID per delivery; returns an error or None. Never raises."""
    message = EmailMessage()
    message["From"], message["To"] = server.sender, recipient
    message["Subject"] = " ".join(title.split())
    message["Date"] = formatdate(now_ms / 1000)
    message["Message-ID"] = f"<{delivery_id}@{server.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(body)
    message.add_alternative(to_html(body), subtype="html")
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.to_thread(_send, server, message)
    except TimeoutError:
        return f"the mail server {server.host} did not answer in time"
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (0, b""))
        return f"the mail server refused the recipient: {code} {_to_text(text)}"
    except smtplib.SMTPResponseException as error:
        return f"the mail server answered {error.smtp_code} {_to_text(error.smtp_error)}"
    except (smtplib.SMTPException, OSError, ValueError) as error:
        return f"the mail could not be sent through {server.host}: {plain_reason(error)}"[:300]
    return None


def plain_reason(error: Exception) -> str:
    """Why a connection failed, without numbers of the system: "connection refused"."""
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, ssl.SSLError):
        detail = getattr(error, "verify_message", "") or getattr(error, "reason", None) or "TLS failed"
        return f"no secure connection: {detail.replace('_', ' ').lower()}"
    code = getattr(error, "errno", None)
    return os.strerror(code).lower() if code else str(error) or type(error).__name__


def to_html(text: str) -> str:
    """Paragraphs, the first line of each bold; an address at the end of a line is the link of the line."""
    text = _LINKED.sub(r'<a href="\2">\1</a>', escape(text))
    paragraphs = (re.sub("^.*", r"<b>\g<0></b>", part).replace("\n", "<br>") for part in text.split("\n\n"))
    return "".join(f"<p>{part}</p>" for part in paragraphs)


def _send(server: SmtpServer, message: EmailMessage) -> None:
    context = ssl.create_default_context()
    connect = partial(smtplib.SMTP_SSL, context=context) if server.implicit_tls else smtplib.SMTP
    with connect(server.host, server.port, timeout=STEP_TIMEOUT_S) as client:
        client.ehlo()
        if not server.implicit_tls and client.has_extn("starttls"):
            client.starttls(context=context)
            client.ehlo()
        elif server.user and not server.implicit_tls:
            raise smtplib.SMTPException(
                "the server offers no TLS, and the password is not sent without it; use smtps://"
            )
        if server.user:
            client.login(server.user, server.password)
        client.send_message(message)


def _to_text(reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    return " ".join(text.split())[:200]
