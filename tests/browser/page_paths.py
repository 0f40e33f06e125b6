"""Paths of all pages of a running service with something to see on each, found through its API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

ALWAYS = {
    "list": "/",
    "kiosk": "/?kiosk=1",
    "compare-empty": "/compare",
    "search-empty": "/search",
    "search-none": "/search?q=zzyzx+qqquux",
    "sources": "/sources",
    "day": "/days",
    "since": "/days?since=2020-01-01T00:00:00Z",
    "desks": "/desks",
    "webhooks": "/webhooks",
    "health": "/health",
    "docs": "/docs",
    "sign-in": "/sign-in",
    "problem": "/events/none",
}


async def page_paths(url: str, headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Path of each page, by name; without those that have nothing to show, such as a report of no event."""
    async with aiohttp.ClientSession(url, headers=headers, raise_for_status=True) as session:

        async def get(path: str, **query: Any) -> Any:
            async with session.get(path, params=query) as response:
                return await response.json()

        paths = dict(ALWAYS)
        sources = (await get("/v1/sources"))["sources"]
        if sources:
            paths["source"] = f"/sources/{_quoted(max(sources, key=lambda s: s['copies'])['name'])}"
        events = (await get("/v1/events", limit=50))["events"]
        paths |= _event_paths(events)
        paths |= await _copy_paths(get)
        for name in ("desks", "webhooks"):
            found = (await get(f"/v1/{name}"))[name]
            if found:
                paths[name[:-1]] = f"/{name}/{_quoted(found[0]['id'])}"
    return paths


def _event_paths(events: list[dict[str, Any]]) -> dict[str, str]:
    """Pages of the largest open event, and of the storyline with the most events."""
    paths: dict[str, str] = {}
    largest = max((e for e in events if e["status"] != "closed"), key=lambda e: e["size"], default=None)
    if largest:
        report = f"/events/{_quoted(largest['id'])}"
        paths |= {
            "report": report,
            "report-outlets": f"{report}?view=outlets",
            "report-print": f"{report}?print=true",
            "event-first": f"{report}/provenance",
        }
        word = max(re.findall(r"\w+", largest["title"]), key=len)
        paths["search"] = "/search?" + urlencode({"q": word})
        paths["search-text"] = "/search?" + urlencode({"q": f"{largest['title']} zzyzx"[-200:]})
    stories = Counter(event["story_id"] for event in events if not event["merged_into"]).most_common(1)
    if stories and stories[0][1] > 1:
        paths["story"] = f"/stories/{_quoted(stories[0][0])}"
    return paths


async def _copy_paths(get: Any) -> dict[str, str]:
    """Pages of an edited copy, if possible one with other figures than its original."""
    paths: dict[str, str] = {}
    for found in (await get("/v1/articles", verdict="duplicate", limit=100))["articles"]:
        article = await get(f"/v1/articles/{_quoted(found['id'])}")
        original = article["duplicate_of"]
        if original["rule"] != "overlap":
            continue
        paths["compare"] = "/compare?" + urlencode({"a": original["id"], "b": article["id"]})
        paths["search-id"] = "/search?" + urlencode({"q": article["id"]})
        paths["first"] = f"/articles/{_quoted(article['id'])}/provenance"
        if article["updated_figures"]:
            break
    return paths


def _quoted(text: str) -> str:
    return quote(text, safe="")
