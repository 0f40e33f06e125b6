"""A small crawl, run as a process of its own: python crawl.py SITE PAGES DATABASE [SETTING=VALUE ...]

The "database" is a file with one line per item that came through, written by the last pipeline; an item whose
id the environment variable POISON names fails there once, as a full disk would make it.
"""

import json
import os
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess


class Database:
    """The pipeline behind ours."""

    def __init__(self) -> None:
        self.poison = set(filter(None, os.environ.get("POISON", "").split(",")))

    def process_item(self, item):
        """Insert, or fail."""
        if item["id"] in self.poison:
            self.poison.discard(item["id"])
            raise OSError("disk full")
        with open(sys.argv[3], "a", encoding="utf-8") as out:
            out.write(json.dumps({"id": item["id"], "dedup": item.get("dedup")}) + "\n")
        return item


class News(scrapy.Spider):
    """Every page of the site, in order of their numbers as far as the net allows."""

    name = "news"

    async def start(self):
        """One request per page."""
        for number in range(int(sys.argv[2])):
            yield scrapy.Request(f"{sys.argv[1]}/page/{number}")

    def parse(self, response):
        """The article of a page, under the field names of this crawler."""
        yield {
            "id": response.url.rsplit("/", 1)[1],
            "headline": response.css("h1::text").get(),
            "maintext": response.css("p::text").getall(),
        }


process = CrawlerProcess(
    {
        "ITEM_PIPELINES": {"aggregator.clients.scrapy_pipeline.NewsDedupPipeline": 300, Database: 800},
        "NEWSDEDUP_FIELDS": {"title": "headline", "text": "maintext"},
        "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
        **dict(pair.split("=", 1) for pair in sys.argv[4:]),
    }
)
crawler = process.create_crawler(News)
process.crawl(crawler)
process.start()
stats = {k: v for k, v in crawler.stats.get_stats().items() if k.startswith("newsdedup/")}
Path(sys.argv[3] + ".stats").write_text(json.dumps(stats), encoding="utf-8")
