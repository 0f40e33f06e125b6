"""All errors of a JSON body, of query parameters or of form fields, with their places and reasons. Pure.

msgspec stops at the first error. A rejected input is therefore read a second time, member by member: each
value is decoded again at most once per level of nesting of its type (3 at most), without building objects
for values that no field has (``msgspec.Raw``), so the cost stays linear in the size of the input.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from aggregator.errors import InvalidInput

MAX_ERRORS = 50
# Reasons of single errors, the codes of ``errors`` in a problem. Rules of the handlers use them as well.
REASONS = {
    "wrong_type": "The value has another JSON type than expected.",
    "missing": "A required member or parameter is missing or empty.",
    "unknown": "There is no member or parameter of this name.",
    "repeated": "The member or parameter is given more than once.",
    "not_allowed": "The value is not one of the allowed ones.",
    "too_long": "The text or list is too long.",
    "too_short": "The text or list is too short.",
    "out_of_range": "The number or time is outside the allowed range.",
    "bad_format": "The text does not have the expected format.",
    "bad_json": "The body is not JSON in UTF-8.",
    "invalid": "The value breaks another rule, which the detail states.",
}

_MESSAGE_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<where>.*)`)?$", re.DOTALL)
_NAMED_FIELD = re.compile(r"(?P<what>unknown|required) field `(?P<name>.*)`", re.DOTALL)
# The first part that a message of msgspec contains decides.
_REASON_OF_PART = dict.fromkeys(("RFC3339", "timezone", "regex"), "bad_format")
_REASON_OF_PART |= {"of length <=": "too_long", "of length >=": "too_short", "enum value": "not_allowed"}
_REASON_OF_PART |= dict.fromkeys(("out of range", " <= ", " >= "), "out_of_range")
_TYPE_DESCRIPTIONS = {
    "str": "a string", "int": "an integer", "float": "a number", "bool": "a boolean", "object": "an object",
    "array": "an array", "null": "null", "datetime": "an RFC 3339 time",
}  # fmt: skip


def combined(errors: Sequence[InvalidInput]) -> InvalidInput:
    """The first error, with the others attached."""
    first, *others = errors
    first.others = tuple(others)
    return first


def body_error(data: bytes, type_: Any, first: msgspec.ValidationError) -> InvalidInput:
    """All errors of JSON ``data`` as a ``type_``; ``first``: that of msgspec.

    Only ``first``, if the data is not JSON after it or if a second member of the same name hides it.
    """
    found: list[InvalidInput] = []
    try:
        for error in islice(_body_errors(msgspec.Raw(data), type_, "", ()), MAX_ERRORS):
            found.append(error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found.clear()
    leading = _first_error(first, type_)
    return combined(sorted(found, key=lambda error: error.field != leading.field) or [leading])


def parameters_error(
    values: Mapping[str, str], type_: Any, noun: str, earlier: Sequence[InvalidInput] = ()
) -> InvalidInput | None:
    """All errors of parameters or form fields (``noun``), after ``earlier``; None without any."""
    found = [*earlier, *islice(_parameter_errors(values, type_, noun), MAX_ERRORS)][:MAX_ERRORS]
    return combined(found) if found else None


def _first_error(error: msgspec.ValidationError, type_: Any) -> InvalidInput:
    match = _MESSAGE_PATH.fullmatch(str(error))
    where = (match["where"] if match else None) or ""
    named = _NAMED_FIELD.search(match["what"] if match else "")
    if named is None:
        return _leaf_error(error, None, printable(where) if where else "body", None)
    field = ".".join(filter(None, (where, printable(named["name"]))))
    if named["what"] == "required":
        return InvalidInput(f"{field}: required field is missing.", field=field, reason="missing")
    known = ", ".join(known.encode_name for known in struct_fields(type_)) if not where else ""
    allowed = f"; allowed: {known}" if known else ""
    return InvalidInput(f"{field}: unknown field{allowed}.", field=field, reason="unknown")


def printable(name: str) -> str:
    """A name from a request, without line breaks and control characters, for logs and responses."""
    return "".join(char if char.isprintable() else "?" for char in name[:80]) or '""'


def _parameter_errors(values: Mapping[str, str], type_: Any, noun: str) -> Iterator[InvalidInput]:
    fields = {field.encode_name: field for field in struct_fields(type_)}
    yield from _unknown(values, fields, noun, "", ())
    for name, field in fields.items():
        if name not in values:
            if field.required:
                yield InvalidInput(f"{name}: required {noun} is missing.", field=name, reason="missing")
            continue
        try:
            msgspec.convert(values[name], field.type, strict=False)
        except msgspec.ValidationError as error:
            yield _leaf_error(error, field.type, name, None)


def _body_errors(
    raw: msgspec.Raw, type_: Any, field: str, path: tuple[str | int, ...]
) -> Iterator[InvalidInput]:
    """The errors of one value; ``field``: its name in messages, "" for the body; ``path``: its place."""
    try:
        json_decoder(type_).decode(raw)
    except msgspec.ValidationError as error:
        match = _MESSAGE_PATH.fullmatch(str(error))
        kind = bytes(raw).lstrip()[:1]
        struct_type, item_type = _arms(type_)
        if kind == b"{" and struct_type is not None:
            yield from _object_errors(raw, struct_type, field, path)
        elif kind == b"[" and item_type is not None and match is not None and match["where"]:
            for index, item in enumerate(json_decoder(list[msgspec.Raw]).decode(raw)):
                yield from _body_errors(item, item_type, f"{field}[{index}]", (*path, index))
        else:
            yield _leaf_error(error, type_, field or "body", path)


def _object_errors(
    raw: msgspec.Raw, struct_type: Any, field: str, path: tuple[str | int, ...]
) -> Iterator[InvalidInput]:
    members = json_decoder(dict[str, msgspec.Raw]).decode(raw)
    fields = {known.encode_name: known for known in struct_fields(struct_type)}
    prefix = f"{field}." if field else ""
    for name, known in fields.items():
        shown, place = prefix + name, (*path, name)
        if name in members:
            yield from _body_errors(members[name], known.type, shown, place)
        elif known.required:
            problem = f"{shown}: required field is missing."
            yield InvalidInput(problem, field=shown, reason="missing", path=place)
    yield from _unknown(members, fields, "field", prefix, path)


def _unknown(
    given: Mapping[str, Any], known: Mapping[str, Any], noun: str, prefix: str, path: tuple[str | int, ...]
) -> Iterator[InvalidInput]:
    allowed = f"; allowed: {', '.join(known) or 'none'}" if not prefix else ""
    for name in given:
        if name not in known:
            shown = prefix + printable(name)
            yield InvalidInput(
                f"{shown}: unknown {noun}{allowed}.", field=shown, reason="unknown", path=(*path, name[:80])
            )
            allowed = ""


def _leaf_error(
    error: msgspec.ValidationError, type_: Any, field: str, path: tuple[str | int, ...] | None
) -> InvalidInput:
    match = _MESSAGE_PATH.fullmatch(str(error))
    message = match["what"] if match else str(error)
    if "enum value" in message and (choices := _allowed_values(type_)):
        sentence, reason = f"expected one of {', '.join(choices)}", "not_allowed"
    else:
        found = (reason for part, reason in _REASON_OF_PART.items() if part in message)
        sentence, reason = _plain_sentence(message), next(found, "wrong_type")
    return InvalidInput(f"{field}: {sentence}.", field=field, reason=reason, path=path)


def _plain_sentence(message: str) -> str:
    """The message of msgspec, with JSON type names and an example where one helps."""
    if "RFC3339" in message:
        return "expected an RFC 3339 time with an existing date, such as 2026-11-20T08:00:00Z"
    if "timezone" in message:
        return "the UTC offset is missing; write e.g. 2026-11-20T08:00:00Z or 2026-11-20T09:00:00+01:00"
    if "regex" in message:
        return 'expected a language tag such as "en" or "zh-Hant"'
    message = message[:1].lower() + message[1:]
    message = message.replace("of length <= ", "of at most ").replace("of length >= ", "of at least ")
    words = re.sub(
        r"`([^`]*)`", lambda m: " or ".join(_TYPE_DESCRIPTIONS.get(t, t) for t in m[1].split(" | ")), message
    )
    if "of at most" in words or "of at least" in words:
        words += " item" if "array" in words else " character"
        words += "s" * (" 1 " not in words)
    return (
        words.replace(" or null, got", ", got")
        .replace(" <= ", " of at most ")
        .replace(" >= ", " of at least ")
    )


@functools.cache  # 950 us, which a batch of short lines with unknown fields would cost per line
def struct_fields(struct_type: Any) -> Sequence[msgspec.structs.FieldInfo]:
    """Fields of a Struct type; empty for any other type."""
    is_struct = isinstance(struct_type, type) and issubclass(struct_type, msgspec.Struct)
    return msgspec.structs.fields(struct_type) if is_struct else ()


@functools.cache
def json_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, made once."""
    return msgspec.json.Decoder(type_)


@functools.cache
def _arms(type_: Any) -> tuple[Any, Any]:
    """The Struct type and the type of list items that a value of ``type_`` may have, None without."""
    if get_origin(type_) is Annotated:
        return _arms(get_args(type_)[0])
    if get_origin(type_) in (Union, UnionType):
        arms = [_arms(arm) for arm in get_args(type_)]
        return next((s for s, _ in arms if s), None), next((i for _, i in arms if i), None)
    if get_origin(type_) is list:
        return None, get_args(type_)[0]
    return (type_ if struct_fields(type_) else None), None


@functools.cache
def _allowed_values(type_: Any) -> list[str]:
    """The values of a Literal type; empty for any other type."""
    described = msgspec.inspect.type_info(type_)
    if isinstance(described, msgspec.inspect.Metadata):
        described = described.type
    for member in described.types if isinstance(described, msgspec.inspect.UnionType) else (described,):
        if isinstance(member, msgspec.inspect.LiteralType):
            return [str(value) for value in member.values]
    return []
