"""Settings and item fields of the Scrapy pipeline, without a crawl."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import scrapy
from aiohttp import web
from itemadapter import ItemAdapter
from scrapy.exceptions import CloseSpider, DropItem
from scrapy.utils.test import get_crawler

from aggregator.app import open_service
from aggregator.settings import Settings
from aggregator_client.errors import ConfigurationError
from aggregator_client.scrapy_pipeline import NewsDedupPipeline
from tests.client import misbehaving
from tests.client.test_connection import VERDICT, Gate
from tests.support.factories import story
from tests.support.fake_service import serving as http_serving
from tests.support.server_fixture import serving

ORIGINAL = {"id": "a", "canonical_id": "a", "distance": 0, "overlap": 1.0, "rule": "exact"}


def pipeline(**settings: object) -> NewsDedupPipeline:
    """A pipeline with these settings."""
    return NewsDedupPipeline.from_crawler(
        get_crawler(settings_dict={f"NEWSDEDUP_{name}": value for name, value in settings.items()})
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"FIELDS": {"body": "maintext"}},
            "NEWSDEDUP_FIELDS: unknown article field 'body'; allowed: id, url, title, text",
        ),
        ({"DEADLINE": "soon"}, "NEWSDEDUP_DEADLINE: expected a number, found 'soon'."),
        ({"ON_FAILURE": "closed", "RETRY_SECONDS": "1m"}, "NEWSDEDUP_RETRY_SECONDS: expected a number"),
        ({"ON_FAILURE": "shut"}, "NEWSDEDUP_ON_FAILURE: expected one of open, closed, found 'shut'."),
        ({"DUPLICATES": "keep"}, "NEWSDEDUP_DUPLICATES: expected one of drop, tag, found 'keep'."),
        (
            {"FAILURE": "closed"},
            "NEWSDEDUP_FAILURE: there is no such setting; did you mean NEWSDEDUP_ON_FAILURE?",
        ),
        ({"TIMEZONE": "Berlin"}, "NEWSDEDUP_TIMEZONE: expected a time zone such as Europe/Berlin"),
        (
            {"CONCURRENCY": 0},
            "NEWSDEDUP_URL, NEWSDEDUP_CONCURRENCY: concurrency: expected 1 or more, found 0.",
        ),
        (
            {"URL": "localhost:8080"},
            "NEWSDEDUP_URL, NEWSDEDUP_CONCURRENCY: 'localhost:8080' is not an http:// or https:// URL.",
        ),
    ],
)
def test_an_invalid_setting_stops_the_start(settings: dict[str, object], message: str) -> None:
    """After NotConfigured Scrapy would continue without the pipeline, and all items would pass unchecked."""
    with pytest.raises(ConfigurationError) as raised:
        pipeline(**settings)

    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Fri, 20 Nov 2026 09:00:00 +01:00", "2026-11-20T08:00:00+00:00"),
        (["Fri, 20 Nov 2026 09:00:00 CET", "2026-11-21"], "2026-11-20T08:00:00+00:00"),
        (time.gmtime(1795161600), "2026-11-20T08:00:00+00:00"),
        ([1795161600], "2026-11-20T08:00:00+00:00"),
        ("2026-11-20 17:00:00", "2026-11-20T08:00:00+00:00"),
        ("Fri, 20 Nov 2026 17:00:00 or so", None),
        ("last Friday", None),
    ],
)
async def test_dates_of_items_are_read_in_any_form(value: object, expected: str | None) -> None:
    """Local times in the declared zone."""
    dedup = pipeline(TIMEZONE="Asia/Tokyo")
    article = dedup._to_article(ItemAdapter({"title": "Ferry", "text": story(1), "published_at": value}))
    await dedup.close_spider()

    assert article.get("published_at") == expected
    assert dedup._stats is not None
    assert dedup._stats.get_value("newsdedup/unread_date", 0) == (expected is None)


@pytest.mark.parametrize(
    ("item", "id_"),
    [
        ({"id": 7, "url": "https://www.gazette.example/ferry"}, "gazette.example:7"),
        ({"id": ["7"], "url": ["https://herald.example/a"]}, "herald.example:7"),
        ({"id": "https://gazette.example/?p=7", "url": "https://gazette.example/ferry"}, None),
        ({"id": "7", "url": "http://127.0.0.1:8751/a"}, "127.0.0.1:8751:7"),
        ({"id": "7", "url": "https://gazette.example:443/a"}, "gazette.example:7"),
        ({"id": "7"}, None),
    ],
)
def test_an_id_gets_the_host_of_its_item(item: dict[str, object], id_: str | None) -> None:
    """Two sites that count from 1 have no id in common, also at two ports of one machine."""
    article = pipeline()._to_article(ItemAdapter(item))
    assert article["id"] == (id_ or item["id"])


@pytest.mark.services
async def test_an_item_with_an_unreadable_date_is_checked(caplog: pytest.LogCaptureFixture) -> None:
    """The date is omitted and counted; an item without text is logged once."""
    async with serving(store_url="memory") as url:
        dedup = pipeline(URL=url, FIELDS={"text": "maintext"}, ON_FAILURE="closed")
        first = {"id": "a", "maintext": story(1), "published_at": "yesterday"}
        assert (await dedup.process_item(first))["dedup"]["verdict"] == "new"
        with pytest.raises(DropItem, match="duplicate of a"):
            await dedup.process_item({**first, "id": "b"})
        for id_ in ("c", "d"):
            await dedup.process_item({"id": id_, "title": f"Ferry {id_}", "text": story(2), "maintext": []})
        await dedup.close_spider()

    assert dedup._stats is not None and dedup._stats.get_value("newsdedup/unread_date") == 2
    assert [r.getMessage() for r in caplog.records if "only a headline" in r.getMessage()] == [
        "an item has nothing in 'maintext' or 'html', so that only a headline can be checked: "
        "its page has no text, or NEWSDEDUP_FIELDS has to name other fields"
    ]


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_an_unknown_policy_of_one_item_loses_no_item(mode: str, tmp_path: Path) -> None:
    """As with a wrong key, the item is not at fault: it passes unchecked, or is held when failing closed."""
    held = tmp_path / "held.jsonl"
    async with open_service(Settings(store_url="memory")) as service, http_serving(service) as client:
        url, fields = str(client.make_url("")), {"policy": "dedup_policy"}
        dedup = pipeline(URL=url, FIELDS=fields, ON_FAILURE=mode, HELD=str(held), DEADLINE=60)
        item = {"id": "a", "text": story(1), "dedup_policy": "defualt"}
        if mode == "open":
            assert (await dedup.process_item(item))["dedup"]["verdict"] == "unknown"
        else:
            with pytest.raises(DropItem, match=r"held in .*; did you mean 'default'"):
                await dedup.process_item(item)
            assert '"policy": "defualt"' in held.read_text()
        await dedup.close_spider()

    counts = dedup._stats.get_stats() if dedup._stats is not None else {}
    assert (counts.get("newsdedup/unchecked/policy"), counts.get("newsdedup/rejected")) == (1, None)


@pytest.mark.services
@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_a_wrong_key_loses_no_item(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failing open it passes unchecked; failing closed it is held, as without an answer."""
    held = tmp_path / "held.jsonl"
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "k" * 32)
    async with serving(store_url="memory") as url:
        dedup = pipeline(URL=url, KEY="wrong", ON_FAILURE=mode, HELD=str(held), DEADLINE=60)
        item = {"id": "a", "text": story(1)}
        if mode == "open":
            assert (await dedup.process_item(item))["dedup"]["verdict"] == "unknown"
        else:
            with pytest.raises(DropItem, match="held in"):
                await dedup.process_item(item)
            assert held.read_text().startswith('{"id": "a"')
        await dedup.close_spider()


@pytest.mark.integration
@pytest.mark.parametrize(("setting", "query"), [({}, {}), ({"BACKFILL": "True"}, {"backfill": "true"})])
async def test_a_crawl_of_an_archive_declares_its_items(
    setting: dict[str, str], query: dict[str, str]
) -> None:
    """As a backfill, which fires no events."""
    queries: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        return web.json_response(VERDICT)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30, **setting)
        await dedup.process_item({"id": "a", "text": story(1)})
        await dedup.close_spider()

    assert queries == [query]


@pytest.mark.integration
async def test_a_duplicate_with_news_passes(caplog: pytest.LogCaptureFixture) -> None:
    """Its tag and the log say why, and it is counted apart from those that are dropped."""
    answer = {**VERDICT, "verdict": "duplicate", "adds": 0.4, "duplicate_of": ORIGINAL, "keep_reason": "adds"}
    caplog.set_level(logging.INFO, "aggregator_client")

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(answer)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30)
        item = await dedup.process_item({"id": "b", "text": story(1)})
        counts = dedup._outcomes.counts
        await dedup.close_spider()

    tag = item["dedup"]
    assert (tag["verdict"], tag["keep"], tag["keep_reason"]) == ("duplicate", True, "adds")
    assert "Kept b: duplicate of a (exact, adds 0.4); enough of its words are new" in caplog.messages
    assert (counts["duplicate"], counts["duplicate/kept"]) == (1, 1)


@pytest.mark.integration
async def test_an_item_of_an_untrusted_source_is_dropped_and_counted() -> None:
    """The service does not store it, so the site does not either; the reason names the source."""
    answer = {**VERDICT, "keep": False, "stored": False, "problems": ["untrusted"]}

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(answer)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30)
        with pytest.raises(DropItem, match="its source is untrusted"):
            await dedup.process_item({"id": "b", "text": story(1)})
        counts = dedup._outcomes.counts
        await dedup.close_spider()

    assert counts["problem/untrusted"] == 1


async def answered(answer: dict[str, object], item: dict[str, str], **settings: object) -> NewsDedupPipeline:
    """A pipeline, closed, after a service gave this answer on the item; raises DropItem."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(answer)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30, **settings)
        try:
            await dedup.process_item(item)
        finally:
            await dedup.close_spider()
    return dedup


@pytest.mark.integration
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("named", "id_", "page"),
    [
        ({"url": "http://gazette.example/9"}, "gazette.example:81/1", "http://gazette.example:81/1"),
        ({"url": "http://gazette.example/9", "id": "b"}, "gazette.example/1", "http://gazette.example/1"),
        ({"url": "http://gazette.example/9", "id": "b"}, "gazette.example:n/1", "gazette.example:n/1"),
        ({"id": "b"}, "gazette.example:1", "gazette.example:1"),
        ({}, "gazette.example/1", "gazette.example/1"),
    ],
)
async def test_an_id_that_is_withdrawn_is_logged(
    keep: bool, named: dict[str, str], id_: str, page: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the item passes or is dropped, so that it can be crawled: an id that is an address as such."""
    duplicate = {"verdict": "duplicate", "duplicate_of": ORIGINAL, "keep": False}
    answer = {
        **VERDICT,
        **({} if keep else duplicate),
        "withdrawn": [id_, id_ + "0"],
    }
    item = {**named, "text": story(1)}
    if keep:
        dedup = await answered(answer, item)
        assert dedup._stats is not None and dedup._stats.get_value("newsdedup/withdrawn") == 2
    else:
        with pytest.raises(DropItem):
            await answered(answer, item)

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"crawl {page + end} again: it is no article, or repeats one that lost its id" for end in ("", "0")
    ]


@pytest.mark.integration
async def test_the_tag_has_what_a_spider_acts_on() -> None:
    """Problems of the extraction, and how a duplicate differs."""
    facts = {
        "adds": 0.4, "updated_figures": True, "reversed": True, "problems": ["cut"], "withdrawn": ["a:1"],
    }  # fmt: skip
    item: dict[str, Any] = {"id": "b", "text": story(1)}
    await answered({**VERDICT, **facts}, item)
    assert {name: item["dedup"][name] for name in facts} == facts


@pytest.mark.integration
async def test_the_tag_without_an_answer_has_the_same_fields(free_port: int) -> None:
    """A spider handles it like any other tag: lists are empty, unknown values None."""
    dedup = pipeline(URL=f"http://127.0.0.1:{free_port}", DEADLINE=0.1)
    tag = (await dedup.process_item({"id": "b", "text": story(1)}))["dedup"]
    await dedup.close_spider()

    assert (tag["verdict"], tag["problems"], tag["withdrawn"], tag["related"]) == ("unknown", [], [], [])
    assert (tag["adds"], tag["updated_figures"], tag["reversed"]) == (None, None, None)


@dataclass
class Untagged:
    """An item without a field for the tag."""

    id: str
    text: str


class ScrapyItem(scrapy.Item):
    """Likewise."""

    id = scrapy.Field()
    text = scrapy.Field()


@pytest.mark.integration
@pytest.mark.parametrize("item_class", [Untagged, ScrapyItem])
async def test_an_item_without_a_field_for_the_tag_stops_a_crawl_that_tags(item_class: Any) -> None:
    """Its duplicates would reach the database unmarked; what was reserved for it is removed."""
    requests, reasons = [], []

    async def handler(request: web.Request) -> web.Response:
        requests.append((request.method, request.path))
        return web.json_response({**VERDICT, "created": True})

    class Engine:
        async def close_spider_async(self, *, reason: str) -> None:
            reasons.append(reason)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30, DUPLICATES="tag")
        dedup._crawler.engine = Engine()  # type: ignore[assignment]
        for id_ in ("a", "b"):
            item = item_class(id=id_, text=story(1))
            with pytest.raises(ConfigurationError) as raised:
                await dedup.process_item(item)
            await dedup._on_failed(item)
        await dedup.close_spider()

    assert str(raised.value) == (
        f"{item_class.__name__} has no field 'dedup' for the tag of the deduplication; "
        "declare it, or name another one by NEWSDEDUP_TAG_FIELD. The spider is stopped."
    )
    assert reasons == ["newsdedup_no_tag_field"]
    assert requests == [("POST", "/v1/articles"), ("DELETE", "/v1/articles/a")] * 2


@pytest.mark.integration
async def test_an_item_without_a_field_for_the_tag_passes_a_crawl_that_drops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is not a duplicate; one warning per class says what is missing."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(VERDICT)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30)
        for item_class in (Untagged, ScrapyItem, Untagged):
            item = item_class(id="a", text=story(1))
            assert await dedup.process_item(item) is item
        await dedup.close_spider()

    warnings = [record.getMessage() for record in caplog.records if "for the tag" in record.getMessage()]
    assert [warning.split(";")[0] for warning in warnings] == [
        f"{name} has no field 'dedup' for the tag of the deduplication" for name in ("Untagged", "ScrapyItem")
    ]


@pytest.mark.integration
@pytest.mark.parametrize(("keep", "mode"), [(False, "drop"), (False, "tag"), (True, "drop")])
async def test_a_copy_under_the_id_of_another_article_is_logged(
    keep: bool, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its row is stale, whether the item is dropped or passes; one to be kept replaces it."""
    duplicate = {"verdict": "duplicate", "duplicate_of": ORIGINAL, "keep": keep}
    item = {"url": "https://post.example/b", "text": story(1)}
    dropped = contextlib.nullcontext() if keep or mode == "tag" else pytest.raises(DropItem)
    with dropped:
        dedup = await answered({**VERDICT, **duplicate, "reused_id": True}, item, DUPLICATES=mode)
        assert dedup._stats is not None
        assert dedup._stats.get_value("newsdedup/reused_id") == (None if keep else 1)

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "https://post.example/b had another text, maybe a stub, and is a copy: delete its row"
    ] * (not keep)


@pytest.mark.integration
async def test_without_a_tag_field_items_stay_as_they_are() -> None:
    """An empty name adds no field."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(VERDICT)

    async with misbehaving.serving(handler) as url:
        dedup = pipeline(URL=url, DEADLINE=30, TAG_FIELD="")
        item = await dedup.process_item({"id": "b", "text": story(1)})
        await dedup.close_spider()

    assert item == {"id": "b", "text": story(1)}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "duplicate of a (exact, adds None)"),
        ({"adds": 0.15, "updated_figures": True}, "duplicate of a (exact, adds 0.15), with other figures"),
        (
            {"adds": 0.0, "updated_figures": True, "reversed": True, "problems": ["cut", "no_time"]},
            "duplicate of a (exact, adds 0.0), with other figures and a reversed statement "
            "(problems: cut, no_time)",
        ),
    ],
)
async def test_a_duplicate_is_logged_in_one_line(
    facts: dict[str, object], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With its URL, the original and how it differs; Scrapy's line with the whole item is suppressed."""
    caplog.set_level("INFO", "aggregator_client.scrapy_pipeline")
    answer = {**VERDICT, "id": "b", "verdict": "duplicate", "keep": False, "duplicate_of": ORIGINAL, **facts}
    with pytest.raises(DropItem) as raised:
        await answered(answer, {"id": "b", "url": "http://news.example/b", "text": story(1)})

    line = f"Dropped http://news.example/b: {reason}"
    assert [record.getMessage() for record in caplog.records if record.name.startswith("aggregator")] == [
        line
    ]
    assert (str(raised.value), raised.value.log_level) == (line, "NOTSET")


@pytest.mark.services
@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_a_policy_that_the_service_lacks_stops_the_start(mode: str, tmp_path: Path) -> None:
    """In both modes: every item would be rejected, and pass."""
    async with serving(store_url="memory") as url:
        dedup = pipeline(URL=url, ON_FAILURE=mode, POLICY="no&pe", HELD=str(tmp_path / "held"))
        with pytest.raises(ConfigurationError, match="policy: unknown profile 'no&pe'; known: default"):
            await dedup.open_spider()
        await dedup.close_spider()
        known = pipeline(URL=url, ON_FAILURE=mode, POLICY="default")
        await known.open_spider()
        await known.close_spider()


@pytest.mark.integration
@pytest.mark.usefixtures("virtual_time")
async def test_the_service_is_checked_at_the_start(
    free_port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Failing open the crawl continues with an error in its log; failing closed the spider is stopped."""
    url = f"http://127.0.0.1:{free_port}"
    opened = pipeline(URL=url, DEADLINE=30)
    await opened.open_spider()
    await opened.close_spider()
    closed = pipeline(URL=url, ON_FAILURE="closed", RETRY_SECONDS=30, HELD=str(tmp_path / "held"))
    with pytest.raises(CloseSpider) as raised:
        await closed.open_spider()
    await closed.close_spider()

    assert raised.value.reason == "newsdedup_not_ready"
    problem = f"The service is not ready: {url}: Connection refused."
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        f"items will pass unchecked: {problem}",
        f"the spider is stopped: {problem}",
    ]


@pytest.mark.integration
async def test_a_crawl_that_outruns_the_service_keeps_few_requests_in_flight(tmp_path: Path) -> None:
    """100 items at once, as Scrapy sends them: 4 requests in flight, none unchecked."""
    gate = Gate()
    async with misbehaving.serving(gate.handle) as url:
        dedup = pipeline(URL=url, CONCURRENCY=4, DEADLINE=60)
        items = [{"id": str(number), "text": story(number)} for number in range(100)]
        tasks = [asyncio.create_task(dedup.process_item(item)) for item in items]
        await gate.full.wait()
        gate.open.set()
        await asyncio.gather(*tasks)
        await dedup.close_spider()

    assert gate.peak <= 4
    assert dedup._stats is not None and dedup._stats.get_value("newsdedup/checked") == 100


@pytest.mark.parametrize(
    ("settings", "item", "policy"),
    [
        ({}, {"policy": "no paywall"}, None),
        ({"POLICY": "wire"}, {}, "wire"),
        ({"FIELDS": {"policy": "dedup_policy"}}, {"dedup_policy": "wire"}, "wire"),
        ({"FIELDS": {"policy": "dedup_policy"}, "POLICY": "wire"}, {"dedup_policy": "paper"}, "paper"),
    ],
)
async def test_items_name_a_policy_profile_if_configured(
    settings: dict[str, object], item: dict[str, str], policy: str | None
) -> None:
    """One for all items, or a mapped field; an item's own field ``policy`` means something else."""
    dedup = pipeline(**settings)
    article = dedup._to_article(ItemAdapter({"title": "Ferry", "text": story(1), **item}))
    await dedup.close_spider()

    assert article.get("policy") == policy
