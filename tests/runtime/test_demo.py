"""The demonstration stream: what it holds, and that its verdicts rest on texts, not on order or names."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
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
from aggregator.events.detection import BurstDetector, BurstRule, Event
from aggregator.http.app import make_app
from aggregator.runtime import demo
from aggregator.settings import Settings

# Every person, place, company and outlet of the stream, longest first where one holds another.
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
QUICK = Settings(store_url="memory", demo=True, detector_interval_seconds=0.1, log_level="WARNING")


@asynccontextmanager
async def served(settings: Settings = QUICK) -> AsyncIterator[tuple[Service, str]]:
    """The real application on a loopback port, detector running."""
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


def renamed(row: dict[str, Any]) -> dict[str, Any]:
    """The row with every name replaced; ids and addresses stay, to compare by."""
    pattern = re.compile("|".join(map(re.escape, sorted(NAMES, key=len, reverse=True))))
    changed = {
        name: pattern.sub(lambda found: NAMES[found[0]], row[name]) for name in ("title", "text", "source")
    }
    return {**row, **changed}


def shuffled(rows: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Another order."""
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    return rows


def test_the_stream_is_complete_and_in_order() -> None:
    """73 articles in order of time; each made of another names one before it; the event lies in four hours."""
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
    """The substitution of the tests below leaves none of the names behind, and makes none of them new."""
    rows = [renamed(row) for row in demo.load_rows()]
    text = "\n".join(row["title"] + row["text"] + row["source"] for row in rows)

    assert not [name for name in NAMES if name in text]
    assert len(set(NAMES.values())) == len(NAMES)


def test_an_article_is_dated_relative_to_now() -> None:
    """What the service is sent holds no answer in it."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    row = next(row for row in demo.load_rows() if row["role"] == "copy")

    body = demo.article_body(row, now)

    assert set(body) == {"id", "source", "url", "title", "text", "published_at"}
    assert (now - datetime.fromisoformat(body["published_at"])).total_seconds() == row["minutes_ago"] * 60


@pytest.mark.services
async def test_each_article_gets_the_verdict_it_was_written_for() -> None:
    """In order, over HTTP: copies are found, templates are not copies, new figures are told, the dam is an event."""
    async with served() as (_, url):
        report = await demo.replay(url)

    rows = {row["id"]: row for row in demo.load_rows()}
    for answer in report.answers:
        row = rows[answer["id"]]
        assert answer["verdict"] == EXPECTED[row["role"]], answer
        assert answer["updated_figures"] == (row["role"] == "updated"), answer
        if row["role"] in ("copy", "edited", "updated"):
            assert answer["duplicate_of"]["canonical_id"] == row["of"]
        if row["role"] == "related":
            assert answer["related"][0]["id"] == row["of"]
    assert len(report.events) == 1
    assert report.events[0]["size"] > 15
    said = report.format_text(url)
    assert f"{len(rows)} articles sent" in said
    assert f"{url}/v1/events/{report.events[0]['id']}" in said


@pytest.mark.services
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_order_and_names_do_not_matter(seed: int) -> None:
    """Shuffled, and with every name replaced: the same counts, and the event again."""
    expected = Counter(EXPECTED[row["role"]] for row in demo.load_rows())
    async with served() as (_, url):
        report = await demo.replay(url, rows=[renamed(row) for row in shuffled(demo.load_rows(), seed)])

    assert report.verdict_counts == expected
    assert len(report.events) == 1


async def test_the_event_holds_the_dam_alone_whenever_a_minute_begins() -> None:
    """Weights of terms are those of the minute: one that begins amid the reports parts some of them from the rest.

    Such a part may hold strangers when it comes to the event; the event does not show them.
    """
    rows, now = demo.load_rows(), datetime(2026, 3, 1, 12, tzinfo=UTC)
    roles = {row["id"]: row.get("of", "") or row["role"] for row in rows}
    of_the_dam = {id_ for id_, role in roles.items() if role == "event" or roles.get(role) == "event"}
    async with open_service(QUICK) as service:
        for row in rows:
            await service.ingest.submit(decode_article(json.dumps(demo.article_body(row, now)).encode()))
        items, _ = await service.index.read_stream({}, len(rows))

    for before_the_minute_ms in range(8_000, 16_000, 500):
        told = replayed(items, round(now.timestamp() * 1000) - before_the_minute_ms)

        assert set(told.items) <= of_the_dam, before_the_minute_ms
        assert 20 < told.peak <= told.size


def replayed(items: Sequence[StreamItem], begin_ms: int) -> Event:
    """The one event of ``items`` that arrive as the demonstration sends them, with a tick every two seconds."""
    detector, numbers = BurstDetector(BurstRule()), {}
    for place, item in enumerate(items):
        at_ms = begin_ms + place * 220
        number = numbers[item.number] = article_number_at(at_ms, place + 1)
        moved = {
            "arrived_ms": at_ms,
            "number": number,
            "first": numbers[item.first_version],
            "canonical_first": numbers.get(item.canonical_first),
            "matched_number": numbers.get(item.matched_number),
        }
        detector.observe(replace(item, **moved), at_ms)
        if place % 9 == 0:
            detector.tick(at_ms)
    detector.tick(begin_ms + 60_000)
    (event,) = detector.events
    return event


@pytest.mark.services
async def test_a_service_that_goes_away_is_one_sentence() -> None:
    """The demonstration must not end the server that shows it, nor hang."""
    async with served() as (_, url):
        pass

    with pytest.raises(demo.StoreUnavailable, match="stopped answering"):
        await demo.replay(url, rows=demo.load_rows()[:1])


@pytest.mark.services
async def test_without_an_event_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the detector has an end."""
    monkeypatch.setattr(demo, "EVENT_TIMEOUT_S", 0.0)
    async with served(replace(QUICK, detector_interval_seconds=60.0)) as (_, url):
        report = await asyncio.wait_for(demo.replay(url, rows=demo.load_rows()[:2]), 20)

    assert report.events == []
    assert "no event was found" in report.format_text(url)
