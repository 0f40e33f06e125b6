"""Log records: one line each, whatever is in them, with the id of the request that made them."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.request_id import CURRENT_REQUEST_ID
from aggregator.runtime.logging import JsonFormatter, TextFormatter, escape_controls

FORGED = "no such id\n2026-01-01 00:00:00 ERROR aggregator: all articles are lost\x1b[2J\u2028\x85\ud800"


def record(message: str, *, error: BaseException | None = None, **extra: object) -> logging.LogRecord:
    """A record as the library would make it; ``extra`` are attributes of it."""
    made = logging.LogRecord("aggregator.test", logging.WARNING, __file__, 1, message, (), None)
    made.exc_info = (type(error), error, error.__traceback__) if error else None
    for name, value in extra.items():
        setattr(made, name, value)
    return made


def raised(message: str) -> Exception:
    """An error that has a traceback."""
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


@given(st.text() | st.just(FORGED))
def test_a_message_is_one_line_of_text_and_one_of_json(message: str) -> None:
    """No character of a message ends a line or speaks to the terminal, and JSON gives it back as it was."""
    text, line = TextFormatter().format(record(message)), JsonFormatter().format(record(message))

    assert text.isprintable() or not escape_controls(message).isprintable()
    assert len(text.splitlines()) == len(line.splitlines()) == 1
    assert "\x1b" not in text + line
    assert line.isascii()
    assert json.loads(line)["message"] == message


def test_what_an_error_says_cannot_pass_for_a_record() -> None:
    """Text: each further line is marked as part of the record. JSON: it is a field."""
    made = record("it failed", error=raised(FORGED))
    first, *others = TextFormatter().format(made).splitlines()
    told = json.loads(JsonFormatter().format(made))

    assert "WARNING aggregator.test: it failed" in first
    assert others and all(line.startswith("  | ") for line in others)
    assert "ValueError: no such id" in told["error"]


def test_json_names_time_level_process_and_the_fields_of_the_record() -> None:
    """What a log collector indexes."""
    told = json.loads(
        JsonFormatter().format(record("done", created=1_790_000_000.25, fields={"status": 201}))
    )

    assert told["time"] == "2026-09-21T14:13:20.250Z"
    assert (told["level"], told["logger"], told["status"]) == ("WARNING", "aggregator.test", 201)
    assert "request_id" not in told


@pytest.mark.parametrize("form", [TextFormatter(with_process=True), JsonFormatter()])
def test_a_record_of_a_request_carries_its_id(form: logging.Formatter) -> None:
    """Found by the id that the caller was given."""
    named = CURRENT_REQUEST_ID.set("crawler-7.42")
    try:
        assert "crawler-7.42" in form.format(record("slow"))
        assert form.format(record("request crawler-7.42: slow")).count("crawler-7.42") < 3
    finally:
        CURRENT_REQUEST_ID.reset(named)
    assert "crawler-7.42" not in form.format(record("slow"))
