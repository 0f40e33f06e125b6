"""From bytes to the values of ``domain``: every refusal is one sentence that names the field.

Pure: no web framework, no clock. The command line decodes its input lines here as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from aggregator.analysis.article_id import MAX_ID_BYTES, canonical_url, checked_id, derive_id
from aggregator.contract.requests import ArticleIn
from aggregator.domain import Article
from aggregator.errors import BadInput

T = TypeVar("T")
Decode = Callable[[bytes], T]

# Dates outside are typing errors or a scraper that read something else.
FIRST_YEAR, LAST_YEAR = 1700, 2199
BOM = b"\xef\xbb\xbf"

# Not white space, and neither XML nor a terminal can take them.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffe\uffff]")
_AT = re.compile(r" \(byte (\d+)\)")
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<where>.*)`)?$", re.DOTALL)
_NAMED = re.compile(r"(?P<what>unknown|required) field `(?P<name>.*)`", re.DOTALL)
_EXPECTED = {
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
        raise BadInput(
            "body: expected one article, got a list; several go one per line, without brackets or commas around them.",
            field="body",
        )
    return to_article(decode(data, _article_in))


def decode(data: bytes, decoder: Decode[T]) -> T:
    """``decoder`` on ``data``; whatever it raises becomes one BadInput sentence."""
    data = data.removeprefix(BOM)
    if not data.strip():
        raise BadInput("body: it is empty; expected one JSON object.", field="body")
    if b"\0" in data[:4]:  # JSON has no zero bytes, the Latin half of UTF-16 every second
        raise BadInput("body: it is UTF-16 or binary; expected one JSON object in UTF-8.", field="body")
    try:
        return decoder(data)
    except msgspec.ValidationError as error:
        raise _refusal(error, _kind(decoder)) from None
    except RecursionError:
        raise BadInput("body: it is nested too deeply.", field="body") from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"body: it is not valid UTF-8 (byte {error.object[error.start]:#04x}).", field="body"
        ) from None
    except msgspec.MsgspecError as error:
        raise BadInput(f"body: it is not valid JSON ({_reason(error, data)}).", field="body") from None


def convert(values: Mapping[str, str], kind: type[T]) -> T:
    """Query parameters as a Struct of type ``kind``. Raises BadInput."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(error, kind, "query parameter") from None


def to_article(body: ArticleIn, *, stored: bool = True) -> Article:
    """The article, cleaned and with its id derived.

    Control characters leave title, source and text. With ``stored`` false an id is optional, since
    the article will not be kept. Raises BadInput.
    """
    title, text, html = one_line(body.title), _clean(body.text), _clean(body.html)
    text = text if text.strip() else ""
    html = html if html.strip() and not text else ""
    if not (title or text or html):
        raise BadInput("text: the article is empty; give text, html or at least a title.", field="text")
    url = (body.url or "").strip()
    if url and (body.id_ is not None or not stored):  # else the id is made of it, which checks it
        canonical_url(url)
    id_ = derive_id(body.id_, url, title, text or html) if stored or body.id_ is not None else ""
    return Article(
        id=id_,
        title=title,
        text=text,
        html=html,
        url=url,
        source=one_line(body.source),
        published_at_ms=to_ms(body.published_at, "published_at"),
        lang=body.lang or None,
    )


def checked_ids(ids: Sequence[str]) -> list[str]:
    """Ids in a body. Raises BadInput naming the first that cannot be one."""
    return [checked_id(id_, f"ids[{position}]") for position, id_ in enumerate(ids)]


def path_id(id_: str) -> str:
    """The id in a path. Raises BadInput."""
    if len(id_) > MAX_ID_BYTES:
        raise BadInput(f"id: it is too long; an id has at most {MAX_ID_BYTES} bytes.", field="id")
    return checked_id(id_)


def to_ms(when: datetime | None, field: str) -> int | None:
    """Milliseconds since 1970 UTC. Raises BadInput for years that no article has."""
    if when is None:
        return None
    if not FIRST_YEAR <= when.year <= LAST_YEAR:
        raise BadInput(
            f"{field}: the year {when.year} is not between {FIRST_YEAR} and {LAST_YEAR}.", field=field
        )
    return (when - _EPOCH) // timedelta(milliseconds=1)


def one_line(text: str | None) -> str:
    """``text`` without control characters, white space collapsed: for titles and names."""
    return " ".join(_CONTROL.sub("", text or "").split())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_article_in: Decode[ArticleIn] = msgspec.json.Decoder(ArticleIn).decode


def _clean(text: str | None) -> str:
    return _CONTROL.sub("", text or "")


def _kind(decoder: Decode[T]) -> object:
    """The type that ``decoder``, a bound ``msgspec.json.Decoder.decode``, reads."""
    return getattr(getattr(decoder, "__self__", None), "type", None)


def _fields(kind: object) -> Sequence[msgspec.inspect.Field]:
    """What a Struct of type ``kind`` has; nothing of any other type."""
    described = msgspec.inspect.type_info(kind)
    return described.fields if isinstance(described, msgspec.inspect.StructType) else ()


def _refusal(error: msgspec.ValidationError, kind: object, what: str = "field") -> BadInput:
    """msgspec's message as a sentence of ours, with the field it names; ``kind``: what was to be read."""
    match = _PLACE.fullmatch(str(error))
    where = (match["where"] if match else None) or ""
    reason = match["what"] if match else str(error)
    named = _NAMED.search(reason)
    if named:
        name = _shown(named["name"]) or '""'
        field = f"{where}.{name}" if where else name
        if named["what"] == "unknown":
            known = ", ".join(field.encode_name for field in _fields(kind))
            takes = f" (known: {known})" if known and not where else ""
            return BadInput(f"{field}: there is no {what} of this name here{takes}.", field=field)
        return BadInput(f"{field}: this {what} is required.", field=field)
    field = _shown(where) or "body"
    choices = _choices(kind, field) if "enum value" in reason else []
    if choices:
        return BadInput(f"{field}: expected one of {', '.join(choices)}.", field=field)
    return BadInput(f"{field}: {_plain(reason)}.", field=field)


def _choices(kind: object, name: str) -> list[str]:
    """The values that a field of choices may have; empty for any other field."""
    for type_ in (field.type for field in _fields(kind) if field.encode_name == name):
        for one in type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,):
            if isinstance(one, msgspec.inspect.LiteralType):
                return [str(value) for value in one.values]
    return []


def _plain(reason: str) -> str:
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
        r"`([^`]*)`", lambda m: " or ".join(_EXPECTED.get(t, t) for t in m[1].split(" | ")), reason
    )
    if "of at most" in words or "of at least" in words:
        words += " entries" if "list" in words else " characters"
    return (
        words.replace(" or null, got", ", got")
        .replace(" <= ", " of at most ")
        .replace(" >= ", " of at least ")
    )


def _reason(error: Exception, data: bytes) -> str:
    reason = _AT.sub(r" at byte \1", str(error))
    if "truncated" not in reason:
        return reason.removeprefix("JSON is malformed: ")
    if b"\\ud" in data.lower():
        return "it ends too early or holds half of a surrogate pair"
    return "it ends too early"


def _shown(name: str) -> str:
    """A caller's field name, safe for one line of a log or an answer."""
    return "".join(char if char.isprintable() else "?" for char in name[:80])
