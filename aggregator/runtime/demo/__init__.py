"""Demonstration: a small stream of invented articles, sent to a running service.

Invented outlets in an invented country: new articles, exact and edited copies, retold stories, one results
template filled for three companies, reports whose figures change, and a dam that breaks within 2.5 hours.
``replay`` posts them over HTTP, as a crawler would. ``history.py`` stores a day of them, with other stories,
before the service starts, so that events have a past.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import aiohttp

from aggregator.errors import StoreUnavailable

EVENT_TIMEOUT_S = 20.0
# A machine that is busy with the start answers 503 at first: a request is repeated for so long.
REPEAT_S = 120.0
ANNOTATION_FIELDS = ("role", "of", "minutes_ago")


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The articles, the answers in the order of sending, and the events at the end."""

    articles: Sequence[dict[str, Any]]
    answers: Sequence[dict[str, Any]]
    events: Sequence[dict[str, Any]]

    @property
    def verdict_counts(self) -> Counter[str]:
        """Number of articles per verdict."""
        return Counter(answer["verdict"] for answer in self.answers)

    def format_text(self, url: str) -> str:
        """A short summary for a terminal, with URLs to open."""
        counts = self.verdict_counts
        counted = ", ".join(f"{counts[name]} {name}" for name in ("new", "related", "duplicate"))
        lines = [f"demonstration: {len(self.answers)} articles sent: {counted}."]
        for verdict, relation in (("duplicate", "repeats"), ("related", "covers the same story as")):
            example = self._first_example(verdict)
            if example is not None:
                lines.append(f"  {verdict}: {example[0]} {relation} {example[1]}")
                lines.append(f"    {url}/v1/articles/{example[0]}")
        for event in self.events:
            state = "ended" if event["status"] == "closed" else f"{event['size']} items so far"
            lines.append(f"  event: {event['title']} ({state}, {len(event['sources'])} sources)")
            lines.append(f"    {url}/events/{event['id']}")
        if not self.events:
            lines.append("  no event was detected.")
        return "\n".join([*lines, *self._format_places(url)])

    def _format_places(self, url: str) -> list[str]:
        places = []
        stories = Counter(event["story_id"] for event in self.events)
        if stories and max(stories.values()) > 1:
            places.append(("storyline of two events", f"/stories/{stories.most_common(1)[0][0]}"))
        copied = next((a["duplicate_of"] for a in self.answers if a["duplicate_of"]), None)
        if copied:
            places.append(("who published a text first", f"/articles/{copied['canonical_id']}/provenance"))
        places += [
            ("search", "/search?q=dam"),
            ("outlets and their copies", "/sources"),
            ("editors' page, start here", "/"),
            ("API", "/docs"),
        ]
        return [f"  {name}: {url}{path}" for name, path in places]

    def _first_example(self, verdict: str) -> tuple[str, str] | None:
        """Ids of the first such article other than exact copies, and of its match."""
        for answer in self.answers:
            match = answer["duplicate_of"]
            if answer["verdict"] != verdict or (match and match["rule"] == "exact"):
                continue
            if match:
                return answer["id"], match["canonical_id"]
            if answer["related"]:
                return answer["id"], answer["related"][0]["id"]
        return None


def load_rows() -> list[dict[str, Any]]:
    """All rows, oldest first: an article's fields, ``minutes_ago``, ``role`` and, if derived, ``of`` (an id).

    Roles: new, copy (exact), edited, related, template, updated (figures changed), event.
    """
    lines = (files(__name__) / "articles.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def article_body(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The request body for one row of ``load_rows``, dated relative to ``now`` (with a time zone)."""
    body = {name: value for name, value in row.items() if name not in ANNOTATION_FIELDS}
    published = now - timedelta(minutes=row["minutes_ago"])
    return {**body, "published_at": published.isoformat(timespec="seconds")}


async def replay(
    url: str, *, pause_s: float = 0.0, rows: Iterable[dict[str, Any]] | None = None, key: str = ""
) -> DemoReport:
    """Post ``rows`` (default: all) and wait until an event changes. Raises StoreUnavailable."""
    now = datetime.now(UTC)
    articles = [article_body(row, now) for row in (load_rows() if rows is None else rows)]
    timeout = aiohttp.ClientTimeout(total=60.0)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with aiohttp.ClientSession(url, timeout=timeout, headers=headers) as session:
            answers, before = [], await _events(session)
            for body in articles:
                answers.append(await _request_json(session, "POST", "/v1/articles", body))
                await asyncio.sleep(pause_s)
            events = await _wait_for_events(session, before)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise StoreUnavailable(f"The service at {url} stopped answering ({error}).") from error
    return DemoReport(articles, answers, events)


async def has_events(url: str, key: str = "") -> bool:
    """Whether the service at ``url`` knows an event. Raises StoreUnavailable, aiohttp.ClientError."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(url, headers=headers) as session:
        return bool(await _events(session))


async def _events(session: aiohttp.ClientSession) -> list[dict[str, Any]]:
    return list((await _request_json(session, "GET", "/v1/events"))["events"])


async def _wait_for_events(session: aiohttp.ClientSession, before: list[dict[str, Any]]) -> list[Any]:
    """The events as soon as one is new or has another size than in ``before``, or after the time limit."""
    deadline_s = time.monotonic() + EVENT_TIMEOUT_S
    sizes_before = {event["id"]: event["size"] for event in before}
    while True:
        events = await _events(session)
        sizes = {event["id"]: event["size"] for event in events}
        if sizes != sizes_before or time.monotonic() > deadline_s:
            return events
        await asyncio.sleep(0.2)


async def _request_json(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    deadline_s = time.monotonic() + REPEAT_S
    while True:
        async with session.request(method, path, json=body) as response:
            answer = await response.json(content_type=None)
            if response.status < 400:
                return answer
            if response.status not in (429, 503) or time.monotonic() > deadline_s:
                detail = answer.get("detail", response.status)
                raise StoreUnavailable(f"{method} {path} was refused: {detail}")
            pause_s = min(5.0, float(response.headers.get("Retry-After", "1")))
        await asyncio.sleep(pause_s)
