"""Requests made from the OpenAPI document (schemathesis), fitting and not, against a live service: never a 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from aggregator.http.openapi import build_document
from aggregator.http.routes import ENDPOINTS
from tests.support.server_fixture import serving_alone

EXAMPLES = 5
OPTIONS = ("--store-url=memory", "--log-level=ERROR")
SCHEMA = schemathesis.openapi.from_dict(build_document(ENDPOINTS))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.specs.openapi.checks.status_code_conformance,
    schemathesis.specs.openapi.checks.content_type_conformance,
    schemathesis.specs.openapi.checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def open_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """A service for everybody: its URL, and no headers."""
    with serving_alone(tmp_path_factory.mktemp("open"), *OPTIONS) as (_, url):
        yield url, {}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """A service that asks for a key, and the headers that bring it."""
    key = "k" * 40
    directory = tmp_path_factory.mktemp("keyed")
    with serving_alone(directory, *OPTIONS, AGGREGATOR_BOOTSTRAP_KEY=key) as (_, url):
        yield url, {"Authorization": f"Bearer {key}"}


@schemathesis.serializer("application/x-ndjson")
def _lines(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """A batch of one line."""
    return json.dumps(value).encode() + b"\n"


# The stream of events does not end; tests/http/handlers/test_sse.py reads it.
@SCHEMA.exclude(operation_id="streamEvents").parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("service", ["open_", "keyed"])
def test_every_request_is_answered_as_described(
    case: schemathesis.Case, service: str, request: pytest.FixtureRequest
) -> None:
    """Whatever is sent to a route: a status, a media type and a body that the document names, and never a 5xx."""
    url, headers = request.getfixturevalue(service)
    response = case.call(base_url=url, headers=headers, timeout=20)

    case.validate_response(response, checks=CHECKS)
