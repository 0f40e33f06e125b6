"""From bytes to the values of ``domain``: every refusal is one sentence that names the field.

Pure: no web framework, no clock. The command line decodes its input lines here as well.
"""

from __future__ import annotations

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

# Dates outside are typing errors or a scraper that read something else.
MIN_YEAR, MAX_YEAR = 1700, 2199
UTF8_BOM = b"\xef\xbb\xbf"

# Not white space, and neither XML nor a terminal can take them.
_CONTROL_CHARS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffe\uffff]")
_BYTE_OFFSET = re.compile(r" \(byte (\d+)\)")
_MESSAGE_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<where>.*)`)?$", re.DOTALL)
_NAMED_FIELD = re.compile(r"(?P<what>unknown|required) field `(?P<name>.*)`", re.DOTALL)
_TYPE_DESCRIPTIONS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
    "datetime": "an RFC 3339 time",
}


def decode_article(data: bytes) -> Article:
    """One article from one JSON object. Raises BadInput."""
    if data.lstrip().startswith(b"["):
        raise InvalidInput(
            "body: expected one article, got a list; several go one per line, without brackets or commas around them.",
            field="body",
        )
    return to_article(decode(data, _decode_article_in))


def decode(data: bytes, decoder: DecodeFunction[T]) -> T:
    """``decoder`` on ``data``; whatever it raises becomes one BadInput sentence."""
    data = data.removeprefix(UTF8_BOM)
    if not data.strip():
        raise InvalidInput("body: it is empty; expected one JSON object.", field="body")
    if b"\0" in data[:4]:  # JSON has no zero bytes, the Latin half of UTF-16 every second
        raise InvalidInput("body: it is UTF-16 or binary; expected one JSON object in UTF-8.", field="body")
    try:
        return decoder(data)
    except msgspec.ValidationError as error:
        raise _invalid_input(error, _decoded_type(decoder)) from None
    except RecursionError:
        raise InvalidInput("body: it is nested too deeply.", field="body") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"body: it is not valid UTF-8 (byte {error.object[error.start]:#04x}).", field="body"
        ) from None
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"body: it is not valid JSON ({_malformed_json_reason(error, data)}).", field="body"
        ) from None


def convert_strings(values: Mapping[str, str], struct_type: type[T]) -> T:
    """Query parameters as a Struct of type ``kind``. Raises BadInput."""
    try:
        return msgspec.convert(values, struct_type, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid_input(error, struct_type, "query parameter") from None


def to_article(body: ArticleIn, *, for_storage: bool = True) -> Article:
    """The article, cleaned and with its id derived.

    Control characters leave title, source and text. With ``stored`` false an id is optional, since
    the article will not be kept. Raises BadInput.
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
    if url and (body.id_ is not None or not for_storage):  # else the id is made of it, which checks it
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
    )


def check_ids(ids: Sequence[str]) -> list[str]:
    """Ids in a body. Raises BadInput naming the first that cannot be one."""
    return [validate_id(id_, f"ids[{position}]") for position, id_ in enumerate(ids)]


def check_path_id(id_: str) -> str:
    """The id in a path. Raises BadInput."""
    if len(id_) > MAX_ID_BYTES:
        raise InvalidInput(f"id: it is too long; an id has at most {MAX_ID_BYTES} bytes.", field="id")
    return validate_id(id_)


def to_unix_ms(time: datetime | None, field: str) -> int | None:
    """Milliseconds since 1970 UTC. Raises BadInput for years that no article has."""
    if time is None:
        return None
    if not MIN_YEAR <= time.year <= MAX_YEAR:
        raise InvalidInput(
            f"{field}: the year {time.year} is not between {MIN_YEAR} and {MAX_YEAR}.", field=field
        )
    return (time - _EPOCH) // timedelta(milliseconds=1)


def to_single_line(text: str | None) -> str:
    """``text`` without control characters, white space collapsed: for titles and names."""
    return " ".join(_CONTROL_CHARS.sub("", text or "").split())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_decode_article_in: DecodeFunction[ArticleIn] = msgspec.json.Decoder(ArticleIn).decode


def _strip_control_chars(text: str | None) -> str:
    return _CONTROL_CHARS.sub("", text or "")


def _decoded_type(decoder: DecodeFunction[T]) -> object:
    """The type that ``decoder``, a bound ``msgspec.json.Decoder.decode``, reads."""
    return getattr(getattr(decoder, "__self__", None), "type", None)


def _struct_fields(struct_type: object) -> Sequence[msgspec.inspect.Field]:
    """What a Struct of type ``kind`` has; nothing of any other type."""
    described = msgspec.inspect.type_info(struct_type)
    return described.fields if isinstance(described, msgspec.inspect.StructType) else ()


def _invalid_input(error: msgspec.ValidationError, struct_type: object, noun: str = "field") -> InvalidInput:
    """msgspec's message as a sentence of ours, with the field it names; ``kind``: what was to be read."""
    match = _MESSAGE_PATH.fullmatch(str(error))
    where = (match["where"] if match else None) or ""
    reason = match["what"] if match else str(error)
    named = _NAMED_FIELD.search(reason)
    if named:
        name = _printable(named["name"]) or '""'
        field = f"{where}.{name}" if where else name
        if named["what"] == "unknown":
            known = ", ".join(field.encode_name for field in _struct_fields(struct_type))
            takes = f" (known: {known})" if known and not where else ""
            return InvalidInput(f"{field}: there is no {noun} of this name here{takes}.", field=field)
        return InvalidInput(f"{field}: this {noun} is required.", field=field)
    field = _printable(where) or "body"
    choices = _allowed_values(struct_type, field) if "enum value" in reason else []
    if choices:
        return InvalidInput(f"{field}: expected one of {', '.join(choices)}.", field=field)
    return InvalidInput(f"{field}: {_plain_reason(reason)}.", field=field)


def _allowed_values(struct_type: object, name: str) -> list[str]:
    """The values that a field of choices may have; empty for any other field."""
    for type_ in (field.type for field in _struct_fields(struct_type) if field.encode_name == name):
        for one in type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,):
            if isinstance(one, msgspec.inspect.LiteralType):
                return [str(value) for value in one.values]
    return []


def _plain_reason(reason: str) -> str:
    """The reason in the words of somebody who does not know our types."""
    if "RFC3339" in reason:
        return "expected an RFC 3339 time such as 2026-11-20T08:00:00Z, with a date that exists"
    if "timezone" in reason:
        return "the time needs an offset, e.g. 2026-11-20T08:00:00Z or +01:00, since none is assumed"
    if "regex" in reason:
        return 'expected a language tag such as "en" or "zh-Hant"'
    reason = reason[:1].lower() + reason[1:]
    reason = reason.replace("of length <= ", "of at most ").replace("of length >= ", "of at least ")
    words = re.sub(
        r"`([^`]*)`", lambda m: " or ".join(_TYPE_DESCRIPTIONS.get(t, t) for t in m[1].split(" | ")), reason
    )
    if "of at most" in words or "of at least" in words:
        words += " entries" if "list" in words else " characters"
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
        return "it ends too early or holds half of a surrogate pair"
    return "it ends too early"


def _printable(name: str) -> str:
    """A caller's field name, safe for one line of a log or an answer."""
    return "".join(char if char.isprintable() else "?" for char in name[:80])
