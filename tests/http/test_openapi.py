"""The OpenAPI document says what the router does."""

import re

import msgspec

from aggregator.http.app import make_app
from aggregator.http.openapi import build_document
from aggregator.http.routes import ENDPOINTS
from tests.support.fake_service import FakeService


def test_paths_are_the_routes():
    """Every route is described, and nothing else is; HEAD goes with GET."""
    app = make_app(FakeService())
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


async def test_document_is_served(client):
    """OpenAPI 3.1 with the version of the package."""
    body = await (await client.get("/openapi.json")).json()

    assert body["openapi"].startswith("3.1")
    assert body["paths"].keys() >= {"/v1/articles", "/v1/events/{id}", "/"}


def test_every_reference_has_its_schema():
    """No dangling $ref, unique operation ids, required path parameters."""
    made = build_document(ENDPOINTS)
    text = msgspec.json.encode(made).decode()
    operations = [o for path in made["paths"].values() for o in path.values()]

    referred = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referred <= set(made["components"]["schemas"])
    assert len({o["operationId"] for o in operations}) == len(operations)
    assert all(p["required"] for o in operations for p in o.get("parameters", []) if p["in"] == "path")


def test_answer_schema_is_the_contract():
    """The fields of a verdict, by name, as DESIGN section 5 has them."""
    schema = build_document(ENDPOINTS)["components"]["schemas"]["VerdictOut"]

    assert list(schema["properties"]) == [
        "id", "verdict", "distance", "hamming_class", "duplicate_of", "related",
        "updated_figures", "event_id", "space", "fingerprint", "short",
    ]  # fmt: skip
