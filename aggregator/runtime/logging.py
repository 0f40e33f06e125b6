"""Log records go to standard error: one line each as text, or one JSON object each.

Both are safe to show strangers' words in. As text, control characters are written out (``\\n``, ``\\x1b``), so
nobody can make up a second record; what an error adds stands on lines of its own that begin with ``  | ``. As
JSON everything outside ASCII is escaped. A record made while a request is served carries its request id.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time

from aggregator.http.request_id import CURRENT_REQUEST_ID

FORMATS = ("text", "json")
CONTINUATION_PREFIX = "\n  | "
# Controls of both blocks, the line separators of Unicode, and halves of surrogate pairs.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def configure_logging(level: str, log_format: str = "text", *, with_process: bool = False) -> None:
    """Show records from ``level`` on, as ``form``; ``with_process`` names the worker that wrote a text line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if log_format == "json" else TextFormatter(with_process=with_process)
    )
    logging.basicConfig(level=level, handlers=[handler])
    if level != "DEBUG":
        # It reports every tick of the detector, and warns of each that comes while one is under way: a bulk load
        # makes those, they are counted, and an alert rule says when there are too many.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of the fonts it found


class TextFormatter(logging.Formatter):
    """``time LEVEL [process] logger: message [request id]``."""

    def __init__(self, *, with_process: bool = False) -> None:
        process = " %(process)d" if with_process else ""
        super().__init__(f"%(asctime)s %(levelname)s{process} %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = escape_controls(super().formatMessage(record))
        request = CURRENT_REQUEST_ID.get()
        return f"{line} [{request}]" if request and request not in line else line

    def formatException(self, ei: object) -> str:
        return _indent_continuation(super().formatException(ei))  # type: ignore[arg-type]

    def formatStack(self, stack_info: str) -> str:
        return _indent_continuation(stack_info)


class JsonFormatter(logging.Formatter):
    """Fields: time (RFC 3339, UTC), level, logger, process, message, request_id?, error?, and those of ``fields``.

    A record's own fields are what was logged as ``extra={"fields": {...}}``.
    """

    def format(self, record: logging.LogRecord) -> str:
        seconds, ms = divmod(int(record.created * 1000), 1000)
        told: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if request := CURRENT_REQUEST_ID.get():
            told["request_id"] = request
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told | getattr(record, "fields", {}), default=str)


def escape_controls(text: str) -> str:
    """``text`` on one line, its control characters written out."""
    return _CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], text)


def _indent_continuation(text: str) -> str:
    lines = (escape_controls(line) for line in text.split("\n"))
    return CONTINUATION_PREFIX[1:] + CONTINUATION_PREFIX.join(lines)
