"""Query parameters: all are known, none is given twice, each has its type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from aiohttp import web

from aggregator.contract.decoding import convert, one_line
from aggregator.errors import BadInput

T = TypeVar("T")
# A plus sign that was not escaped arrives as a space.
_LOST_PLUS = re.compile(r"(T\S+) (\d\d:\d\d)$")


def parse(request: web.Request, kind: type[T]) -> T:
    """The query as a Struct of type ``kind``. Raises BadInput naming the parameter."""
    return convert_pairs(request.query.items(), kind)


def convert_pairs(pairs: Iterable[tuple[str, str]], kind: type[T]) -> T:
    """As ``parse``, for names and values from elsewhere."""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]  # type: ignore[arg-type]
    values: dict[str, str] = {}
    for name, value in pairs:
        shown = one_line(name)[:80]
        if name not in known:
            takes = ", ".join(known) if known else "none"
            raise BadInput(
                f"{shown}: there is no query parameter of this name here (known: {takes}).", field=shown
            )
        if name in values:
            raise BadInput(f"{shown}: this query parameter is given twice.", field=shown)
        values[name] = _LOST_PLUS.sub(r"\1+\2", value)
    return convert(values, kind)
