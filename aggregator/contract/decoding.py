"""Decoding and validation of requests: JSON or query strings to structs, structs to domain values. Pure.

Every rejection is an InvalidInput with one sentence that names the field, and with all other errors of the
input attached. The command line decodes its input with the same functions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import ParamSpec, TypeVar

import msgspec

from aggregator.analysis.article_id import canonical_url, derive_id, validate_id
from aggregator.analysis.text.markup import plain_title
from aggregator.contract.validation import (
    MAX_ERRORS,
    body_error,
    combined,
    json_decoder,
    parameters_error,
    printable,
    struct_fields,
)
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.time_units import EPOCH, parse_duration
from aggregator_client.dates import MAX_YEAR, MIN_YEAR
from aggregator_client.surrogates import whole_json
from aggregator_client.wire import ArticleIn

T = TypeVar("T")
P = ParamSpec("P")

UTF8_BOM = b"\xef\xbb\xbf"

# Control characters other than white space: illegal in XML and harmful in a terminal.
_CONTROL_CHARS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffe\uffff]")
_NO_DATE = re.compile(rb'"\s*(000[01]-0[01]-0[01](\D.*)?)?"', re.DOTALL)  # also of Go, .NET and MySQL
_BYTE_OFFSET = re.compile(r" \(byte (\d+)\)")


@dataclass
class ErrorCollector:
    """Errors of one input, found by independent rules."""

    errors: list[InvalidInput] = field(default_factory=list)

    def add(self, message: str, field: str, reason: str) -> None:
        """Add an error."""
        self.errors.append(InvalidInput(message, field=field, reason=reason))

    def run(self, check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result of a check; None if it raises InvalidInput, which is added."""
        try:
            return check(*args, **kwargs)
        except InvalidInput as error:
            self.errors.append(error)
            return None

    def raise_all(self) -> None:
        """Raise the first error with the others attached, if there is any."""
        if self.errors:
            raise combined(self.errors)


def decode_article(data: bytes) -> Article:
    """One article from one JSON object. Raises InvalidInput."""
    if data.lstrip().startswith(b"["):
        raise InvalidInput(
            "body: expected one article, got an array; "
            "send several articles as JSON lines, one object per line.",
            field="body",
            reason="wrong_type",
        )
    try:
        body = decode(data, ArticleIn)
    except InvalidInput as error:
        if (without_date := _without_blank_date(data, error)) is not None:
            return decode_article(without_date)
        raise _with_rule_errors(data, error) from None
    return to_article(body)


def _without_blank_date(data: bytes, error: InvalidInput) -> bytes | None:
    """The article without its date, if ``error`` is about a date that stands for none."""
    if all(found.field != "published_at" for found in (error, *error.others)):
        return None
    members = decode(data, dict[str, msgspec.Raw])
    return msgspec.json.encode(members) if _NO_DATE.fullmatch(members.pop("published_at")) else None


def _with_rule_errors(data: bytes, error: InvalidInput) -> InvalidInput:
    """``error`` of an article, and what the rules of ``to_article`` find in its other members."""
    errors = [error, *error.others]
    wrong = {found.path[0] for found in errors if found.path}
    if not wrong or not all(found.path for found in errors):
        return error  # not an object, or not JSON
    members = json_decoder(dict[str, msgspec.Raw]).decode(whole_json(data.removeprefix(UTF8_BOM)))
    names = {field.encode_name for field in struct_fields(ArticleIn)} - wrong
    usable = {name: value for name, value in members.items() if name in names}
    try:
        to_article(json_decoder(ArticleIn).decode(msgspec.json.encode(usable)))
    except InvalidInput as found:
        of_rules = [found, *found.others]
        if not wrong.isdisjoint(("title", "text", "html")):  # the article may have a text
            of_rules = [rule for rule in of_rules if rule.field != "text"]
        return combined([*errors, *of_rules][:MAX_ERRORS])
    return error


def decode(data: bytes, type_: type[T]) -> T:
    """A JSON body as a ``type_``. Raises InvalidInput, also for a member that is named twice."""
    data = data.removeprefix(UTF8_BOM)
    if not data.strip():
        raise _bad_json("empty; expected one JSON object.")
    # JSON in UTF-8 has no zero bytes; UTF-16 of Latin text has one in every second byte.
    if b"\0" in data[:4]:
        raise _bad_json("UTF-16 or binary data; expected one JSON object in UTF-8.")
    if data.lstrip()[:1] == b"<":
        raise _bad_json("HTML or XML; expected one JSON object, for an article with the page in `html`.")
    try:
        text = data.decode()
        decoded: T = json_decoder(type_).decode(data)  # type: ignore[arg-type]  # classes are hashable
        # msgspec keeps the last of two members with one name, other readers (a proxy that checks ``source``)
        # the first: so the object is read a second time, 15 us for an article of 3 kB.
        _member_names_decoder.decode(text)
    except msgspec.ValidationError as error:
        raise body_error(data, type_, error) from None
    except RecursionError:
        raise _bad_json("nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise _bad_json(f"not valid JSON ({error}).") from None
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        if (whole := whole_json(data)) != data:
            return decode(whole, type_)
        if isinstance(error, UnicodeDecodeError):
            raise _bad_json(f"not valid UTF-8 (byte {error.object[error.start]:#04x}).") from None
        reason = _BYTE_OFFSET.sub(r" at byte \1", str(error)).removeprefix("JSON is malformed: ")
        if "trailing" in reason:
            reason += "; `curl -d` joins the lines of a file, `--data-binary` does not"
        raise _bad_json(f"not valid JSON ({'truncated' if 'truncated' in reason else reason}).") from None
    return decoded


def _bad_json(problem: str) -> InvalidInput:
    return InvalidInput(f"body: {problem}", field="body", reason="bad_json")


def _unique_members(pairs: Sequence[tuple[str, object]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    count_of = Counter(name for name, _ in pairs)
    repeated = printable(next(name for name, count in count_of.items() if count > 1))
    raise InvalidInput(
        f"{repeated}: given more than once; name each member once.", field=repeated, reason="repeated"
    )


_member_names_decoder = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_int=str, parse_float=str, strict=False
)


def convert_strings(values: Mapping[str, str], struct_type: type[T]) -> T:
    """Query parameters or form fields as a ``struct_type``. Raises InvalidInput."""
    try:
        return msgspec.convert(values, struct_type, strict=False)
    except msgspec.ValidationError as error:
        found = parameters_error(values, struct_type, "query parameter")
        raise found or InvalidInput(f"{error}.") from None


def to_article(body: ArticleIn, *, for_storage: bool = True) -> Article:
    """The article without control characters, and with an id ``for_storage``. Raises InvalidInput."""
    title, text, html = (
        plain_title(to_single_line(body.title)),
        _strip_control_chars(body.text),
        _strip_control_chars(body.html),
    )
    text = text if text.strip() else ""
    html = html if html.strip() and not text else ""
    url = (body.url or "").strip()
    found = ErrorCollector()
    if not (title or text or html):
        found.add("text: the article is empty; give text, html or at least a title.", "text", "missing")
    has_id = bool(body.id_ and body.id_.strip())
    id_ = found.run(validate_id, body.id_ or "") if has_id else ""
    if not has_id and for_storage:
        id_ = found.run(derive_id, None, url, title, text or html)
    elif url:
        found.run(canonical_url, url)
    published_at = body.published_at if body.published_at and body.published_at.year > 1 else None
    if published_at and published_at.time() == time.min:  # a date without a time, at any offset
        published_at = published_at.replace(tzinfo=UTC)
    published_at_ms = found.run(to_unix_ms, published_at, "published_at")
    found.raise_all()
    return Article(
        id=id_ or "",
        title=title,
        text=text,
        html=html,
        url=url,
        source=to_single_line(body.source),
        published_at_ms=published_at_ms,
        lang=body.lang or None,
        policy=body.policy or "",
    )


def check_ids(ids: Sequence[str]) -> list[str]:
    """Validated ids of a body. Raises InvalidInput naming the invalid ones."""
    found = ErrorCollector()
    for position, id_ in enumerate(ids):
        found.run(validate_id, id_, f"ids[{position}]")
    found.raise_all()
    return list(ids)


def to_unix_ms(time: datetime | None, field: str) -> int | None:
    """Milliseconds since 1970 UTC. Raises InvalidInput for years outside MIN_YEAR to MAX_YEAR."""
    if time is None:
        return None
    if not MIN_YEAR <= time.year <= MAX_YEAR:
        raise InvalidInput(
            f"{field}: the year {time.year} is not between {MIN_YEAR} and {MAX_YEAR}.",
            field=field,
            reason="out_of_range",
        )
    return (time - EPOCH) // timedelta(milliseconds=1)


def to_duration_ms(text: str, field: str) -> int:
    """Milliseconds of a time span such as "12h" or "2d", or of "0". Raises InvalidInput."""
    found = 0 if text.strip() == "0" else parse_duration(text.strip())
    if found is None:
        message = f"{field}: expected a time span such as 30m, 12h, 2d or 1w, or 0."
        raise InvalidInput(message, field=field, reason="bad_format")
    return found


def to_past_ms(text: str, field: str, now_ms: int, zone: tzinfo | None = None) -> int | None:
    """A time with an offset or of ``zone``, a day (else UTC) or an age ("7d"), in ms. Raises InvalidInput."""
    text = text.strip()
    if (age_ms := parse_duration(text)) is not None:
        return now_ms - age_ms
    try:
        at, day_zone = datetime.fromisoformat(text), UTC if len(text) <= len("2026-11-20") else None
        return to_unix_ms(at.replace(tzinfo=at.tzinfo or zone or day_zone), field)
    except (ValueError, TypeError):  # TypeError: it has no offset
        message = f"{field}: expected a time such as 2026-11-20T08:00:00Z, or an age such as 7d."
        raise InvalidInput(message, field=field, reason="bad_format") from None


def to_single_line(text: str | None) -> str:
    """``text`` without control characters and with white space collapsed, for titles and names."""
    return " ".join(_CONTROL_CHARS.sub("", text or "").split())


def to_plain_text(text: str) -> str:
    """``text`` without control characters other than white space, and without it at both ends, for notes."""
    return _strip_control_chars(text).replace("\r\n", "\n").strip()


def _strip_control_chars(text: str | None) -> str:
    return _CONTROL_CHARS.sub("", text or "")
