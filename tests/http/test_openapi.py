"""The OpenAPI document matches the router and the contract."""

import re
from typing import cast

import msgspec

from aggregator.app import Service
from aggregator.http.app import make_app
from aggregator.http.openapi import build_document
from aggregator.http.routes import ENDPOINTS
from tests.support.fake_service import Client, FakeService


def test_every_route_is_documented() -> None:
    """Every route and nothing else; HEAD is implied by GET."""
    app = make_app(cast(Service, FakeService()))
    routed = {
        (route.method.lower(), route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    described = {
        (method, path)
        for path, operations in build_document(ENDPOINTS)["paths"].items()
        for method in operations
    }

    assert described == routed


async def test_the_document_is_served(client: Client) -> None:
    """OpenAPI 3.1."""
    body = await (await client.get("/openapi.json")).json()

    assert body["openapi"].startswith("3.1")
    assert body["paths"].keys() >= {"/v1/articles", "/v1/events/{id}", "/"}


def test_the_document_is_consistent() -> None:
    """No dangling $ref, unique operation ids, required path parameters."""
    document = build_document(ENDPOINTS)
    text = msgspec.json.encode(document).decode()
    operations = [o for path in document["paths"].values() for o in path.values()]

    referenced = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referenced <= set(document["components"]["schemas"])
    assert len({o["operationId"] for o in operations}) == len(operations)
    assert all(p["required"] for o in operations for p in o.get("parameters", []) if p["in"] == "path")


def test_the_verdict_schema_has_the_fields_of_the_contract() -> None:
    """Names and order of the fields of a verdict."""
    schema = build_document(ENDPOINTS)["components"]["schemas"]["VerdictOut"]

    assert list(schema["properties"]) == [
        "id", "verdict", "distance", "hamming_class", "duplicate_of", "related",
        "updated_figures", "event_id", "space", "fingerprint", "short",
    ]  # fmt: skip
