"""Requests generated from the OpenAPI document (schemathesis), valid and invalid, against a live service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks

from aggregator.http.openapi import build_document
from aggregator.http.routes import ENDPOINTS
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving_alone

pytestmark = pytest.mark.integration

EXAMPLES = 5
OPTIONS = ("--store-url=memory", "--log-level=ERROR")
SCHEMA = schemathesis.openapi.from_dict(build_document(ENDPOINTS))
# The limits of every field, 1,800 requests per service, are generated at collection: 20 s of processor time
# in each process of a test run. Only scripts/check tests them.
SCHEMA.config.phases.coverage.enabled = settings.get_current_profile_name() == "thorough"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def open_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """URL of a service without keys, and no headers."""
    with serving_alone(tmp_path_factory.mktemp("open"), *OPTIONS) as (_, url):
        yield url, {}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """URL of a service that requires a key, and the headers with the key."""
    key = "k" * 40
    directory = tmp_path_factory.mktemp("keyed")
    with serving_alone(directory, *OPTIONS, AGGREGATOR_BOOTSTRAP_KEY=key) as (_, url):
        yield url, {"Authorization": f"Bearer {key}"}


@schemathesis.serializer("application/x-ndjson")
def _lines(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """A batch of one line."""
    return json.dumps(value).encode() + b"\n"


# The event stream does not end; tests/http/handlers/test_feeds_stream.py covers it.
@SCHEMA.exclude(operation_id="streamEvents").parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("service", ["open_", "keyed"])
def test_every_response_matches_the_document(
    case: schemathesis.Case[Any], service: str, request: pytest.FixtureRequest
) -> None:
    """Status, media type and body are documented, and no status is 5xx."""
    url, headers = request.getfixturevalue(service)
    response = case.call(base_url=url, headers=headers, timeout=HANG_LIMIT_S)

    case.validate_response(response, checks=CHECKS)
