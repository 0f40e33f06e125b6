"""Every example of the OpenAPI document, sent to the real service with the memory store."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest

from aggregator.app import Service, open_service
from aggregator.http.endpoint import Endpoint
from aggregator.http.openapi import BODY_EXAMPLES, FORM_TYPE, NDJSON_TYPE, build_document
from aggregator.http.routes import ENDPOINTS
from aggregator.settings import Settings
from tests.support.factories import commit_event, event
from tests.support.fake_service import Client, serving

DOCUMENT = build_document(ENDPOINTS)
# The example of an id that the service assigns is replaced by one that it did assign.
ASSIGNED = {"desks": "postDesk", "webhooks": "postWebhook"}
# Its answer has no end; tests/http/handlers/test_feeds_stream.py covers it.
ENDLESS = ("streamEvents",)
# The key of the example is invented.
STATUSES = {"signIn": {401}}


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service with the articles and the event of the examples."""
    async with open_service(Settings(store_url="memory", store_texts=True)) as opened:
        yield opened


@pytest.fixture
async def api(service: Service) -> AsyncIterator[Client]:
    """An HTTP client of it with the key of an administrator."""
    _, key = await service.edge.api_keys.add("Ada", "admin")
    async with serving(service) as opened:
        opened.session.headers["Authorization"] = f"Bearer {key}"
        for article in (BODY_EXAMPLES["postArticle"]["article"], BODY_EXAMPLES["postArticle"]["copy"]):
            assert (await opened.post("/v1/articles", json=article)).status in (200, 201)
        fired = event("pool-1", "Brackwater swimming hall opens again", ["pool-1", "pool-2"])
        await commit_event(service.events.repository, "fired", fired, service.clock())
        await service.background.source_collector.run_once()
        yield opened


async def assigned_id(api: Client, collection: str) -> str:
    """Id of the desk or webhook of the examples, which is created where it is missing."""
    body = next(iter(BODY_EXAMPLES[ASSIGNED[collection]].values()))
    return str((await (await api.post(f"/v1/{collection}", json=body)).json())["id"])


async def path_of(api: Client, endpoint: Endpoint, operation: dict[str, Any]) -> str:
    """The path with the examples of its parameters."""
    path = endpoint.path
    for parameter in (p for p in operation.get("parameters", []) if p["in"] == "path"):
        value = parameter["example"]
        collection = re.findall(r"[a-z]+", path)[1 if path.startswith("/v1/") else 0]
        if collection in ASSIGNED:
            value = await assigned_id(api, collection)
        path = path.replace("{" + parameter["name"] + "}", quote(value, safe=""))
    return path


def encoded(endpoint: Endpoint, media_type: str, body: Any) -> bytes | dict[str, str]:
    """An example as it is sent."""
    if media_type == FORM_TYPE:
        return dict(body)
    return json.dumps(body).encode() + (b"\n" if media_type == NDJSON_TYPE else b"")


def requests_of(operation: dict[str, Any]) -> list[tuple[dict[str, str], str, Any]]:
    """Query, media type and body of each example: each parameter alone, and each body."""
    parameters = [p for p in operation.get("parameters", []) if p["in"] == "query"]
    required = {p["name"]: example(p) for p in parameters if p["required"]}
    queries = [required, *({**required, p["name"]: example(p)} for p in parameters if not p["required"])]
    bodies = [
        (media_type, body["value"])
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items()
        for body in content["examples"].values()
    ]
    if not bodies:
        return [(query, "", None) for query in queries]
    return [(required, *body) for body in bodies] + [(query, *bodies[0]) for query in queries[1:]]


def example(parameter: dict[str, Any]) -> str:
    """The example of a query parameter as text; of several choices the first."""
    schema = parameter["schema"]
    option = next(o for o in schema.get("anyOf", [schema]) if o.get("type") != "null")
    value = schema["examples"][0] if "examples" in schema else option["enum"][0]
    return json.dumps(value) if isinstance(value, bool) else str(value)


async def problems_of(api: Client, endpoint: Endpoint) -> list[str]:
    """What is wrong with the answers to the examples of one operation; empty: nothing."""
    operation = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]
    found = []
    for query, media_type, body in requests_of(operation):
        path = await path_of(api, endpoint, operation)
        if endpoint.operation_id == "deleteArticle":  # the others need the article of the examples
            text = f"The pool of Estmark closes early: {query}."  # none of them is taken down
            await api.post("/v1/articles", json={"id": "pool-8", "text": text})
            path = "/v1/articles/pool-8"
        for name in {"watch", "desk"} & query.keys():
            query[name] = await assigned_id(api, "desks")
        response = await api.request(
            endpoint.method,
            path,
            params=query,
            data=encoded(endpoint, media_type, body) if media_type else None,
            allow_redirects=False,
        )
        text = await response.text()
        shown = f"{endpoint.method} {path} {query} {body}: {response.status}"
        if response.status not in STATUSES.get(endpoint.operation_id, endpoint.responses.keys()):
            found.append(f"{shown} {text[:300]}")
            continue
        content = operation["responses"][str(response.status)].get("content", {})
        if content and not {response.content_type, "*/*"} & content.keys():
            found.append(f"{shown} {response.content_type}")
        schema = content.get(response.content_type, {}).get("schema")
        if schema is not None:
            validator = jsonschema_rs.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
            found += [f"{shown} {error.message}" for error in validator.iter_errors(json.loads(text))]
    return found


@pytest.mark.integration
async def test_every_example_is_answered_as_documented(api: Client) -> None:
    """With a success, and with a body of the documented schema."""
    endpoints = [endpoint for endpoint in ENDPOINTS if endpoint.operation_id not in ENDLESS]
    problems = [problem for endpoint in endpoints for problem in await problems_of(api, endpoint)]

    assert problems == [], "\n".join(problems)
