"""The OpenAPI 3.1 document, made from the list of endpoints and the schemas. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from aggregator import __version__
from aggregator.contract.responses import LineProblem, Problem
from aggregator.http.routes import FORM, JSON, NDJSON, Endpoint

REF = "#/components/schemas/{name}"
DESCRIPTION = """\
Have we got this already? What else is about this? What is breaking now?

Ids make every POST idempotent: a retry answers the same verdict. An id in a path is percent-encoded
("example.org%2Fa%3Fx%3D1"); unescaped slashes work too, unless it ends in /copies or /related.
Bodies are UTF-8 JSON, plain or with Content-Encoding gzip; their Content-Type is not looked at.
Where access keys are asked for, send "Authorization: Bearer KEY"; the role of the key decides what it may do.
Times are RFC 3339 with an offset. Unknown fields and query parameters are refused.
Every error is a problem (RFC 9457) whose detail is one sentence and whose code is stable.
"""


_NEEDED = {
    "key": "any key",
    "crawler": "a key of the role crawler or admin",
    "reader": "a key of the role reader, editor or admin",
    "editor": "a key of the role editor or admin",
    "admin": "a key of the role admin",
}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
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
        kinds += [endpoint.body, endpoint.query, *endpoint.answers.values()]
    structs = dict.fromkeys(k for k in kinds if isinstance(k, type))
    _, components = msgspec.json.schema_components(structs, ref_template=REF)
    return dict(components)


def _operation(endpoint: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "responses": _responses(endpoint),
    }
    if endpoint.needs != "nothing":
        operation["security"] = [{"key": []}]
        operation["description"] = f"Where access keys are asked for: {_NEEDED[endpoint.needs]}."
    parameters = _path_parameters(endpoint) + _query_parameters(endpoint, components)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": _content(endpoint.body, _media_of(endpoint)),
        }
    return operation


def _media_of(endpoint: Endpoint) -> str:
    if endpoint.form:
        return FORM
    return NDJSON if endpoint.many else JSON


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
    for status, kind in endpoint.answers.items():
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if isinstance(kind, str):
            response["content"] = {kind: {}}
        elif kind is not None and endpoint.many:
            lines = {"anyOf": [_ref(kind), _ref(LineProblem)]}
            response["content"] = {NDJSON: {"schema": lines}}
        elif kind is not None:
            response["content"] = _content(kind, JSON)
        responses[str(status)] = response
    refusals = () if endpoint.needs == "nothing" else (401, 403, 429)
    for status in (*endpoint.problems, *refusals, 500):
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": _content(Problem, "application/problem+json"),
        }
    return responses


def _content(kind: type, media: str) -> dict[str, Any]:
    return {media: {"schema": _ref(kind)}}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": REF.format(name=kind.__name__)}
