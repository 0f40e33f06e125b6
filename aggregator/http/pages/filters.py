"""Template filters: formatting of values on the pages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from aggregator.analysis.source import outlet_name
from aggregator.dedup.wording import has_text
from aggregator.events.days import is_split_off
from aggregator.events.detection.numbers import end_of, headline_times, items_within
from aggregator.events.event import newest_figures, title_of
from aggregator.events.newsroom import is_split
from aggregator.events.selection import last_decision, since_handled
from aggregator.provenance.lineage import describe
from aggregator.time_units import to_datetime


def safe_url(url: str) -> str:
    """The URL if its scheme is http or https, else "": a stored ``javascript:`` URL is never a link."""
    return url if url.lower().startswith(("http://", "https://")) else ""


def utc(at: datetime | int, form: str) -> str:
    """A time (milliseconds or datetime) in UTC, in a form of ``strftime``."""
    return (to_datetime(at) if isinstance(at, int) else at).astimezone(UTC).strftime(form)


def duration(ms: int, parts: int = 2) -> str:
    """A duration, for example "3 min 20 s", "25 min", "2 h 5 min", "1 d 3 h"; without seconds from 10 min."""
    minutes, seconds = divmod(ms // 1000, 60)
    if minutes >= 10:
        seconds = 0
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    largest = next((i for i, (count, _) in enumerate(units) if count), len(units) - 1)
    shown = [f"{count}\u00a0{unit}" for count, unit in units[largest : largest + parts] if count]
    return " ".join(shown) or "0\u00a0s"


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """Count and noun, for example "3 items"; the default plural adds an "s"."""
    return f"{thousands(count)} {singular if count == 1 else plural or singular + 's'}"


def thousands(count: int) -> str:
    """A count with thousands separated by narrow spaces."""
    return f"{count:,}".replace(",", "\u202f")


def percent(share: float) -> str:
    """A share of 0..1 as a whole percentage, for example "92%"; a small or large one is not rounded away."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def query_value(text: str) -> str:
    """Percent-encoded text for a query parameter or path segment; unlike ``urlencode`` also for "/"."""
    return quote(text, safe="")


def inline_code(text: str) -> Markup:
    """Escaped text with words in double backticks as <code>."""
    parts = text.split("``")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    safe_url, utc, duration, pluralize, thousands, percent, query_value, inline_code, outlet_name, has_text,
    is_split, is_split_off, end_of, headline_times, items_within, newest_figures, last_decision,
    since_handled, title_of,
)  # fmt: skip
FILTERS: Mapping[str, Callable[..., Any]] = {f.__name__: f for f in _FUNCTIONS} | {
    "describe_changes": describe
}
