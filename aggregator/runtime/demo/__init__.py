"""Articles of the demonstration: invented outlets in an invented country.

``aggregator_client.demonstration`` posts a small stream of them over HTTP, as a crawler would. ``history.py``
stores a day of them, with other stories, before the service starts, so that events have a past.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any


def load_rows(file: str = "articles.jsonl") -> list[dict[str, Any]]:
    """The rows of the stream, or of another file: an article's fields and ``minutes_ago``.

    Those of the stream, oldest first, have a ``role`` and, if derived, ``of`` (an id). Roles: new, copy
    (exact), edited, related, template, updated (figures changed), event.
    """
    lines = (files(__name__) / file).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def article_body(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The request body for one row of ``load_rows``, dated relative to ``now`` (with a time zone)."""
    body = {name: value for name, value in row.items() if name not in ("role", "of", "minutes_ago")}
    published = now - timedelta(minutes=row["minutes_ago"])
    return {**body, "published_at": published.isoformat(timespec="seconds")}
