"""Export of the articles of an event: JSON and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

from aiohttp import web

from aggregator.contract.encoding import to_datetime, to_datetime_or_none
from aggregator.contract.requests import NoQuery
from aggregator.contract.responses import EventItemOut, EventItemsOut
from aggregator.events.detection.model import Event
from aggregator.http import json_response
from aggregator.http.app_keys import EVENT_ITEMS, SERVICE
from aggregator.http.event_items import EventItem
from aggregator.http.query_params import path_id

CSV_TYPE = "text/csv"
CSV_COLUMNS = (
    "time", "published_at", "arrived_at", "source", "title", "url", "lang", "similarity", "id", "copy_of",
)  # fmt: skip
# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA_START = re.compile(r"^[\s\x00]*[=+\-@|%＝＋－＠]|^[\t\r\n]")
# Spreadsheets read UTF-8 only behind this mark.
_BYTE_ORDER_MARK = "\ufeff"


async def get_items(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """All stored articles of an event."""
    event, items = await _load(request)
    return json_response.struct_response(EventItemsOut(event.id, event.title, [_item_out(i) for i in items]))


async def get_items_csv(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The same as a file for spreadsheets."""
    event, items = await _load(request)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", event.id)[:80]
    return web.Response(
        body=to_csv(items).encode("utf-8", "replace"),
        content_type=CSV_TYPE,
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="event-{name}.csv"'},
    )


def to_csv(items: Iterable[EventItem]) -> str:
    """CSV (RFC 4180) with a header line; no cell is a formula for a spreadsheet."""
    text = io.StringIO()
    text.write(_BYTE_ORDER_MARK)
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(CSV_COLUMNS)
    for item in items:
        writer.writerow(
            _safe_cell(value)
            for value in (
                _cell_time(item.at_ms),
                _cell_time(item.published_at_ms),
                _cell_time(item.arrived_ms),
                item.source,
                item.title,
                item.url,
                item.lang,
                f"{item.similarity:.3f}",
                item.id,
                item.copy_of,
            )
        )
    return text.getvalue()


def _cell_time(at_ms: int | None) -> str:
    """A time in UTC to the second, which spreadsheets read; "" for none."""
    return "" if at_ms is None else f"{to_datetime(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def _safe_cell(value: str) -> str:
    r"""The value, behind an apostrophe if a spreadsheet would take it for a formula.

    >>> _safe_cell('=HYPERLINK("x")'), _safe_cell("Storm - the facts")
    ('\'=HYPERLINK("x")', 'Storm - the facts')
    """
    return "'" + value if _FORMULA_START.match(value) else value


async def _load(request: web.Request) -> tuple[Event, tuple[EventItem, ...]]:
    service = request.app[SERVICE]
    event = await service.events.get(path_id(request))
    return event, (await request.app[EVENT_ITEMS].load(service, event)).items


def _item_out(item: EventItem) -> EventItemOut:
    return EventItemOut(
        id=item.id,
        title=item.title,
        url=item.url,
        source=item.source,
        lang=item.lang,
        published_at=to_datetime_or_none(item.published_at_ms),
        arrived_at=to_datetime(item.arrived_ms),
        similarity=item.similarity,
        copy_of=item.copy_of or None,
    )
