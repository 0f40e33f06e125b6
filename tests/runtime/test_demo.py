"""The demonstration stream: its content, and verdicts that depend on texts, not on order or names."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from aggregator.app import Service, open_service
from aggregator.contract.decoding import decode_article
from aggregator.domain import StreamItem, article_number_at
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule, DetectedEvent
from aggregator.http.server import make_app
from aggregator.runtime import demo
from aggregator.settings import Settings
from aggregator_client import demonstration
from aggregator_client.errors import Unavailable
from tests.support.hang_limit import HANG_LIMIT_S

# Every person, place, company and outlet of the stream, with its replacement.
NAMES: Mapping[str, str] = {
    "Orrin Valley Herald": "Lomond Valley Herald",
    "Channel Five Estmark": "Channel Five Norlund",
    "Estmark Courier": "Norlund Courier",
    "The Corvane Ledger": "The Aldport Ledger",
    "Brackwater Gazette": "Milhaven Gazette",
    "Farm & Field": "Plough & Barn",
    "Harbour Times": "Anchor Times",
    "Coastline News": "Seaside News",
    "Northern Wire": "Polar Wire",
    "The Meridian": "The Observer Weekly",
    "Selwyn Post": "Carrick Post",
    "Estmark Radio": "Norlund Radio",
    "Port Selwyn": "Port Carrick",
    "Upper Ennis": "Upper Varr",
    "Lake Ennis": "Lake Varr",
    "Sorrel Island": "Juniper Island",
    "Chandler Street": "Cooper Street",
    "Saint Odile": "Saint Brannoc",
    "Cobble Mill": "Pebble Mill",
    "Halvorn Shipping": "Tarrant Shipping",
    "Pellandine Foods": "Ostrander Foods",
    "Quillon Energy": "Vexley Energy",
    "Ilse Tanvier": "Maud Ferrand",
    "Petra Oldane": "Greta Hollin",
    "Tobias Wrenfield": "Linus Harcastle",
    "Honor Castellane": "Verity Monreith",
    "Alaric Denholm": "Conrad Selby",
    "Mirela Fenwick": "Dorota Ashgrove",
    "Jonas Okafor-Lind": "Edvin Mbeki-Strand",
    "Sabela Drummond": "Ximena Carruth",
    "Leontine Varga": "Ottoline Banfy",
    "Ragna Thorsby": "Sunniva Eskdale",
    "Osric Bellamine": "Leofric Danvers",
    "Beatrix Lowmere": "Cordelia Highmoor",
    "Emeric Vance": "Anselm Troy",
    "Oriel Stanmore": "Isolde Wexcombe",
    "Wilmot Grange": "Barnaby Thorpe",
    "Casimir Roth": "Ladislas Krone",
    "Orrin": "Lomond",
    "Estmark": "Norlund",
    "Corvane": "Aldport",
    "Brackwater": "Milhaven",
    "Thornby": "Gorsley",
    "Tamsin": "Hester",
    "Aldern": "Wendle",
    "Marrow": "Sallow",
    "晨港": "曙湾",
    "青禾": "金穗",
    "陆远舟": "沈长帆",
    "南屿": "北洲",
    "云坪山": "雾岭山",
    "宋家良": "许永福",
    "江岭": "河州",
    "文澜": "墨香",
    "方知秋": "顾念春",
    "白沙湾": "银滩湾",
    "何静澜": "叶清波",
}
EXPECTED = {
    "new": "new",
    "template": "new",
    "event": "new",
    "related": "related",
    "copy": "duplicate",
    "edited": "duplicate",
    "updated": "duplicate",
}
QUICK = Settings(
    store_url="memory",
    demo=True,
    detector_interval_seconds=0.1,
    log_level="WARNING",
    request_timeout_seconds=HANG_LIMIT_S,
)


@asynccontextmanager
async def served(settings: Settings = QUICK) -> AsyncIterator[tuple[Service, str]]:
    """The application on a loopback port, with a running detector."""
    async with open_service(settings) as service:
        runner = web.AppRunner(make_app(service))
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            service.background.scheduler.start()
            yield service, f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await service.background.scheduler.stop()
            await runner.cleanup()


def bodies(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Request bodies of the rows, dated now."""
    now = datetime.now(UTC)
    return [demo.article_body(row, now) for row in rows]


def renamed(row: dict[str, Any]) -> dict[str, Any]:
    """The row with every name replaced; ids and URLs stay, for the comparison."""
    pattern = re.compile("|".join(map(re.escape, sorted(NAMES, key=len, reverse=True))))
    fields = {
        name: pattern.sub(lambda found: NAMES[found[0]], row[name]) for name in ("title", "text", "source")
    }
    return {**row, **fields}


def shuffled(rows: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """The rows in a random order."""
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    return rows


def test_the_stream_is_complete_and_in_order() -> None:
    """73 articles in order of time; a derived one names an earlier one; the event is shorter than 3 hours."""
    rows = demo.load_rows()
    seen: set[str] = set()

    assert len({row["id"] for row in rows}) == len({row["url"] for row in rows}) == len(rows) == 73
    assert {row["role"] for row in rows} == set(EXPECTED)
    for earlier, later in pairwise(rows):
        assert earlier["minutes_ago"] >= later["minutes_ago"]
    for row in rows:
        assert ("of" in row) == (row["role"] in ("copy", "edited", "related", "updated"))
        assert row.get("of", row["id"]) in seen | {row["id"]}
        seen.add(row["id"])
    event = [row for row in rows if row["role"] == "event"]
    assert len(event) > 20
    assert len({row["source"] for row in event}) > 8
    assert max(row["minutes_ago"] for row in event) < 180


def test_every_name_is_replaced() -> None:
    """The replacement of the tests below leaves no name and maps no two names to one."""
    rows = [renamed(row) for row in demo.load_rows()]
    text = "\n".join(row["title"] + row["text"] + row["source"] for row in rows)

    assert not [name for name in NAMES if name in text]
    assert len(set(NAMES.values())) == len(NAMES)


def test_an_article_is_dated_relative_to_now() -> None:
    """The request body contains none of the annotations."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    row = next(row for row in demo.load_rows() if row["role"] == "copy")

    body = demo.article_body(row, now)

    assert set(body) == {"id", "source", "url", "title", "text", "published_at"}
    assert (now - datetime.fromisoformat(body["published_at"])).total_seconds() == row["minutes_ago"] * 60


@pytest.mark.services
async def test_each_article_gets_its_intended_verdict() -> None:
    """Copies are duplicates, templates are not, changed figures are reported, the dam is an event."""
    async with served() as (_, url):
        report = await demonstration.replay(url, bodies(demo.load_rows()))

    rows = {row["id"]: row for row in demo.load_rows()}
    for answer in report.answers:
        row = rows[answer.id]
        assert answer.verdict == EXPECTED[row["role"]], answer
        assert answer.updated_figures == (row["role"] == "updated"), answer
        if row["role"] in ("copy", "edited", "updated"):
            assert answer.duplicate_of is not None
            assert answer.duplicate_of.canonical_id == row["of"]
        if row["role"] == "related":
            assert answer.related[0].id == row["of"]
    assert len(report.events) == 1
    assert report.events[0].size > 15
    text = report.format_text(url)
    assert f"{len(rows)} articles sent" in text
    assert f"{url}/events/{report.events[0].id}" in text
    assert f"search: {url}/search?q=dam" in text


@pytest.mark.services
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_order_and_names_do_not_matter(seed: int) -> None:
    """Shuffled and with every name replaced: the same counts, and the event."""
    expected = Counter(EXPECTED[row["role"]] for row in demo.load_rows())
    async with served() as (_, url):
        rows = [renamed(row) for row in shuffled(demo.load_rows(), seed)]
        report = await demonstration.replay(url, bodies(rows))

    assert report.verdict_counts == expected
    assert len(report.events) == 1


async def test_the_event_contains_only_dam_articles_wherever_a_minute_begins() -> None:
    """Term weights change every minute, so a minute that begins amid the reports may split the story.

    A part may then contain unrelated articles when it is merged into the event, which must not list them.
    """
    rows, now = demo.load_rows(), datetime(2026, 3, 1, 12, tzinfo=UTC)
    roles = {row["id"]: row.get("of", "") or row["role"] for row in rows}
    dam_ids = {id_ for id_, role in roles.items() if role == "event" or roles.get(role) == "event"}
    async with open_service(QUICK) as service:
        for row in rows:
            await service.articles.ingest.submit(
                decode_article(json.dumps(demo.article_body(row, now)).encode())
            )
        items, _ = await service.articles.index.stream.read({}, len(rows))

    for before_minute_ms in range(8_000, 16_000, 500):
        event = detect_event(items, round(now.timestamp() * 1000) - before_minute_ms)

        assert set(event.items) <= dam_ids, before_minute_ms
        assert 20 < event.peak <= event.size


def detect_event(items: Sequence[StreamItem], begin_ms: int) -> DetectedEvent:
    """The only event of ``items`` at the pace of the demonstration, with a detector tick every 2 s."""
    detector = BurstDetector(BurstRule())
    numbers: dict[int | None, int] = {}
    for position, item in enumerate(items):
        at_ms = begin_ms + position * 220
        number = numbers[item.number] = article_number_at(at_ms, position + 1)
        moved = replace(
            item,
            arrived_ms=at_ms,
            number=number,
            first_version=numbers[item.first_version],
            canonical_first=numbers.get(item.canonical_first),
            matched_number=numbers.get(item.matched_number),
        )
        detector.observe(moved, at_ms)
        if position % 9 == 0:
            list(detector.tick(at_ms))
    list(detector.tick(begin_ms + 60_000))
    (event,) = detector.events
    return event


@pytest.mark.services
async def test_an_unreachable_service_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration neither hangs nor raises another exception."""
    monkeypatch.setattr(demonstration, "REPEAT_S", 0.1)
    async with served() as (_, url):
        pass

    with pytest.raises(Unavailable, match="Connection refused"):
        await demonstration.replay(url, bodies(demo.load_rows()[:1]))


@pytest.mark.services
async def test_without_an_event_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report does not wait longer than the timeout."""
    monkeypatch.setattr(demonstration, "EVENT_TIMEOUT_S", 0.0)
    async with served(replace(QUICK, detector_interval_seconds=60.0)) as (_, url):
        report = await asyncio.wait_for(demonstration.replay(url, bodies(demo.load_rows()[:2])), HANG_LIMIT_S)

    assert report.events == []
    assert "no event was detected" in report.format_text(url)
