"""The OpenAPI 3.1 document, made from the list of endpoints and the schemas. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from aggregator import __version__
from aggregator.contract.responses import LineProblem, Problem
from aggregator.http.routes import FORM_TYPE, JSON_TYPE, NDJSON_TYPE, Endpoint

SCHEMA_REF = "#/components/schemas/{name}"
DESCRIPTION = """\
Have we got this already? What else is about this? What is breaking now?

Ids make every POST idempotent: a retry answers the same verdict. An id in a path is percent-encoded
("example.org%2Fa%3Fx%3D1"); unescaped slashes work too, unless it ends in /copies or /related.
Bodies are UTF-8 JSON, plain or with Content-Encoding gzip; their Content-Type is not looked at.
Where access keys are asked for, send "Authorization: Bearer KEY"; the role of the key decides what it may do.
Times are RFC 3339 with an offset. Unknown fields and query parameters are refused.
Every error is a problem (RFC 9457) whose detail is one sentence and whose code is stable.
"""


_PERMISSION_DESCRIPTIONS = {
    "key": "any key",
    "crawler": "a key of the role crawler or admin",
    "reader": "a key of the role reader, editor or admin",
    "editor": "a key of the role editor or admin",
    "admin": "a key of the role admin",
}


def build_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole document."""
    components = _components(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "News aggregator",
            "version": __version__,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(e.tag for e in endpoints)],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _components(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    kinds: list[Any] = [Problem, LineProblem]
    for endpoint in endpoints:
        kinds += [endpoint.body, endpoint.query, *endpoint.responses.values()]
    structs = dict.fromkeys(k for k in kinds if isinstance(k, type))
    _, components = msgspec.json.schema_components(structs, ref_template=SCHEMA_REF)
    return dict(components)


def _operation(endpoint: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "responses": _responses(endpoint),
    }
    if endpoint.permission != "nothing":
        operation["security"] = [{"key": []}]
        operation["description"] = (
            f"Where access keys are asked for: {_PERMISSION_DESCRIPTIONS[endpoint.permission]}."
        )
    parameters = _path_parameters(endpoint) + _query_parameters(endpoint, components)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": _content(endpoint.body, _body_media_type(endpoint)),
        }
    return operation


def _body_media_type(endpoint: Endpoint) -> str:
    if endpoint.form:
        return FORM_TYPE
    return NDJSON_TYPE if endpoint.ndjson else JSON_TYPE


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]
    return [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]


def _query_parameters(endpoint: Endpoint, components: dict[str, Any]) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    properties = components[endpoint.query.__name__]["properties"]
    return [{"name": n, "in": "query", "required": False, "schema": s} for n, s in properties.items()]


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in endpoint.responses.items():
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if isinstance(kind, str):
            response["content"] = {kind: {}}
        elif kind is not None and endpoint.ndjson:
            lines = {"anyOf": [_schema_ref(kind), _schema_ref(LineProblem)]}
            response["content"] = {NDJSON_TYPE: {"schema": lines}}
        elif kind is not None:
            response["content"] = _content(kind, JSON_TYPE)
        responses[str(status)] = response
    refusals = () if endpoint.permission == "nothing" else (401, 403, 429)
    for status in (*endpoint.error_statuses, *refusals, 500):
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": _content(Problem, "application/problem+json"),
        }
    return responses


def _content(struct_type: type, media_type: str) -> dict[str, Any]:
    return {media_type: {"schema": _schema_ref(struct_type)}}


def _schema_ref(struct_type: type) -> dict[str, str]:
    return {"$ref": SCHEMA_REF.format(name=struct_type.__name__)}
