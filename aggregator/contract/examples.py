"""Example requests of the OpenAPI document: bodies by operation and name, and values of path parameters.

``tests/http/test_openapi_examples.py`` sends every one of them to a service.
"""

from __future__ import annotations

from typing import Any

from aggregator_client.wire import TEXT

_EDITED_TEXT = TEXT.replace("The swimming hall", "Good news for swimmers: the swimming hall")

_POOL = {
    "id": "pool-1",
    "source": "Brackwater Gazette",
    "url": "https://gazette.example/pool",
    "title": "Brackwater swimming hall opens again",
    "text": TEXT,
    "published_at": "2026-11-20T08:00:00Z",
}
_DESK = {
    "name": "Harbour desk",
    "terms": ["ferry", "harbour"],
    "languages": ["en"],
    "alert_size": 20,
    "quiet_from": "22:30",
    "quiet_until": "06:00",
    "time_zone": "Europe/Berlin",
}

BODY_EXAMPLES: dict[str, dict[str, Any]] = {
    "postArticle": {
        "article": _POOL,
        "copy": {"id": "pool-2", "source": "Coastline News", "text": _EDITED_TEXT},
        "page": {"url": "https://radio.example/pool", "html": f"<html><body><p>{TEXT}</p></body></html>"},
    },
    "postBatch": {"line": _POOL},
    "postRelated": {
        "readingList": {"ids": ["pool-1", "pool-2", "pool-9"]},
        "content": {"title": "Swimmers get their hall back", "text": _EDITED_TEXT},
    },
    "explain": {
        "stored": {"a": "pool-1", "b": "pool-2"},
        "content": {"a": "pool-1", "b": {"title": "Swimmers get their hall back", "text": _EDITED_TEXT}},
    },
    "postReadMark": {"events": {"seen": ["pool-1"]}, "all": {"looked_at": "2026-11-20T08:40:00Z"}},
    "postWatch": {"watch": {"name": "floods", "query": "term=flood&min_size=20"}},
    "postAction": {
        "acknowledge": {"action": "acknowledge", "actor": "Ada"},
        "note": {"action": "note", "actor": "Ada", "text": "Called the pool: opens at noon."},
        "assign": {"action": "assign", "actor": "Ada", "assignee": "Ben"},
        "status": {"action": "set_work_status", "actor": "Ada", "work_status": "on_it"},
        "mute": {"action": "mute", "actor": "Ada", "scope": "story"},
        "unmute": {"action": "unmute", "actor": "Ada"},
    },
    "postDesk": {"desk": _DESK},
    "putDesk": {"desk": {**_DESK, "alert_size": 30}},
    "postTarget": {
        "webhook": {"kind": "webhook", "address": "https://hooks.example/desk"},
        "chat": {"kind": "webhook", "address": "https://chat.example/hook", "format": "slack"},
    },
    "postWebhook": {
        "all": {"url": "https://hooks.example/news"},
        "filtered": {"url": "https://hooks.example/floods", "query": "term=flood&min_size=20"},
    },
    "postWebhookAction": {"suspend": {"action": "disable"}, "resume": {"action": "enable"}},
    "createDesk": {"form": {"action": "preview", "name": "Harbour desk", "terms": "ferry, harbour"}},
    "changeDesk": {"form": {"action": "preview", "name": "Harbour desk", "terms": "ferry"}},
    "createWebhook": {"form": {"action": "add", "url": "https://hooks.example/page"}},
    "changeWebhook": {"form": {"action": "disable"}},
    "lookupPasted": {"form": {"q": TEXT}},
    "comparePasted": {"form": {"a": "pool-1", "b": TEXT}},
    "signIn": {"form": {"key": "k9f3.0123456789abcdef", "next": "/"}},
}
# Ids that the service assigns are shown by the form that they have.
PATH_EXAMPLES = {
    "articles": "pool-1",
    "events": "pool-1",
    "stories": "pool-1",
    "sources": "Brackwater Gazette",
    "watches": "1ac4d0f935b5",
    "desks": "5d0c1e8a77b2",
    "webhooks": "9b7f3c21d0e4",
    "static": "page.css",
}
