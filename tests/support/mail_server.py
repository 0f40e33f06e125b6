"""SMTP server on loopback that keeps what it receives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiosmtpd.smtp import SMTP


class MailServer:
    """What a server received on ``port``. ``answers``: replies other than 250 OK, by command."""

    def __init__(self) -> None:
        self.envelopes: list[Any] = []
        self.answers: dict[str, str] = {}
        self.port = 0

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        """Answer a recipient."""
        if "RCPT" in self.answers:
            return self.answers["RCPT"]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        """Keep a message."""
        if "DATA" in self.answers:
            return self.answers["DATA"]
        self.envelopes.append(envelope)
        return "250 OK"


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailServer]:
    """A running server, in the loop of the caller."""
    received = MailServer()
    listening = await asyncio.get_running_loop().create_server(lambda: SMTP(received), "127.0.0.1", 0)
    async with listening:
        received.port = listening.sockets[0].getsockname()[1]
        yield received
