"""The Python examples of README.md, docs/integrations.md and the client's README.md are executed."""

from __future__ import annotations

import asyncio
import re
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT, literal_eval
from configparser import RawConfigParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from aiohttp.test_utils import TestServer
from scrapy.exceptions import DropItem
from scrapy.settings import Settings as ScrapySettings
from scrapy.signalmanager import SignalManager
from scrapy.utils.test import get_crawler

from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.settings import Settings
from aggregator_client import Client
from aggregator_client.scrapy_pipeline import NewsDedupPipeline
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "integrations.md")
EXAMPLES = [
    example
    for document in DOCUMENTS
    for example in re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.mark.integration
async def test_the_client_example_stores_what_it_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a deadline that is long enough for a busy machine."""
    monkeypatch.setattr("aggregator_client.client.Client.__init__.__kwdefaults__", _with_long_deadline())
    example = next(text for text in EXAMPLES if "SyncClient" in text)
    inserted: list[Any] = []
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
    ):
        code = example.replace("http://127.0.0.1:8080", str(server.make_url("")))
        await asyncio.to_thread(exec, code, {"insert": inserted.append})
        stored = await service.articles.index.articles.get("ferry-1")

    assert [article["id"] for article in inserted] == [stored.record.id]


@pytest.mark.integration
async def test_the_asyncio_example_stores_what_it_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the client's README.md, which shows the blocking client, too."""
    monkeypatch.setattr("aggregator_client.client.Client.__init__.__kwdefaults__", _with_long_deadline())
    text = (ROOT / "packages" / "client" / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n([^`]*async with [^`]*)```", text)
    inserted: list[str] = []

    async def insert(title: str, _: str) -> None:
        inserted.append(title)

    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
    ):
        code = example.replace("http://127.0.0.1:8080", str(server.make_url("")))
        article = {"url": "https://post.example/a", "title": "Ferry runs again", "text": story(1)}
        run = compile(code, "README.md", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT)
        await eval(run, {"insert": insert, **article})
        stored = await service.articles.index.articles.get("post.example/a")

    assert inserted == [stored.record.title]


@pytest.mark.parametrize("text", [text for text in EXAMPLES if "ITEM_PIPELINES" in text])
async def test_the_scrapy_example_configures_the_pipeline(text: str) -> None:
    """The class exists, and all settings are documented."""
    given: dict[str, Any] = {}
    exec(text, given)
    settings = {name: value for name, value in given.items() if name.isupper()}
    crawler: Any = SimpleNamespace(settings=ScrapySettings(settings), stats=None, signals=SignalManager())
    documented = sys.modules[NewsDedupPipeline.__module__].__doc__ or ""

    assert list(settings["ITEM_PIPELINES"]) == [f"{NewsDedupPipeline.__module__}.NewsDedupPipeline"]
    assert all(f"| {name} |" in documented for name in settings if name.startswith("NEWSDEDUP"))
    await NewsDedupPipeline.from_crawler(crawler).close_spider()


class NewsPleaseItem(scrapy.Item):
    """The fields of a news-please item that the example names, and one more."""

    url = scrapy.Field()
    source_domain = scrapy.Field()
    article_title = scrapy.Field()
    article_text = scrapy.Field()
    article_language = scrapy.Field()
    article_publish_date = scrapy.Field()
    local_path = scrapy.Field()


@pytest.mark.integration
async def test_the_news_please_example_drops_duplicates() -> None:
    """Read as news-please reads its file; the items have its types: the source is bytes."""
    text = (ROOT / "docs" / "guides" / "news-please.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```ini[^\n]*\n(.*?)```", text, re.DOTALL)
    parser = RawConfigParser()
    parser.read_string(example)
    settings = {name.upper(): _literal(value) for name, value in parser["Scrapy"].items()}
    settings["NEWSDEDUP_DEADLINE"] = HANG_LIMIT_S
    known = {
        "source_domain": b"coast.example",
        "article_title": "Ferry runs again",
        "article_text": story(1),
        "article_language": "en",
        "article_publish_date": "2026-11-20 08:00:00",
        "local_path": "a.html",
    }

    assert f"{NewsDedupPipeline.__module__}.NewsDedupPipeline" in settings["ITEM_PIPELINES"]
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
        TestServer(make_app(service)) as server,
    ):
        assert settings["NEWSDEDUP_URL"] == "http://127.0.0.1:8080"
        settings["NEWSDEDUP_URL"] = str(server.make_url(""))
        pipeline = NewsDedupPipeline.from_crawler(get_crawler(settings_dict=settings))
        await pipeline.process_item(NewsPleaseItem(known, url="https://coast.example/a"))
        with pytest.raises(DropItem, match=r"b: duplicate of coast\.example/a"):
            await pipeline.process_item(NewsPleaseItem(known, url="https://coast.example/b"))
        record = (await service.articles.index.articles.get("coast.example/a")).record
        await pipeline.close_spider()

    assert (record.source, record.title) == ("coast.example", "Ferry runs again")
    assert record.published_at_ms is not None


def _literal(text: str) -> Any:
    try:
        return literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _with_long_deadline() -> dict[str, Any]:
    return {**(Client.__init__.__kwdefaults__ or {}), "deadline_s": 30.0}
