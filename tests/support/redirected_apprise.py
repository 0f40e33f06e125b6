"""The child process that sends through Apprise, with every host name resolved to a receiver on loopback.

Run as ``CHILD_MODULE`` of the sender, with the receiver's port in ``RECEIVER_PORT``: the certificate of the
receiver and the names of the services are real, only their addresses are not.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from aggregator.events.notifications.apprise_child import main


def receiver_address(*_: Any, **__: Any) -> list[tuple[Any, ...]]:
    """The answer of ``socket.getaddrinfo`` for any name."""
    address = ("127.0.0.1", int(os.environ["RECEIVER_PORT"]))
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]


if __name__ == "__main__":
    socket.getaddrinfo = receiver_address
    main()
