"""Parsing of query parameters: unknown and repeated ones are rejected, values are converted and validated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TypeVar

import msgspec
from aiohttp import web

from aggregator.contract.decoding import convert_strings, to_single_line
from aggregator.errors import InvalidInput

T = TypeVar("T")
# The plus sign of a UTC offset, if not percent-encoded, arrives as a space.
_UNESCAPED_PLUS = re.compile(r"(T[\d:.]{1,20}) (\d\d:\d\d)$")


def parse_query(request: web.Request, struct_type: type[T]) -> T:
    """The query parameters as a ``struct_type``. Raises InvalidInput naming the parameter."""
    return parse_pairs(request.query.items(), struct_type)


def parse_pairs(pairs: Iterable[tuple[str, str]], struct_type: type[T]) -> T:
    """As ``parse_query``, for (name, value) pairs."""
    known = _names(struct_type)  # type: ignore[arg-type]
    values: dict[str, str] = {}
    for name, value in pairs:
        shown = to_single_line(name)[:80]
        if name not in known:
            allowed = ", ".join(known) if known else "none"
            raise InvalidInput(f"{shown}: unknown query parameter; allowed: {allowed}.", field=shown)
        if name in values:
            raise InvalidInput(f"{shown}: query parameter given twice.", field=shown)
        values[name] = _UNESCAPED_PLUS.sub(r"\1+\2", value)
    return convert_strings(values, struct_type)


@cache  # msgspec evaluates the annotations at each call: a tenth of the processor time of a single post
def _names(struct_type: type) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(struct_type))
