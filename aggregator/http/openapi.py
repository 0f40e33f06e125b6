"""The OpenAPI 3.1 document, built from the route table and the body types. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Any

import msgspec

from aggregator import __version__
from aggregator.http.auth import PROBE_PATHS
from aggregator.http.endpoint import JSON_TYPE, Endpoint
from aggregator_client.wire import LineProblem, Problem

NDJSON_TYPE, FORM_TYPE = "application/x-ndjson", "application/x-www-form-urlencoded"
SCHEMA_REF = "#/components/schemas/{name}"
# Descriptions and example requests; ``tests/http/test_openapi_examples.py`` sends every body.
_TEXTS = json.loads(resources.files(__package__).joinpath("openapi_texts.json").read_text(encoding="utf-8"))
BODY_EXAMPLES, PATH_EXAMPLES = _TEXTS["bodies"], _TEXTS["paths"]


def build_document(endpoints: Sequence[Endpoint], base_path: str = "") -> dict[str, Any]:
    """The OpenAPI document of the endpoints, which a proxy serves below ``base_path``."""
    types: list[Any] = [Problem, LineProblem]
    for endpoint in endpoints:
        types += [endpoint.body, endpoint.query, *endpoint.responses.values()]
    components = _components(tuple(dict.fromkeys(t for t in types if isinstance(t, type))))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "News aggregator",
            "version": __version__,
            "description": _TEXTS["description"],
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_path or "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(e.tag for e in endpoints)],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


@cache  # 25 of the 30 ms that it takes to build an application, and each HTTP test builds one
def _components(types: tuple[type[msgspec.Struct], ...]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components(types, ref_template=SCHEMA_REF)
    _move_documentation(components)
    return components


def _operation(endpoint: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "responses": _responses(endpoint, components),
    }
    if endpoint.permission == "nothing":
        operation["description"] = "Needs no key."
    else:
        operation["security"] = [{"key": []}]
        operation["description"] = (
            f"Where access keys are required: {_TEXTS['permissions'][endpoint.permission]}."
        )
    parameters = _path_parameters(endpoint) + _query_parameters(endpoint, components)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        media_type = FORM_TYPE if endpoint.is_form else NDJSON_TYPE if endpoint.ndjson else JSON_TYPE
        content = _content(endpoint.body, media_type)
        content[media_type]["examples"] = {
            name: {"value": body} for name, body in BODY_EXAMPLES[endpoint.operation_id].items()
        }
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    collection, *names = re.findall(r"(?<=/)[a-z]+(?=/\{)|(?<=\{)[a-z]+(?=\})", endpoint.path) or [""]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"Percent-encoded {name}.",
            "schema": {"type": "string"},
            "example": PATH_EXAMPLES[collection],
        }
        for name in names
    ]


def _query_parameters(endpoint: Endpoint, components: dict[str, Any]) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    schema = components[endpoint.query.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": part["description"],
            "schema": part,
        }
        for name, part in schema["properties"].items()
    ]


def _responses(endpoint: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, body in endpoint.responses.items():
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if isinstance(body, str):
            response["content"] = {body: {}}
        elif body is not None and endpoint.ndjson:
            line_schema = {"anyOf": [_schema_ref(body), _schema_ref(LineProblem)]}
            response["content"] = {NDJSON_TYPE: {"schema": line_schema}}
        elif body is not None:
            response["content"] = _content(body, JSON_TYPE)
            response["content"][JSON_TYPE]["example"] = _example_of(components, body.__name__)
        if status == HTTPStatus.CREATED:
            response["headers"] = {"Location": {"description": "Its path.", "schema": {"type": "string"}}}
        responses[str(status)] = response
    auth_statuses = () if endpoint.permission == "nothing" else (401, 403, 429)
    host_statuses = () if endpoint.path in PROBE_PATHS else (421,)
    for status in (*endpoint.error_statuses, *auth_statuses, *host_statuses, 500):
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": _content(Problem, "application/problem+json"),
        }
    return responses


def _content(struct_type: type, media_type: str) -> dict[str, Any]:
    return {media_type: {"schema": _schema_ref(struct_type)}}


def _schema_ref(struct_type: type) -> dict[str, str]:
    return {"$ref": SCHEMA_REF.format(name=struct_type.__name__)}


def _move_documentation(components: Mapping[str, Any]) -> None:
    """Move the documentation of a nullable property from the schema of its value to the property."""
    for schema in components.values():
        for part in schema.get("properties", {}).values():
            for option in _alternatives(part):
                if option is not part and "$ref" not in option:
                    for key in ("description", "examples"):
                        if key in option:
                            part.setdefault(key, option.pop(key))


def _example_of(components: Mapping[str, Any], name: str) -> dict[str, Any]:
    properties = components[name].get("properties", {})
    return {field: _example(components, part) for field, part in properties.items()}


def _alternatives(part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for option in part.get("anyOf", (part,)):
        if option.get("type") != "null":
            yield option


def _example(components: Mapping[str, Any], part: Mapping[str, Any]) -> Any:
    if "examples" in part:
        return part["examples"][0]
    option = next(_alternatives(part))
    if "$ref" in option:
        return _example_of(components, option["$ref"].rpartition("/")[2])
    if option.get("type") == "array":
        return [_example(components, option["items"])]
    return option["enum"][0] if "enum" in option else None
