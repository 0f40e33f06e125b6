"""Scrapy item pipeline that drops or tags duplicate items.

    ITEM_PIPELINES = {"aggregator_client.scrapy_pipeline.NewsDedupPipeline": 300, "...your database...": 800}
    NEWSDEDUP_URL = "http://127.0.0.1:8080"

| setting | default | meaning |
| --- | --- | --- |
| NEWSDEDUP_URL | http://127.0.0.1:8080 | URL of the service |
| NEWSDEDUP_KEY | | API key, if the service requires one |
| NEWSDEDUP_DUPLICATES | drop | "drop" raises DropItem for duplicates not to keep, "tag" passes them on |
| NEWSDEDUP_ON_FAILURE | open | without a verdict: "open" passes the item, "closed" retries |
| NEWSDEDUP_DEADLINE | 2 | seconds from sending until an item passes as "unknown", when failing open |
| NEWSDEDUP_RETRY_SECONDS | 60 | seconds of retries when failing closed; then the item is dropped ... |
| NEWSDEDUP_HELD | newsdedup-held.jsonl | ... and appended to this file, unmapped to ...-items.jsonl |
| NEWSDEDUP_CONCURRENCY | 8 | requests in flight; further items wait |
| NEWSDEDUP_FIELDS | {} | article field -> item field, e.g. {"text": "body", "published_at": "date"} |
| NEWSDEDUP_POLICY | | policy profile for all items; by default the source selects it |
| NEWSDEDUP_TIMEZONE | | where dates without an offset are local, e.g. Europe/Berlin |
| NEWSDEDUP_BACKFILL | False | the crawl reads an archive: its items get verdicts and fire no events |
| NEWSDEDUP_TAG_FIELD | dedup | field of an item that passes for its tag, to be declared; "": none |

An invalid setting stops the crawl, such as a policy that the service does not have. At the start the pipeline
checks that the service is ready and accepts the key. If not, it logs an error, and when failing closed stops
the spider after NEWSDEDUP_RETRY_SECONDS.

Items wait for a free request, so a service that is slower than the spider slows the spider down: Scrapy
downloads no more pages while those in processing exceed SCRAPER_SLOT_MAX_ACTIVE_SIZE. While a service that
fails open does not answer, 8 items pass every 2 s.

Dates may be RFC 3339, RFC 2822, Unix time or ``datetime``. One that cannot be read for certain, such as a
local time without NEWSDEDUP_TIMEZONE, is omitted and counted as ``unread_date``. An id that is no address
gets the host of the item's URL before it: sites count from 1.

The tag has ``verdict``, ``keep``, ``id`` and ``canonical_id`` of the Decision, the ids that are ``related``,
and ``event_id``, ``keep_reason``, ``adds``, ``updated_figures``, ``reversed``, ``problems`` and ``withdrawn``
of the answer. Each ``withdrawn`` id is logged as a warning and counted as ``newsdedup/withdrawn``: its text
is a wall or notice, or was dropped for an article whose id has another one now. Crawl its page again, in the
same crawl with ``dont_filter``. So is a copy under such an id as ``newsdedup/reused_id``: delete its row.

Put the pipeline directly before the one that stores. When a later pipeline raises or drops the item, the
reservation is removed, so that other copies are no duplicates of it. Needs Scrapy >= 2.14 (asyncio reactor).

No item passes unchecked unseen: each is counted in the crawl's stats (``newsdedup/checked`` and its parts by
verdict, ``newsdedup/unchecked`` and its parts by reason such as ``newsdedup/unchecked/timeout``), reported by
a warning at most once a minute, and by an error at the end if more than 1 % passed. An item that the service
rejects, such as one without a text, passes in both modes and is counted as ``newsdedup/rejected``; one with
an unknown policy is unchecked. An item of an untrusted source is dropped as duplicates are. A dropped item is
logged in one line (a held one at level DEBUG), and a kept duplicate with the reason, both with the rule
(exact, hamming, overlap), the share of its words that it adds, and its problems. Those of all are counted as
``newsdedup/problem/NAME`` and logged in one line at the end.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import tzinfo
from pathlib import Path
from typing import Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DropItem

from aggregator_client.client import CONCURRENCY, DEADLINE_S, Client
from aggregator_client.dates import time_zone, with_parsed_date
from aggregator_client.decision import ARTICLE_FIELDS, TAKEN_DOWN, Decision
from aggregator_client.errors import ConfigurationError, Unavailable
from aggregator_client.feed_ids import global_id, host_of
from aggregator_client.outcomes import Outcomes
from aggregator_client.wire import KEEP_REASONS, VerdictOut

log = logging.getLogger(__name__)

_SETTINGS = frozenset(f"NEWSDEDUP_{name}" for name in (
    "URL", "KEY", "DUPLICATES", "ON_FAILURE", "DEADLINE", "RETRY_SECONDS", "HELD", "CONCURRENCY", "FIELDS",
    "POLICY", "TIMEZONE", "BACKFILL", "TAG_FIELD",
))  # fmt: skip
# Decision on the item that passed last in this task. Scrapy sends the signals of an item from the task that
# runs its pipelines, with the first or the last item object, maybe not the one seen here.
_passed: ContextVar[list[Decision] | None] = ContextVar("_passed", default=None)


def _take_passed() -> Decision | None:
    decisions = _passed.get()
    return decisions.pop() if decisions else None


class NewsDedupPipeline:
    """See the module."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler, self._stats = crawler, crawler.stats
        _refuse_unknown(settings)
        self._duplicate_mode = _parse_choice(settings, "NEWSDEDUP_DUPLICATES", "drop", "tag")
        self._fails_closed = _parse_choice(settings, "NEWSDEDUP_ON_FAILURE", "open", "closed") == "closed"
        self._held_path = Path(settings.get("NEWSDEDUP_HELD", "newsdedup-held.jsonl"))
        self._tag_field = settings.get("NEWSDEDUP_TAG_FIELD", "dedup")
        self._field_map = _parse_field_map(settings.getdict("NEWSDEDUP_FIELDS"))
        self._policy = settings.get("NEWSDEDUP_POLICY", "")
        self._warnings: set[str] = set()
        self._stop: asyncio.Future[None] | None = None
        deadline_s = _parse_number(settings, "NEWSDEDUP_DEADLINE", DEADLINE_S)
        retry_s = _parse_number(settings, "NEWSDEDUP_RETRY_SECONDS", 60.0)
        self._deadline_s = retry_s if self._fails_closed else deadline_s
        self._zone = _parse_zone(settings.get("NEWSDEDUP_TIMEZONE", ""))
        self._outcomes = Outcomes(
            "items",
            f"got no verdict (held in {self._held_path})" if self._fails_closed else "passed unchecked",
            on_count=self._count,
        )
        try:
            self._client = Client(
                settings.get("NEWSDEDUP_URL", "http://127.0.0.1:8080"),
                key=settings.get("NEWSDEDUP_KEY", ""),
                deadline_s=self._deadline_s,
                on_failure="closed" if self._fails_closed else "open",
                backfill=settings.getbool("NEWSDEDUP_BACKFILL"),
                concurrency=int(_parse_number(settings, "NEWSDEDUP_CONCURRENCY", CONCURRENCY)),
                outcomes=self._outcomes,
            )
        except ConfigurationError as error:
            raise ConfigurationError(f"NEWSDEDUP_URL, NEWSDEDUP_CONCURRENCY: {error}") from None
        crawler.signals.connect(_take_passed, signals.item_scraped)
        crawler.signals.connect(self._on_failed, signals.item_error)
        crawler.signals.connect(self._on_failed, signals.item_dropped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NewsDedupPipeline:
        """Called by Scrapy."""
        return cls(crawler)

    async def open_spider(self) -> None:
        """Check the service; called by Scrapy. Raises CloseSpider if it is not ready, when failing closed.

        Raises ConfigurationError, in both modes, if it has no profile NEWSDEDUP_POLICY.
        """
        problem = await self._client.readiness_problem(self._deadline_s, policy=self._policy)
        if not problem:
            return
        if self._fails_closed:
            log.error("the spider is stopped: %s", problem)
            raise CloseSpider("newsdedup_not_ready")
        log.error("items will pass unchecked: %s", problem)

    async def close_spider(self) -> None:
        """Close the connections and report the items that passed unchecked; called by Scrapy."""
        await self._client.close()

    async def process_item(self, item: Any) -> Any:
        """The item, tagged. Raises DropItem for a duplicate not to keep, and for one held, failing closed."""
        article = self._to_article(ItemAdapter(item))
        try:
            decision = await self._client.submit(article)
        except (Unavailable, ConfigurationError) as error:
            decision = Decision("unknown", problem=str(error))
        if self._fails_closed and decision.verdict == "unknown":
            self._hold(article, item)
            raise _dropped(article, f"held in {self._held_path}: {decision.problem}", logging.DEBUG)
        if decision.kind == "refused":  # an article that cannot be checked must not be lost
            log.info("%s was rejected and passes: %s", _name_of(article), decision.problem)
        if decision.kind == TAKEN_DOWN:
            raise _dropped(article, decision.problem)
        answer = decision.answer
        for id_ in answer.withdrawn if answer else ():
            # An id that is an address has no scheme; one of the site follows its host and a colon.
            is_address = "id" not in article or "/" in id_.partition(":")[0]
            scheme = "".join(article.get("url", "").partition("//")[:2]) if is_address else ""
            log.warning("crawl %s again: it is no article, or repeats one that lost its id", scheme + id_)
            self._count("withdrawn")
        if answer and answer.reused_id and not answer.keep:
            log.warning("%s had another text, maybe a stub, and is a copy: delete its row", _name_of(article))
            self._count("reused_id")
        if answer and not answer.keep and self._duplicate_mode == "drop":
            raise _dropped(article, _match_of(answer))
        if answer and answer.keep_reason:
            reason = KEEP_REASONS[answer.keep_reason]
            log.info("Kept %s: %s; %s", _name_of(article), _match_of(answer), reason)
        _passed.set([decision])
        if self._tag_field:
            self._tag(item, decision)
        return item

    def _to_article(self, item: ItemAdapter) -> dict[str, Any]:
        article = {
            name: _to_field_value(name, value)
            for name, field in self._field_map.items()
            if (value := item.get(field)) not in (None, "", [], ())
        }
        if "id" in article:
            article["id"] = global_id(str(article["id"]), host_of(article.get("url") or ""))
        if self._policy:
            article.setdefault("policy", self._policy)
        dated, unread = with_parsed_date(article, self._zone)
        if unread:
            self._outcomes.add_unread_date(article)
        if "text" not in article and "html" not in article:
            text, html = self._field_map["text"], self._field_map["html"]
            self._warn_once(
                f"an item has nothing in {text!r} or {html!r}, so that only a headline can be checked: "
                "its page has no text, or NEWSDEDUP_FIELDS has to name other fields"
            )
        return dated

    def _tag(self, item: Any, decision: Decision) -> None:
        """Raises ConfigurationError, and stops the spider, if duplicates would pass unmarked."""
        answer = decision.answer
        tag = {name: getattr(decision, name) for name in ("verdict", "keep", "id", "canonical_id")}
        tag["related"] = [related.id for related in answer.related] if answer else []
        single = ("event_id", "keep_reason", "adds", "updated_figures", "reversed")  # None without an answer
        tag |= {name: getattr(answer, name, None) for name in single}
        tag |= {name: getattr(answer, name, []) for name in ("problems", "withdrawn")}
        try:
            ItemAdapter(item)[self._tag_field] = tag
        except (KeyError, AttributeError):
            problem = (
                f"{type(item).__name__} has no field {self._tag_field!r} for the tag of the deduplication; "
                "declare it, or name another one by NEWSDEDUP_TAG_FIELD"
            )
            if self._duplicate_mode == "drop":
                return self._warn_once(problem)
            if self._stop is None and (engine := self._crawler.engine):
                stop = engine.close_spider_async(reason="newsdedup_no_tag_field")
                self._stop = asyncio.ensure_future(stop)  # not awaited: it waits for this item
            raise ConfigurationError(f"{problem}. The spider is stopped.") from None

    def _warn_once(self, warning: str) -> None:
        if warning not in self._warnings:
            self._warnings.add(warning)
            log.warning("%s", warning)

    def _hold(self, article: Mapping[str, Any], item: Any) -> None:
        """Append what is to be checked to one file, and the item as the spider made it to another one."""
        items_path = self._held_path.with_stem(f"{self._held_path.stem}-items")
        for path, value in ((self._held_path, article), (items_path, ItemAdapter(item).asdict())):
            with path.open("a", encoding="utf-8", errors="replace") as out:
                out.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
        self._count("held")

    async def _on_failed(self, item: Any) -> None:
        """Remove the reservation of an item that a later pipeline did not accept."""
        if (decision := _take_passed()) is not None and await self._client.release(decision):
            self._count("undone")

    def _count(self, stat: str) -> None:
        if self._stats is not None:
            self._stats.inc_value(f"newsdedup/{stat}")


def _refuse_unknown(settings: Any) -> None:
    own = {str(name) for name in settings if str(name).startswith("NEWSDEDUP_")}
    for name in sorted(own - _SETTINGS):
        near = difflib.get_close_matches(name, _SETTINGS, n=1, cutoff=0.0)[0]
        raise ConfigurationError(f"{name}: there is no such setting; did you mean {near}?")


def _parse_choice(settings: Any, name: str, *allowed: str) -> str:
    """The value of a setting whose default is the first one allowed."""
    if (value := settings.get(name, allowed[0])) not in allowed:
        raise ConfigurationError(f"{name}: expected one of {', '.join(allowed)}, found {value!r}.")
    return str(value)


def _parse_field_map(overrides: Mapping[str, str]) -> dict[str, str]:
    """Article field -> item field. Raises ConfigurationError for an unknown article field."""
    if unknown := sorted(set(overrides) - set(ARTICLE_FIELDS)):
        raise ConfigurationError(
            f"NEWSDEDUP_FIELDS: unknown article field {', '.join(map(repr, unknown))}; allowed: "
            f"{', '.join(ARTICLE_FIELDS)}, each mapped to a field of your items."
        )
    # An item's own field "policy" means something else.
    return {name: name for name in ARTICLE_FIELDS if name != "policy"} | dict(overrides)


def _parse_number(settings: Any, name: str, default: float) -> float:
    value = settings.get(name, default)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name}: expected a number, found {value!r}.") from None


def _parse_zone(name: str) -> tzinfo | None:
    try:
        return time_zone(name) if name else None
    except ValueError as error:
        raise ConfigurationError(f"NEWSDEDUP_TIMEZONE: {error}") from None


def _name_of(article: Mapping[str, Any]) -> str:
    return str(article.get("url") or article.get("id") or article.get("title") or "an item")[:200]


def _match_of(answer: VerdictOut) -> str:
    if answer.duplicate_of is None:
        return "its source is untrusted"
    differences = {"other figures": answer.updated_figures, "a reversed statement": answer.reversed}
    found = " and ".join(name for name, differs in differences.items() if differs)
    problems = f" (problems: {', '.join(answer.problems)})" if answer.problems else ""
    reason = f"({answer.duplicate_of.rule}, adds {answer.adds}){found and f', with {found}'}{problems}"
    return f"duplicate of {answer.duplicate_of.canonical_id} {reason}"


def _dropped(article: Mapping[str, Any], reason: str, level: int = logging.INFO) -> DropItem:
    """A DropItem that is logged in one line; Scrapy's own line would contain the whole item."""
    message = f"Dropped {_name_of(article)}: {reason}"
    log.log(level, "%s", message)
    return DropItem(message, log_level="NOTSET")


def _to_field_value(name: str, value: Any) -> Any:
    """A field's value in the form of the API; a date in any form."""
    if name == "published_at":  # a list of dates, or one date as numbers
        return value[0] if isinstance(value, list | tuple) and not isinstance(value[0], int) else value
    if isinstance(value, list | tuple):  # item loaders without an output processor produce lists
        value = "\n".join(map(str, value)) if name in ("text", "html") else value[0]
    if isinstance(value, bytes):  # source and page title of news-please
        value = value.decode(errors="replace")
    return str(value)
