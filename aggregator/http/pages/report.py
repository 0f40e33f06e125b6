"""The special report: one event with its timeline, its items by outlet, and why it fired."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from aggregator.contract.decoding import check_path_id
from aggregator.contract.requests import NoQuery
from aggregator.domain import ArticleRecord
from aggregator.errors import NotFound
from aggregator.events.detection.model import Event
from aggregator.http.app_keys import SERVICE
from aggregator.http.pages import cards, charts, html_response
from aggregator.index import StoredArticle

# A report shows so many of the newest items; the JSON of the event names all.
MAX_ITEMS = 200
CHART_WIDTH, CHART_HEIGHT = 960, 150
UNNAMED_OUTLET = "(outlet not named)"


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One article of the event; ``copies`` are those of the event that repeat it, "also from"."""

    record: ArticleRecord
    cosine: float
    at_ms: int
    copies: tuple[ArticleRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlet:
    """What one source brought, in order."""

    name: str
    items: tuple[ReportItem, ...]


async def report(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """One event for people."""
    service = request.app[SERVICE]
    position = await service.change_broadcaster.latest_position()
    event = await service.events.get(check_path_id(request.match_info["id"]))
    ids = event.items[-MAX_ITEMS:]
    first = event.items[:1]
    stored = await service.index.get_many([*ids, *first])
    copies = await _load_copies(request, ids, stored)
    items = _report_items(event, ids, stored, copies)
    first_seen = min(
        (s for s in stored.values()), key=lambda s: _published_or_arrived_ms(s.record), default=None
    )
    return html_response(
        request,
        "report.html",
        page="report",
        event=event,
        card=cards.make_card(event, service.clock()),
        timeline=_timeline(event, service.clock()),
        window=f"{service.settings.burst_window_hours:g} h",
        outlets=_group_by_outlet(items),
        copies=sum(len(item.copies) for item in items),
        shown=len(ids),
        first=first_seen.record if first_seen else None,
        stream="/v1/events/stream",
        position=position.decode(),
    )


async def _load_copies(
    request: web.Request, ids: Sequence[str], stored: Mapping[str, StoredArticle]
) -> dict[str, tuple[ArticleRecord, ...]]:
    """Canonical id -> all stored copies of it, for those groups that have any among the items."""
    index = request.app[SERVICE].index
    groups = dict.fromkeys(
        match.canonical_id for i in ids if i in stored and (match := stored[i].outcome.match) is not None
    )

    async def group(id_: str) -> Sequence[ArticleRecord]:
        try:
            return await index.group_members(id_)
        except NotFound:  # taken down since
            return ()

    found = await asyncio.gather(*(group(id_) for id_ in groups))
    return {id_: tuple(records) for id_, records in zip(groups, found, strict=True)}


def _report_items(
    event: Event,
    ids: Sequence[str],
    stored: Mapping[str, StoredArticle],
    copies: Mapping[str, Sequence[ArticleRecord]],
) -> list[ReportItem]:
    """Originals in order of joining, each with its copies; a copy whose original is elsewhere stands for it."""
    cosines = dict(zip(event.items, event.cosines, strict=False))
    made: dict[str, ReportItem] = {}
    for id_ in ids:
        if id_ not in stored:  # taken down since
            continue
        record, match = stored[id_].record, stored[id_].outcome.match
        group = match.canonical_id if match else id_
        if group in made:
            continue
        others = tuple(r for r in copies.get(group, ()) if r.id != id_)
        made[group] = ReportItem(record, cosines.get(id_, 1.0), _published_or_arrived_ms(record), others)
    return list(made.values())


def _group_by_outlet(items: Sequence[ReportItem]) -> list[Outlet]:
    """Outlets in order of their first item."""
    grouped: dict[str, list[ReportItem]] = {}
    for item in sorted(items, key=lambda i: i.at_ms):
        grouped.setdefault(item.record.source or UNNAMED_OUTLET, []).append(item)
    return [Outlet(name, tuple(found)) for name, found in grouped.items()]


def _published_or_arrived_ms(record: ArticleRecord) -> int:
    return record.arrived_ms if record.published_at_ms is None else record.published_at_ms


def _timeline(event: Event, now_ms: int) -> charts.Chart:
    """From half an hour before the first item to the last (or now, while it goes on)."""
    last_ms = event.last_seen_ms if event.status == "closed" else min(now_ms, event.last_seen_ms + 3_600_000)
    return charts.timeline_chart(
        event.timeline,
        event.first_seen_ms - 1_800_000,
        max(last_ms, event.last_seen_ms),
        CHART_WIDTH,
        CHART_HEIGHT,
    )
