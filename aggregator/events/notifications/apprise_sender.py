"""Sends one notification through Apprise in a child process, which is killed after a time limit.

A thread cannot be killed, and the address rules must hold for every connection that the library opens: the
child installs them for its whole process (``apprise_child.py``). It costs about 0.5 s of processor time and
45 MB for the time of one notification, and nothing between notifications.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys

from aggregator.events.notifications.apprise_child import NOT_INSTALLED
from aggregator.events.notifications.channels import without_secrets

TIMEOUT_S = 20.0
CHILD_MODULE = "aggregator.events.notifications.apprise_child"
MAX_CHILDREN = 2
# No proxies, no .netrc, no credentials of the service.
CHILD_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


class AppriseSender:
    """Starts at most ``MAX_CHILDREN`` children at once; further notifications wait."""

    def __init__(self, *, allow_private: bool, timeout_s: float = TIMEOUT_S) -> None:
        self._allow_private, self._timeout_s = allow_private, timeout_s
        self._slots = asyncio.Semaphore(MAX_CHILDREN)

    async def send(self, url: str, title: str, body: str) -> str | None:
        """Send one notification; returns None, or one sentence of error. Never raises, except when cancelled.

        The error contains no part of the URL.
        """
        if not is_installed():
            return NOT_INSTALLED
        request = {"url": url, "title": title, "body": body, "allow_private": self._allow_private}
        async with self._slots:
            try:
                reply = await self._run_child(json.dumps(request).encode())
                error = json.loads(reply)["error"]
            except TimeoutError:
                return f"no answer within {self._timeout_s:g} s"
            except (OSError, ValueError, KeyError):
                return "the process that sends notifications failed; see the log of the service"
        return without_secrets(" ".join(str(error).split()), url) if error else None

    async def _run_child(self, request: bytes) -> bytes:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", CHILD_MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # it may quote the URL
            env=CHILD_ENVIRONMENT,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self._timeout_s):
                reply, _ = await child.communicate(request)
                return reply
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                await child.wait()


def is_installed() -> bool:
    """Whether the extra ``notify`` is installed."""
    return importlib.util.find_spec("apprise") is not None
