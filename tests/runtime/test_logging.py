"""Log records: one line each whatever they contain, with the request id."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.log_limits import current_request_id
from aggregator.runtime.logging import JsonFormatter, TextFormatter, escape_controls

FORGED = "no such id\n2026-01-01 00:00:00 ERROR aggregator: all articles are lost\x1b[2J\u2028\x85\ud800"


def record(message: str, *, error: BaseException | None = None, **extra: object) -> logging.LogRecord:
    """A record as ``logging`` creates it; ``extra``: further attributes."""
    created = logging.LogRecord("aggregator.test", logging.WARNING, __file__, 1, message, (), None)
    created.exc_info = (type(error), error, error.__traceback__) if error else None
    for name, value in extra.items():
        setattr(created, name, value)
    return created


def raised_error(message: str) -> Exception:
    """An error with a traceback."""
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


@given(st.text() | st.just(FORGED))
def test_a_message_is_one_line_of_text_and_one_of_json(message: str) -> None:
    """No character of a message ends a line or controls the terminal; JSON preserves the message."""
    text, line = TextFormatter().format(record(message)), JsonFormatter().format(record(message))

    assert text.isprintable() or not escape_controls(message).isprintable()
    assert len(text.splitlines()) == len(line.splitlines()) == 1
    assert "\x1b" not in text + line
    assert line.isascii()
    assert json.loads(line)["message"] == message


def test_an_error_message_cannot_forge_a_record() -> None:
    """Text: continuation lines have a prefix. JSON: the traceback is a field."""
    created = record("it failed", error=raised_error(FORGED))
    first, *others = TextFormatter().format(created).splitlines()
    entry = json.loads(JsonFormatter().format(created))

    assert "WARNING aggregator.test: it failed" in first
    assert others and all(line.startswith("  | ") for line in others)
    assert "ValueError: no such id" in entry["error"]


def test_json_records_have_time_level_and_their_own_fields() -> None:
    """The fields that a log collector indexes."""
    entry = json.loads(
        JsonFormatter().format(record("done", created=1_790_000_000.25, fields={"status": 201}))
    )

    assert entry["time"] == "2026-09-21T14:13:20.250Z"
    assert (entry["level"], entry["logger"], entry["status"]) == ("WARNING", "aggregator.test", 201)
    assert "request_id" not in entry


@pytest.mark.parametrize("formatter", [TextFormatter(with_process=True), JsonFormatter()])
def test_a_record_of_a_request_has_its_id(formatter: logging.Formatter) -> None:
    """The client gets the same id; it is not repeated if the message contains it."""
    token = current_request_id.set("crawler-7.42")
    try:
        assert "crawler-7.42" in formatter.format(record("slow"))
        assert formatter.format(record("request crawler-7.42: slow")).count("crawler-7.42") < 3
    finally:
        current_request_id.reset(token)
    assert "crawler-7.42" not in formatter.format(record("slow"))
