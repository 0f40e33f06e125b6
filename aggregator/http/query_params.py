"""Query parameters and cursors. Unknown and repeated parameters are rejected, values converted and validated.

A cursor is the sort key of a page's last entry, base64-encoded; one of another order than that of time begins
with the name of its order and a dot.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web

from aggregator.contract.decoding import check_path_id, convert_strings, to_single_line
from aggregator.contract.validation import MAX_ERRORS, parameters_error
from aggregator.errors import InvalidInput
from aggregator.events.selection import EventOrder, PageKey
from aggregator.queries.search import ResultKey

T = TypeVar("T")
Key = TypeVar("Key")
Unsigned = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]

_event_keys: msgspec.json.Decoder[PageKey] = msgspec.json.Decoder(PageKey)
_result_keys: msgspec.json.Decoder[ResultKey] = msgspec.json.Decoder(tuple[Unsigned, Unsigned])
# The plus sign of a UTC offset, if not percent-encoded, arrives as a space.
_UNESCAPED_PLUS = re.compile(r"(T[\d:.]{1,20}) (\d\d:\d\d)$")


@contextmanager
def errors_in_parameters() -> Iterator[None]:
    """Mark errors of input that are raised within as errors of parameters, not of the body."""
    try:
        yield
    except InvalidInput as error:
        _place_in_parameters(error)
        raise


def path_id(request: web.Request) -> str:
    """The id in the path of a request. Raises InvalidInput."""
    return check_path_id(request.match_info["id"])


def parse_query(request: web.Request, struct_type: type[T]) -> T:
    """The query parameters as a ``struct_type``. Raises InvalidInput naming the parameters."""
    try:
        if not request.query_string and _is_optional(struct_type):  # type: ignore[arg-type]
            return struct_type()
        return parse_pairs(request.query.items(), struct_type)
    except InvalidInput as error:
        _place_in_parameters(error)
        raise


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


def _place_in_parameters(error: InvalidInput) -> None:
    for part in (error, *error.others):
        part.place = "parameter"


def _misplaced(name: str, is_known: bool, known: tuple[str, ...]) -> InvalidInput:
    if is_known:
        return InvalidInput(f"{name}: query parameter given twice.", field=name, reason="repeated")
    allowed = ", ".join(known) if known else "none"
    return InvalidInput(f"{name}: unknown query parameter; allowed: {allowed}.", field=name, reason="unknown")


@cache
def _is_optional(struct_type: type) -> bool:
    return not any(field.required for field in msgspec.structs.fields(struct_type))


@cache  # msgspec evaluates the annotations at each call: a tenth of the processor time of a single post
def _names(struct_type: type) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(struct_type))


def encode_cursor(page_key: PageKey | ResultKey, order: EventOrder = "time") -> str:
    """The cursor of the page after ``page_key``."""
    encoded = base64.urlsafe_b64encode(msgspec.json.encode(page_key)).rstrip(b"=").decode()
    return encoded if order == "time" else f"{order}.{encoded}"


def decode_cursor(cursor: str, order: EventOrder = "time") -> PageKey:
    """The sort key of a cursor of events. Raises InvalidInput, also for a cursor of another order."""
    named, dot, encoded = cursor.rpartition(".")
    if (dot and named != order) or (not dot and order != "time"):
        raise InvalidInput(
            f"cursor: it belongs to another order than sort={order}; repeat `sort` with each page.",
            field="cursor",
        )
    return _decode(_event_keys, encoded)


def decode_result_cursor(cursor: str) -> ResultKey:
    """The sort key of a cursor of a search. Raises InvalidInput."""
    return _decode(_result_keys, cursor)


def _decode(keys: msgspec.json.Decoder[Key], cursor: str) -> Key:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return keys.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise InvalidInput(
            "cursor: invalid cursor; use `next` of the previous page.", field="cursor"
        ) from None
