"""Parsing of query parameters: unknown and repeated ones are rejected, values are converted and validated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import msgspec
from aiohttp import web

from aggregator.contract.decoding import check_path_id, convert_strings, to_single_line
from aggregator.contract.validation import MAX_ERRORS, parameters_error
from aggregator.errors import InvalidInput

T = TypeVar("T")
# The plus sign of a UTC offset, if not percent-encoded, arrives as a space.
_UNESCAPED_PLUS = re.compile(r"(T[\d:.]{1,20}) (\d\d:\d\d)$")


@contextmanager
def errors_in_parameters() -> Iterator[None]:
    """Mark errors of input that are raised within as errors of parameters, not of the body."""
    try:
        yield
    except InvalidInput as error:
        for part in (error, *error.others):
            part.place = "parameter"
        raise


def path_id(request: web.Request) -> str:
    """The id in the path of a request. Raises InvalidInput."""
    return check_path_id(request.match_info["id"])


def parse_query(request: web.Request, struct_type: type[T]) -> T:
    """The query parameters as a ``struct_type``. Raises InvalidInput naming the parameters."""
    with errors_in_parameters():
        return parse_pairs(request.query.items(), struct_type)


def parse_pairs(pairs: Iterable[tuple[str, str]], struct_type: type[T]) -> T:
    """As ``parse_query``, for (name, value) pairs."""
    known = _names(struct_type)  # type: ignore[arg-type]
    values: dict[str, str] = {}
    found: list[InvalidInput] = []
    for name, value in pairs:
        if name in known and name not in values:
            values[name] = _UNESCAPED_PLUS.sub(r"\1+\2", value)
        elif len(found) < MAX_ERRORS:
            found.append(_misplaced(to_single_line(name)[:80], name in known, known))
    if found and (error := parameters_error(values, struct_type, "query parameter", found)):
        raise error
    return convert_strings(values, struct_type)


def _misplaced(name: str, is_known: bool, known: tuple[str, ...]) -> InvalidInput:
    if is_known:
        return InvalidInput(f"{name}: query parameter given twice.", field=name, reason="repeated")
    allowed = ", ".join(known) if known else "none"
    return InvalidInput(f"{name}: unknown query parameter; allowed: {allowed}.", field=name, reason="unknown")


@cache  # msgspec evaluates the annotations at each call: a tenth of the processor time of a single post
def _names(struct_type: type) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(struct_type))
