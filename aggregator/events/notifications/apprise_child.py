"""Child process that sends one notification through Apprise, then ends.

It reads one JSON object from standard input and writes one to standard output. An audit hook, which no code
of this process can remove, refuses what a notification does not need: connections to addresses that are not
public, programs, writing to files, and reading files other than the libraries. Redirects and second look-ups
of a name are covered by it too.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from typing import Any

from aggregator.events.notifications.addresses import is_public_address

NOT_INSTALLED = "Apprise is not installed: pip install 'aggregator[notify]'"
REFUSED = "the address {} is not public (webhook_allow_private_addresses allows others)"
MAX_REASON_CHARS = 300
_URL = re.compile(r"(https?://[^\s()]+)")
_MARKUP = re.compile(r"([\\*_`\[\]])")
_FORBIDDEN_PREFIXES = ("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty.")
_FORBIDDEN_EVENTS = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "ctypes.dlopen"}
)
_LIBRARIES = tuple({os.path.realpath(path) + os.sep for path in (sys.prefix, sys.base_prefix)})
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


class Guard:
    """The audit hook. ``refused``: the last address that was refused."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self.refused = ""

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise PermissionError for a forbidden operation."""
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            self._check_address(arguments[1])
        elif event == "open":
            self._check_file(arguments[0], arguments[2])
        elif event in _FORBIDDEN_EVENTS or event.startswith(_FORBIDDEN_PREFIXES):
            raise PermissionError(f"{event} is not allowed here")

    def _check_file(self, path: object, flags: object) -> None:
        if isinstance(path, int):  # a file that is open already
            return
        if isinstance(flags, int) and flags & _WRITE_FLAGS:
            raise PermissionError("writing files is not allowed here")
        if not os.path.realpath(os.fsdecode(str(path))).startswith(_LIBRARIES):
            raise PermissionError("reading this file is not allowed here")

    def _check_address(self, address: object) -> None:
        host = address[0] if isinstance(address, tuple) and address else ""
        if self._allow_private and host:
            return
        # Names are refused as well: they would be resolved after this check.
        if not isinstance(host, str) or not is_public_address(host):
            self.refused = str(host)
            raise PermissionError(REFUSED.format(host))


class LastWarning(logging.Handler):
    """Keeps the last warning of Apprise, and the status or socket error that it logs only for debugging."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = self.detail = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        message = record.getMessage()
        if record.levelno >= logging.WARNING:
            self.text = message
        elif message.startswith("Socket Exception"):
            # The cause is at the end: HTTPConnectionPool(...): ... (Caused by X("HTTPConnection(...): cause")
            self.detail = message.rpartition("Caused by ")[2].rpartition("): ")[2].strip("\"')")


def main() -> None:
    """Send the notification of standard input; write ``{"error": null}`` or the reason to standard output."""
    request = json.load(sys.stdin)
    try:
        error = send(
            request["url"], request["title"], request["body"], allow_private=request["allow_private"]
        )
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    json.dump({"error": error[:MAX_REASON_CHARS] if error else None}, sys.stdout)


def send(url: str, title: str, body: str, *, allow_private: bool) -> str | None:
    """Send one notification; returns None, or why it failed. Installs the audit hook."""
    try:
        import apprise
    except ImportError:
        return NOT_INSTALLED
    log = LastWarning()
    logging.getLogger("apprise").addHandler(log)
    logging.getLogger("apprise").setLevel(logging.DEBUG)
    asset = apprise.AppriseAsset(
        app_id="aggregator",
        app_desc="News aggregator",
        app_url="",
        http_redirects=False,
        async_mode=False,
        allow_templates=False,
        image_url_mask="",
        image_url_logo="",
    )
    service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if service is None:
        return log.text or "Apprise does not accept this URL; compare it with the example of the service"
    guard = Guard(allow_private=allow_private)
    sys.addaudithook(guard)
    is_markdown = service.notify_format == apprise.NotifyFormat.MARKDOWN
    sender = apprise.Apprise(asset=asset)  # it converts the body, which a service alone does not
    sender.add(service)
    if sender.notify(
        body=to_markdown(body) if is_markdown else body,
        title=title,
        body_format=apprise.NotifyFormat.MARKDOWN if is_markdown else apprise.NotifyFormat.TEXT,
    ):
        return None
    if guard.refused:
        return REFUSED.format(guard.refused)
    return " ".join(filter(None, (log.text, log.detail))) or "the service did not accept the notification"


def to_markdown(text: str) -> str:
    """Plain text as Markdown: lines stay lines, and addresses are links.

    Apprise's own conversion escapes the dots of an address, which is then no link in Teams.
    """
    return "\n\n".join(_markdown_line(line) for line in text.splitlines() if line)


def _markdown_line(line: str) -> str:
    parts = _URL.split(line)  # text and addresses in turn
    return "".join(f"[{_escaped(p)}]({p})" if i % 2 else _escaped(p) for i, p in enumerate(parts))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


if __name__ == "__main__":
    main()
