r"""Log format: one record per line on standard error, as text or as JSON, safe for untrusted text.

As text, control characters are escaped (``\n``, ``\x1b``), so an article or a request cannot forge a second
record; the lines of a traceback begin with ``  | ``. As JSON, everything outside ASCII is escaped. A record
made while a request is served carries its request id.
"""

from __future__ import annotations

import json
import logging
import re
import sys

from aggregator.log_limits import current_request_id
from aggregator.time_units import format_rfc3339

CONTINUATION_PREFIX = "\n  | "
# C0 and C1 control characters, Unicode line separators, and unpaired surrogates.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def configure_logging(level: str, log_format: str = "text", *, with_process: bool = False) -> None:
    """Log records of ``level`` and above; ``with_process`` adds the process id to text records."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if log_format == "json" else TextFormatter(with_process=with_process)
    )
    logging.basicConfig(level=level, handlers=[handler])
    if level != "DEBUG":
        # APScheduler logs every detector run, and warns of each that starts while one is running. Bulk
        # loads cause those; they are counted in the metrics, and an alert rule limits them.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        logging.getLogger("matplotlib").setLevel(logging.WARNING)  # logs the fonts that it finds
        logging.getLogger("gensim").setLevel(logging.WARNING)  # logs each second of a training


class TextFormatter(logging.Formatter):
    """``time LEVEL [process] logger: message [request id]``."""

    def __init__(self, *, with_process: bool = False) -> None:
        process = " %(process)d" if with_process else ""
        super().__init__(f"%(asctime)s %(levelname)s{process} %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  name of the base class
        """The record on one line, with the request id unless the message contains it."""
        line = escape_controls(super().formatMessage(record))
        request = current_request_id.get()
        return f"{line} [{request}]" if request and request not in line else line

    def formatException(self, ei: object) -> str:  # noqa: N802  name of the base class
        """The traceback as continuation lines."""
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]  # typeshed: a tuple
        return CONTINUATION_PREFIX[1:] + CONTINUATION_PREFIX.join(map(escape_controls, lines))


class JsonFormatter(logging.Formatter):
    """One JSON object per record.

    Fields: time (RFC 3339, UTC), level, logger, process, message, request_id?, error?, and those that the
    caller logged as ``extra={"fields": {...}}``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one JSON object on one line."""
        entry: dict[str, object] = {
            "time": format_rfc3339(int(record.created * 1000)),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if request := current_request_id.get():
            entry["request_id"] = request
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry | getattr(record, "fields", {}), default=str)


def escape_controls(text: str) -> str:
    """``text`` on one line, with control characters escaped."""
    return _CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], text)
