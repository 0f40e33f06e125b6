"""The one reader of publication dates as feeds, pages and crawlers state them. Pure.

``parse_feed_date`` gives a time in UTC, or None for everything that cannot be read for certain: an article
without a date counts as published when it arrives, one with a wrong date is hours late or early for good.

| value | read as |
| --- | --- |
| ``datetime`` with an offset | that time |
| list of one value | that value |
| ``date``, a text that is only a date, midnight at any offset | midnight UTC: a date without time |
| ``time.struct_time``, also as nine numbers | UTC, as feedparser gives them, unless it has an offset |
| number, or its text | seconds (10^8 to 10^10) or milliseconds (10^11 to 10^13) since 1970 |
| text | see below; all of it, from the date on, must have a meaning |

A text is a date, a time and a zone. Dates: ``27 Nov 2026`` and ``27-Nov-26`` (RFC 822, 850),
``Nov 27, 2026``, ``Fri Nov 27 16:39:32 UTC 2026`` (asctime, date), ``2026-11-27``, ``20261127``,
``2026/11/27``, ``2026-W48-5``; names of months are English. Times: with or without seconds and fractions, AM
and PM. Zones: ``+02:00``, ``+0200``, ``+02``, ``Z``, ``GMT+0200``, and names with one meaning (``ZONES``).
RFC 822 defines EST, CDT, PST and their like; CST (also China) and IST (India, Ireland, Israel) are used for
several offsets today.

A time without a zone, or with an ambiguous name, is read only in a declared ``zone``, and not in the hour
that occurs twice when clocks go back.
"""

from __future__ import annotations

import re
import time
import unicodedata
from calendar import month_abbr, month_name
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock
from decimal import Decimal
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MIN_YEAR, MAX_YEAR = 1700, 2199  # dates outside are typing errors or scraping errors

MAX_CHARS = 100  # longer texts are no dates

# Names by hours east of UTC. AST (Atlantic, Arabia), CST and IST are left out, and names of few outlets.
_NAMES = {
    0.0: "Z UT UTC GMT WET",
    1.0: "BST CET MET MEZ WAT WEST",
    2.0: "CAT CEST EET MEST MESZ SAST",
    3.0: "EAT EEST IDT MSK TRT",
    3.5: "IRST",
    5.0: "PKT",
    5.75: "NPT",
    7.0: "ICT WIB",
    8.0: "AWST HKT MYT PHT SGT WITA",
    9.0: "JST KST",
    9.5: "ACST",
    10.0: "AEST",
    10.5: "ACDT",
    11.0: "AEDT",
    12.0: "NZST",
    13.0: "NZDT",
    -3.0: "ART BRT",
    -4.0: "EDT",
    -5.0: "CDT COT EST PET",
    -6.0: "MDT",
    -7.0: "MST PDT",
    -8.0: "AKDT PST",
    -9.0: "AKST",
    -10.0: "HST",
}
ZONES = {name: hours for hours, names in _NAMES.items() for name in names.split()}

_MONTHS = {name.lower(): number for names in (month_abbr, month_name) for number, name in enumerate(names)}
_MONTHS |= {"sept": 9}
_MONTH = r"(?P<month>[a-z]{3,9})\.?"
_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])\.?\s?m\b\.?)?"
)
_ZONE = r"(?P<zone>[a-z]{1,4}|(?:(?:UTC|GMT|UT)\s?)?[+-]\d[\d:]*(?:\s?\(.*\)|\s?\[.*\]|\s[a-z]{1,5})?)"
_AFTER_DATE = rf"(?:(?:\s*,\s*|\s+at\s+|\s+|T){_TIME}(?:\s*{_ZONE})?)?"
_FORMS = [
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"(?P<iso>\d{{4}}-?\d\d-?\d\d|\d{{4}}-?W\d\d-?\d){_AFTER_DATE}",
        rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}}){_AFTER_DATE}",
        r"(?P<iso>\d{8})T(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<zone>Z|[+-]\d{2}:?\d{2})?",
        rf"(?P<day>\d{{1,2}})(?P<mark>[\s-]){_MONTH}(?P=mark)(?P<year>\d{{4}}|\d\d){_AFTER_DATE}",
        rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:\s*,\s*|\s+)(?P<year>\d{{4}}){_AFTER_DATE}",
        rf"{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_TIME}(?:\s+(?P<zone>[a-z]{{1,4}}|[+-]\d{{4}}))?\s+(?P<year>\d{{4}})",
    )
]
_LEADING_WEEKDAY = re.compile(r"[^\W\d_]{2,}(?:\.?,\s*|\.?\s+)(?=\w)")  # in any language
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?\s?(?P<sign>[+-])(?:(?P<h>\d\d):?(?P<m>[0-5]\d)|(?P<hours>\d{1,2}))"
    r"(?:\s?[(\[].*|\s(?P<name>[a-z]+))?",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"-?\d{9,13}(?:\.\d{1,9})?")
_SPELLING = str.maketrans({"\u2212": "-", "\u200e": None, "\u200f": None, "\u061c": None, "\ufeff": None})


def time_zone(name: str) -> tzinfo:
    """A zone of the IANA database, such as Europe/Berlin. Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # a directory of the database, or no such name
        raise ValueError(f"expected a time zone such as Europe/Berlin, found {name!r}.") from None


def parse_feed_date(value: object, zone: tzinfo | None = None) -> datetime | None:
    """The time in UTC, or None if it cannot be read for certain; see the module.

    ``zone``: where times without an offset are local; without it they are not read.
    """
    try:
        found = _read(value, zone)
        if found:
            found = found.replace(tzinfo=UTC) if found.time() == clock.min else found.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found and MIN_YEAR <= found.year <= MAX_YEAR else None


def with_parsed_date(article: Mapping[str, Any], zone: tzinfo | None = None) -> tuple[dict[str, Any], bool]:
    """The article with ``published_at`` in RFC 3339, or without; and whether it had one that was not read.

    None and a blank text are no date.
    """
    value = article.get("published_at")
    rest = {name: other for name, other in article.items() if name != "published_at"}
    if value is None or (isinstance(value, str | bytes) and not value.strip()):
        return rest, False
    parsed = parse_feed_date(value, zone)
    return (rest, True) if parsed is None else ({**rest, "published_at": parsed.isoformat()}, False)


def _read(value: object, zone: tzinfo | None) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.utcoffset() is not None else _local(value, zone)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, Real | Decimal) and not isinstance(value, bool):
        return _from_epoch(float(value))
    if isinstance(value, tuple | list):
        return _read(value[0], zone) if len(value) == 1 else _from_struct_time(value)
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str) or len(value) > MAX_CHARS:
        return None
    text = " ".join(unicodedata.normalize("NFKC", value).translate(_SPELLING).split())
    return _from_epoch(float(text)) if _EPOCH.fullmatch(text) else _read_text(text, zone)


def _from_struct_time(numbers: Sequence[Any]) -> datetime:
    """Raises TypeError if these are not its nine numbers."""
    fields = time.struct_time(numbers)
    offset = timezone(timedelta(seconds=getattr(numbers, "tm_gmtoff", None) or 0))
    return datetime(*fields[:5], min(fields.tm_sec, 59), tzinfo=offset)


def _from_epoch(number: float) -> datetime | None:
    """Other numbers may be years, 20261127, 202611271639, or 0 for none."""
    if 1e11 <= abs(number) < 1e13 and not 1.9e11 <= number < 2.2e11:
        number /= 1000
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number) if 1e8 <= abs(number) < 1e10 else None


def _read_text(text: str, zone: tzinfo | None) -> datetime | None:
    texts = (text, _LEADING_WEEKDAY.sub("", text, count=1))
    match = next((found for form in _FORMS for each in texts if (found := form.fullmatch(each))), None)
    if match is None:
        return None
    parts = {"iso": None, "half": None, "fraction": None, "zone": None, "second": None} | match.groupdict()
    day = date.fromisoformat(parts["iso"]) if parts["iso"] else _calendar_day(parts)
    midnight = datetime(day.year, day.month, day.day)
    if parts["hour"] is None:
        return midnight.replace(tzinfo=UTC)
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if parts["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (parts["half"] in "pP")
    if (hour, minute, second) > (24, 0, 0) or minute > 59 or second > 60:
        return None
    micros = int((parts["fraction"] or "0").ljust(6, "0")[:6])
    local = midnight + timedelta(hours=hour, minutes=minute, seconds=min(second, 59), microseconds=micros)
    return _in_zone(local, parts["zone"] or "", zone)


def _calendar_day(parts: Mapping[str, Any]) -> date:
    """Raises ValueError. RFC 5322: years of two digits are 1950 to 2049."""
    year, month = int(parts["year"]), parts["month"].lower()
    if len(parts["year"]) == 2:
        year += 2000 if year < 50 else 1900
    return date(year, int(month) if month.isdecimal() else _MONTHS.get(month, 0), int(parts["day"]))


def _in_zone(local: datetime, written: str, zone: tzinfo | None) -> datetime | None:
    """The time in the zone as written behind it; None if the zone is unknown or contradicts itself."""
    if not written:
        return _local(local, zone)
    name, hours = written.upper(), ZONES.get(written.upper())
    if offset := _OFFSET.fullmatch(written):
        hours = int(offset["h"] or offset["hours"]) + int(offset["m"] or 0) / 60
        hours = -hours if offset["sign"] == "-" else hours
        if abs(hours) > 14 or ZONES.get((offset["name"] or "").upper(), hours) != hours:
            return None
    if hours is not None:
        return local.replace(tzinfo=timezone(timedelta(hours=hours)))
    found = _local(local, zone)
    return found if found and (found.tzname() or "").upper() == name else None


def _local(naive: datetime, zone: tzinfo | None) -> datetime | None:
    """The time in ``zone``; None without a zone, and for a time that occurs there twice or never."""
    if zone is None:
        return None
    first, second = (naive.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return first if first.utcoffset() == second.utcoffset() else None
