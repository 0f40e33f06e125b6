"""A small crawl in a separate process: python crawl.py SITE FIRST PAGES DATABASE [SETTING=VALUE ...].

The "database" is a file with one line per stored item, written by the last pipeline. Storing an item whose id
is listed in the environment variable POISON fails once, like a full disk.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response


class Normalizer:
    """A pipeline before the deduplication that replaces each item by another object."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """A copy."""
        return dict(item)


class Database:
    """The pipeline after the deduplication."""

    def __init__(self) -> None:
        self.poison = set(filter(None, os.environ.get("POISON", "").split(",")))

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Store the item, or fail."""
        if item["id"] in self.poison:
            self.poison.discard(item["id"])
            raise OSError("disk full")
        with open(sys.argv[4], "a", encoding="utf-8") as out:
            out.write(json.dumps({"id": item["id"], "dedup": item.get("dedup")}) + "\n")
        return item


class News(scrapy.Spider):
    """Requests every page of the site."""

    name = "news"

    async def start(self) -> AsyncIterator[Any]:
        """One request per page."""
        first, pages = map(int, sys.argv[2:4])
        for number in range(first, first + pages):
            yield scrapy.Request(f"{sys.argv[1]}/page/{number}")

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        """The article of a page, with the field names of this crawler."""
        yield {
            "id": response.url.rsplit("/", 1)[1],
            "headline": response.css("h1::text").get(),
            "maintext": response.css("p::text").getall(),
            "published_at": response.css("time::text").get(),
        }


process = CrawlerProcess(
    {
        "ITEM_PIPELINES": {
            Normalizer: 100,
            "aggregator_client.scrapy_pipeline.NewsDedupPipeline": 300,
            Database: 800,
        },
        "NEWSDEDUP_FIELDS": {"title": "headline", "text": "maintext"},
        "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
        "LOG_LEVEL": "INFO",
        "LOG_FILE": sys.argv[4] + ".log",
        "TELNETCONSOLE_ENABLED": False,
        **dict(pair.split("=", 1) for pair in sys.argv[5:]),
    }
)
crawler = process.create_crawler(News)
process.crawl(crawler)
process.start()
stats = {k: v for k, v in crawler.stats.get_stats().items() if k.startswith("newsdedup/")}
Path(sys.argv[4] + ".stats").write_text(json.dumps(stats), encoding="utf-8")
