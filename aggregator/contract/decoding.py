"""Decoding and validation of requests: JSON or query strings to structs, structs to domain values. Pure.

Every rejection is an InvalidInput with one sentence that names the field. The command line decodes its input
lines with the same functions.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from aggregator.analysis.article_id import MAX_ID_BYTES, canonical_url, derive_id, validate_id
from aggregator.contract.requests import ArticleIn
from aggregator.domain import Article
from aggregator.errors import InvalidInput

T = TypeVar("T")
DecodeFunction = Callable[[bytes], T]

# Dates outside this range are typing errors or scraping errors.
MIN_YEAR, MAX_YEAR = 1700, 2199
UTF8_BOM = b"\xef\xbb\xbf"

# Control characters other than white space: illegal in XML and harmful in a terminal.
_CONTROL_CHARS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffe\uffff]")
_BYTE_OFFSET = re.compile(r" \(byte (\d+)\)")
_MESSAGE_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<where>.*)`)?$", re.DOTALL)
_NAMED_FIELD = re.compile(r"(?P<what>unknown|required) field `(?P<name>.*)`", re.DOTALL)
_TYPE_DESCRIPTIONS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
    "datetime": "an RFC 3339 time",
}


def decode_article(data: bytes) -> Article:
    """One article from one JSON object. Raises InvalidInput."""
    if data.lstrip().startswith(b"["):
        raise InvalidInput(
            "body: expected one article, got an array; "
            "send several articles as JSON lines, one object per line.",
            field="body",
        )
    return to_article(decode(data, _decode_article_in))


def decode(data: bytes, decoder: DecodeFunction[T]) -> T:
    """Apply a msgspec decoder to ``data``.

    Raises InvalidInput for everything that the decoder raises, and for a member that is named twice.
    """
    data = data.removeprefix(UTF8_BOM)
    if not data.strip():
        raise InvalidInput("body: empty; expected one JSON object.", field="body")
    if (
        b"\0" in data[:4]
    ):  # JSON in UTF-8 has no zero bytes; UTF-16 of Latin text has one in every second byte
        raise InvalidInput("body: UTF-16 or binary data; expected one JSON object in UTF-8.", field="body")
    try:
        decoded = decoder(data)
        _check_unique_members(data)
    except msgspec.ValidationError as error:
        raise _invalid_input(error, _decoded_type(decoder)) from None
    except RecursionError:
        raise InvalidInput("body: nested too deeply.", field="body") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"body: not valid UTF-8 (byte {error.object[error.start]:#04x}).", field="body"
        ) from None
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"body: not valid JSON ({_malformed_json_reason(error, data)}).", field="body"
        ) from None
    return decoded


def _check_unique_members(data: bytes) -> None:
    """Raise InvalidInput for an object with a member that is named twice.

    msgspec keeps the last one, other readers (a proxy that checks ``source``) the first. It has no option for
    this, so the object is read a second time: 15 us for an article of 3 kB.
    """
    try:
        _member_names_decoder.decode(data.decode())
    except json.JSONDecodeError as error:
        raise InvalidInput(f"body: not valid JSON ({error}).", field="body") from None


def _unique_members(pairs: Sequence[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) == len(pairs):
        return
    names = [name for name, _ in pairs]
    repeated = _printable(next(name for name in names if names.count(name) > 1)) or '""'
    raise InvalidInput(f"{repeated}: given more than once; name each member once.", field=repeated)


_member_names_decoder = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_int=str, parse_float=str, strict=False
)


def convert_strings(values: Mapping[str, str], struct_type: type[T]) -> T:
    """Query parameters or form fields as a ``struct_type``. Raises InvalidInput."""
    try:
        return msgspec.convert(values, struct_type, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid_input(error, struct_type, "query parameter") from None


def to_article(body: ArticleIn, *, for_storage: bool = True) -> Article:
    """The article with its id derived and control characters removed from title, source and text.

    ``for_storage``: False for an article that is not stored; its id is optional. Raises InvalidInput.
    """
    title, text, html = (
        to_single_line(body.title),
        _strip_control_chars(body.text),
        _strip_control_chars(body.html),
    )
    text = text if text.strip() else ""
    html = html if html.strip() and not text else ""
    if not (title or text or html):
        raise InvalidInput("text: the article is empty; give text, html or at least a title.", field="text")
    url = (body.url or "").strip()
    if url and (body.id_ is not None or not for_storage):  # otherwise derive_id validates the address
        canonical_url(url)
    id_ = derive_id(body.id_, url, title, text or html) if for_storage or body.id_ is not None else ""
    return Article(
        id=id_,
        title=title,
        text=text,
        html=html,
        url=url,
        source=to_single_line(body.source),
        published_at_ms=to_unix_ms(body.published_at, "published_at"),
        lang=body.lang or None,
        policy=body.policy or "",
    )


def check_ids(ids: Sequence[str]) -> list[str]:
    """Validated ids of a body. Raises InvalidInput naming the first invalid one."""
    return [validate_id(id_, f"ids[{position}]") for position, id_ in enumerate(ids)]


def check_path_id(id_: str) -> str:
    """The validated id of a path. Raises InvalidInput."""
    if len(id_) > MAX_ID_BYTES:
        raise InvalidInput(f"id: too long; an id has at most {MAX_ID_BYTES} bytes.", field="id")
    return validate_id(id_)


def to_unix_ms(time: datetime | None, field: str) -> int | None:
    """Milliseconds since 1970 UTC. Raises InvalidInput for years outside MIN_YEAR to MAX_YEAR."""
    if time is None:
        return None
    if not MIN_YEAR <= time.year <= MAX_YEAR:
        raise InvalidInput(
            f"{field}: the year {time.year} is not between {MIN_YEAR} and {MAX_YEAR}.", field=field
        )
    return (time - _EPOCH) // timedelta(milliseconds=1)


def to_single_line(text: str | None) -> str:
    """``text`` without control characters and with white space collapsed, for titles and names."""
    return " ".join(_CONTROL_CHARS.sub("", text or "").split())


def to_plain_text(text: str) -> str:
    """``text`` without control characters other than white space, and without it at both ends, for notes."""
    return _strip_control_chars(text).replace("\r\n", "\n").strip()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_decode_article_in: DecodeFunction[ArticleIn] = msgspec.json.Decoder(ArticleIn).decode


def _strip_control_chars(text: str | None) -> str:
    return _CONTROL_CHARS.sub("", text or "")


def _decoded_type(decoder: DecodeFunction[T]) -> object:
    """The type that ``decoder``, a bound ``msgspec.json.Decoder.decode``, produces."""
    return getattr(getattr(decoder, "__self__", None), "type", None)


@functools.cache  # 950 us, which a batch of short lines with unknown fields would cost per line
def _struct_fields(struct_type: object) -> Sequence[msgspec.inspect.Field]:
    """Fields of a Struct type; empty for any other type."""
    described = msgspec.inspect.type_info(struct_type)
    return described.fields if isinstance(described, msgspec.inspect.StructType) else ()


def _invalid_input(error: msgspec.ValidationError, struct_type: object, noun: str = "field") -> InvalidInput:
    """The translated error of msgspec; ``struct_type``: expected type, ``noun``: "field" or similar."""
    match = _MESSAGE_PATH.fullmatch(str(error))
    path = (match["where"] if match else None) or ""
    reason = match["what"] if match else str(error)
    named = _NAMED_FIELD.search(reason)
    if named:
        name = _printable(named["name"]) or '""'
        field = f"{path}.{name}" if path else name
        if named["what"] == "unknown":
            known = ", ".join(field.encode_name for field in _struct_fields(struct_type))
            allowed = f"; allowed: {known}" if known and not path else ""
            return InvalidInput(f"{field}: unknown {noun}{allowed}.", field=field)
        return InvalidInput(f"{field}: required {noun} is missing.", field=field)
    field = _printable(path) or "body"
    choices = _allowed_values(struct_type, field) if "enum value" in reason else []
    if choices:
        return InvalidInput(f"{field}: expected one of {', '.join(choices)}.", field=field)
    return InvalidInput(f"{field}: {_plain_reason(reason)}.", field=field)


def _allowed_values(struct_type: object, name: str) -> list[str]:
    """The values of a Literal field; empty for any other field."""
    for type_ in (field.type for field in _struct_fields(struct_type) if field.encode_name == name):
        for member in type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,):
            if isinstance(member, msgspec.inspect.LiteralType):
                return [str(value) for value in member.values]
    return []


def _plain_reason(reason: str) -> str:
    """The reason given by msgspec, with JSON type names and an example where one helps."""
    if "RFC3339" in reason:
        return "expected an RFC 3339 time with an existing date, such as 2026-11-20T08:00:00Z"
    if "timezone" in reason:
        return "the UTC offset is missing; write e.g. 2026-11-20T08:00:00Z or 2026-11-20T09:00:00+01:00"
    if "regex" in reason:
        return 'expected a language tag such as "en" or "zh-Hant"'
    reason = reason[:1].lower() + reason[1:]
    reason = reason.replace("of length <= ", "of at most ").replace("of length >= ", "of at least ")
    words = re.sub(
        r"`([^`]*)`", lambda m: " or ".join(_TYPE_DESCRIPTIONS.get(t, t) for t in m[1].split(" | ")), reason
    )
    if "of at most" in words or "of at least" in words:
        words += " items" if "array" in words else " characters"
    return (
        words.replace(" or null, got", ", got")
        .replace(" <= ", " of at most ")
        .replace(" >= ", " of at least ")
    )


def _malformed_json_reason(error: Exception, data: bytes) -> str:
    reason = _BYTE_OFFSET.sub(r" at byte \1", str(error))
    if "truncated" not in reason:
        return reason.removeprefix("JSON is malformed: ")
    if b"\\ud" in data.lower():
        return "truncated, or half of a surrogate pair"
    return "truncated"


def _printable(name: str) -> str:
    """A field name from a request, without line breaks and control characters, for logs and responses."""
    return "".join(char if char.isprintable() else "?" for char in name[:80])
