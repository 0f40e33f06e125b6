"""Report page of one event: timeline, items by outlet, reason, editor actions."""

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
from aggregator.time_units import HOUR_MS

# The newest items that a report shows; the event's JSON lists all.
MAX_ITEMS = 200
MAX_DUPLICATES = 20  # of each item
CHART_WIDTH, CHART_HEIGHT = 960, 150
UNNAMED_OUTLET = "(unnamed outlet)"


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One article of the event, with its duplicates ("also from"). ``cosine``: similarity to the story."""

    record: ArticleRecord
    cosine: float
    at_ms: int
    duplicates: tuple[ArticleRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlet:
    """The items of one source, oldest first."""

    name: str
    items: tuple[ReportItem, ...]


async def report(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The report of an event."""
    service = request.app[SERVICE]
    position = await service.change_broadcaster.latest_position()
    event = await service.events.get(check_path_id(request.match_info["id"]))
    previous, following = await service.events.story_neighbors(event)
    ids = event.items[-MAX_ITEMS:]
    stored = await service.index.articles.get_many([*ids, *event.items[:1]])
    groups = await _load_groups(request, ids, stored)
    items = _report_items(event, ids, stored, groups)
    first = min((s.record for s in stored.values()), key=_published_or_arrived_ms, default=None)
    return html_response(
        request,
        "report.html",
        page="report",
        event=event,
        previous=previous,
        following=following,
        card=cards.make_card(event, service.clock()),
        timeline=_timeline(event, service.clock()),
        window=f"{service.settings.burst_window_hours:g} h",
        outlets=_group_by_outlet(items),
        duplicate_count=sum(len(item.duplicates) for item in items),
        shown_count=len(ids),
        first=first,
        max_duplicates=MAX_DUPLICATES,
        unnamed_outlet=UNNAMED_OUTLET,
        stream_url="/v1/events/stream",
        stream_position=position.decode(),
    )


async def _load_groups(
    request: web.Request, ids: Sequence[str], stored: Mapping[str, StoredArticle]
) -> dict[str, tuple[ArticleRecord, ...]]:
    """Canonical id -> all stored articles of its duplicate group, for the groups of these items."""
    index = request.app[SERVICE].index
    canonical_ids = dict.fromkeys(
        match.canonical_id for i in ids if i in stored and (match := stored[i].outcome.match) is not None
    )

    async def load_group(id_: str) -> Sequence[ArticleRecord]:
        try:
            return await index.articles.group_members(id_, MAX_DUPLICATES)
        except NotFound:  # deleted in the meantime
            return ()

    groups = await asyncio.gather(*map(load_group, canonical_ids))
    return {id_: tuple(records) for id_, records in zip(canonical_ids, groups, strict=True)}


def _report_items(
    event: Event,
    ids: Sequence[str],
    stored: Mapping[str, StoredArticle],
    groups: Mapping[str, Sequence[ArticleRecord]],
) -> list[ReportItem]:
    """One item per duplicate group, in order of joining: its first article in the event, and the others."""
    cosines = dict(zip(event.items, event.cosines, strict=False))
    items: dict[str, ReportItem] = {}
    for id_ in ids:
        if id_ not in stored:  # deleted in the meantime
            continue
        record, match = stored[id_].record, stored[id_].outcome.match
        group = match.canonical_id if match else id_
        if group in items:
            continue
        others = tuple(r for r in groups.get(group, ()) if r.id != id_)
        items[group] = ReportItem(record, cosines.get(id_, 1.0), _published_or_arrived_ms(record), others)
    return list(items.values())


def _group_by_outlet(items: Sequence[ReportItem]) -> list[Outlet]:
    """Items by outlet, in order of the first item of each."""
    grouped: dict[str, list[ReportItem]] = {}
    for item in sorted(items, key=lambda i: i.at_ms):
        grouped.setdefault(item.record.source or UNNAMED_OUTLET, []).append(item)
    return [Outlet(name, tuple(outlet_items)) for name, outlet_items in grouped.items()]


def _published_or_arrived_ms(record: ArticleRecord) -> int:
    return record.arrived_ms if record.published_at_ms is None else record.published_at_ms


def _timeline(event: Event, now_ms: int) -> charts.Chart:
    """Chart from 30 min before the first item to 1 h after the last, or to now if that is earlier."""
    last_ms = event.last_seen_ms if event.status == "closed" else min(now_ms, event.last_seen_ms + HOUR_MS)
    return charts.timeline_chart(
        event.timeline,
        event.first_seen_ms - HOUR_MS // 2,
        max(last_ms, event.last_seen_ms),
        CHART_WIDTH,
        CHART_HEIGHT,
    )
