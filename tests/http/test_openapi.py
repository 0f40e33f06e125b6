"""The OpenAPI document matches the router and the contract."""

import re
from typing import cast

import jsonschema_rs
import msgspec
import pytest

from aggregator.app import Service
from aggregator.http.openapi import BODY_EXAMPLES, build_document
from aggregator.http.routes import ENDPOINTS
from aggregator.http.server import make_app
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


@pytest.mark.integration
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
        "id", "verdict", "keep", "keep_reason", "distance", "hamming_class", "duplicate_of", "adds", "fuller",
        "updated_figures", "reversed", "text_is_article", "part_of", "follows",
        "event_id", "space", "fingerprint", "short", "related", "problems",
        "stored_as", "reused_id", "replaces", "withdrawn", "unchecked", "stored", "created",
    ]  # fmt: skip


def test_every_field_and_parameter_is_described() -> None:
    """With a description, and an example, a list of choices, or a schema that has them."""
    document = build_document(ENDPOINTS)
    missing = [
        (name, field)
        for name, schema in document["components"]["schemas"].items()
        for field, part in schema.get("properties", {}).items()
        if not part.get("description") or not ({"examples", "enum"} & part.keys() or "$ref" in str(part))
    ]
    operations = [o for path in document["paths"].values() for o in path.values()]

    assert missing == []
    assert all(p["description"] for o in operations for p in o.get("parameters", []))
    assert all(
        content["examples"]
        for operation in operations
        for content in operation.get("requestBody", {}).get("content", {}).values()
    )


def test_every_operation_has_a_summary_and_names_the_permission_that_it_needs() -> None:
    document = build_document(ENDPOINTS)
    operations = [o for path in document["paths"].values() for o in path.values()]

    assert all(operation["summary"] and operation["description"] for operation in operations)


@pytest.mark.parametrize("method", ["get", "delete"])
def test_a_text_that_was_taken_down_is_a_documented_answer(method: str) -> None:
    """Of the article, and of a new post of its text."""
    paths = build_document(ENDPOINTS)["paths"]

    assert "410" in paths["/v1/articles/{id}"][method]["responses"]
    assert "410" in paths["/v1/articles"]["post"]["responses"]


def test_every_operation_with_a_body_has_an_example() -> None:
    """A route that was renamed leaves none behind."""
    operations = {endpoint.operation_id for endpoint in ENDPOINTS if endpoint.body is not None}

    assert BODY_EXAMPLES.keys() == operations


@pytest.mark.integration
def test_examples_match_their_schemas() -> None:
    """Those of fields, request bodies and responses."""
    document = build_document(ENDPOINTS)
    examples = [
        (part, example)
        for schema in document["components"]["schemas"].values()
        for part in schema.get("properties", {}).values()
        for example in part.get("examples", ())
    ]
    for operation in (o for path in document["paths"].values() for o in path.values()):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in (c for body in bodies for c in body.get("content", {}).values()):
            examples += [(content["schema"], e["value"]) for e in content.get("examples", {}).values()]
            examples += [(content["schema"], content["example"])] if "example" in content else []

    assert len(examples) > 500
    for schema, example in examples:
        jsonschema_rs.validate({**schema, "components": document["components"]}, example)
