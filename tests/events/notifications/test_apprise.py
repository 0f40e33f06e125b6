"""Notifications through Apprise in its child process, to a receiver on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.events.notifications.apprise_child import Guard
from aggregator.events.notifications.apprise_sender import AppriseSender
from tests.support.hang_limit import HANG_LIMIT_S

pytest.importorskip("apprise", reason="apprise is not installed")


@dataclass
class Receiver:
    """A server of ntfy and Mattermost; it answers with ``status``, and redirects to ``location``."""

    host: str = ""
    status: int = 200
    location: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Keep one call."""
        self.calls.append((request.path, await request.json()))
        headers = {"Location": self.location} if self.location else None
        return web.json_response({"id": "1"}, status=self.status, headers=headers)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on loopback."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    async with TestServer(app) as server:
        receiver.host = f"127.0.0.1:{server.port}"
        yield receiver


def sender(*, allow_private: bool = True) -> AppriseSender:
    """A sender with a time limit for a busy machine."""
    return AppriseSender(allow_private=allow_private, timeout_s=HANG_LIMIT_S)


async def test_a_notification_arrives_as_plain_text(receiver: Receiver) -> None:
    """No markup is interpreted, nothing is added."""
    error = await sender().send(f"ntfy://{receiver.host}/desk", "7 new <b>", "One & two\n\nhttps://x.example")

    assert error is None
    assert receiver.calls == [
        ("/", {"topic": "desk", "title": "7 new <b>", "message": "One & two\n\nhttps://x.example"})
    ]


async def test_private_addresses_are_not_reached(receiver: Receiver) -> None:
    """By literal and by name, without the setting."""
    port = receiver.host.partition(":")[2]
    refused = sender(allow_private=False)
    literal = await refused.send(f"ntfy://{receiver.host}/desk", "T", "B")
    name = await refused.send(f"ntfy://localhost:{port}/desk", "T", "B")

    assert literal == "the address 127.0.0.1 is not public (webhook_allow_private_addresses allows others)"
    assert name is not None and "is not public" in name
    assert receiver.calls == []


async def test_redirects_are_not_followed(receiver: Receiver) -> None:
    """One call, and an error."""
    receiver.status, receiver.location = 307, f"http://{receiver.host}/elsewhere"
    error = await sender().send(f"ntfy://{receiver.host}/desk", "T", "B")

    assert error is not None and len(receiver.calls) == 1


async def test_the_reason_of_a_failure_names_no_secret(receiver: Receiver) -> None:
    """The status of the service, and a URL that Apprise does not understand."""
    receiver.status = 500
    token = "3ccdd113474722377935511fc85d3dd4"
    failed = await sender().send(f"mmost://{receiver.host}/{token}", "T", "B")
    unreadable = await sender().send("tgram://12345secret", "T", "B")

    assert failed is not None and "500" in failed and token not in failed
    assert unreadable is not None and "12345secret" not in unreadable


async def test_a_service_that_does_not_answer_is_given_up() -> None:
    """The child process is killed."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        error = await AppriseSender(allow_private=True, timeout_s=0.05).send(
            f"ntfy://127.0.0.1:{port}/x", "T", "B"
        )

    assert error == "no answer within 0.05 s"


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket(socket.AF_UNIX).connect('/tmp/x')",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('10.0.0.1', 53))",
        "open('/etc/passwd')",
        "open('x', 'w')",
        "import os; os.open('x', os.O_CREAT | os.O_RDWR)",
        "import os; os.system('true')",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.remove('x')",
    ],
)
def test_the_child_may_only_call_public_addresses(code: str) -> None:
    """The audit hook holds for all code of the process."""
    program = (
        "import sys; from aggregator.events.notifications.apprise_child import Guard; "
        f"sys.addaudithook(Guard(allow_private=False)); {code}"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"PATH": os.defpath}
    )

    assert "PermissionError" in result.stderr and "not" in result.stderr


def test_public_addresses_are_allowed() -> None:
    """The hook raises nothing for them, and nothing for the libraries."""
    guard = Guard(allow_private=False)
    guard("socket.connect", (None, ("8.8.8.8", 443)))
    guard("open", (os.__file__, "r", os.O_RDONLY))

    assert guard.refused == ""
    with pytest.raises(PermissionError):
        guard("socket.connect", (None, ("localhost", 443)))
