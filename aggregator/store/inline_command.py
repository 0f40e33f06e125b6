"""Single commands to a server on a unix socket, without a client library and its event loop."""

from __future__ import annotations

import socket
from pathlib import Path


def send_command(path: Path, request: bytes) -> bytes | None:
    """Return the first bytes of the reply to an inline command; None if none arrive within 1 s."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(request)
            return connection.recv(64)
        except OSError:
            return None
