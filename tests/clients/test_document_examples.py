"""The Python examples of README.md and docs/integrations.md are executed."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from scrapy.settings import Settings as ScrapySettings
from scrapy.signalmanager import SignalManager

from aggregator.app import open_service
from aggregator.clients import Client
from aggregator.clients.scrapy_pipeline import NewsDedupPipeline
from aggregator.http.app import make_app
from aggregator.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "integrations.md")
EXAMPLES = [
    example
    for document in DOCUMENTS
    for example in re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
]


async def test_the_client_example_stores_what_it_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a deadline that is long enough for a busy machine."""
    monkeypatch.setattr("aggregator.clients.client.Client.__init__.__kwdefaults__", _with_long_deadline())
    example = next(text for text in EXAMPLES if "SyncClient" in text)
    inserted: list[Any] = []
    async with open_service(Settings(store_url="memory")) as service, TestServer(make_app(service)) as server:
        code = example.replace("http://127.0.0.1:8080", str(server.make_url("")))
        await asyncio.to_thread(exec, code, {"insert": inserted.append})
        stored = await service.index.articles.get("ferry-1")

    assert [article["id"] for article in inserted] == [stored.record.id]


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


def _with_long_deadline() -> dict[str, Any]:
    return {**(Client.__init__.__kwdefaults__ or {}), "deadline_s": 30.0}
