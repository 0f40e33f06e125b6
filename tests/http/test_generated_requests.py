"""Requests made from the OpenAPI document (schemathesis), fitting and not, against a live service: never a 5xx."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from aggregator.http.endpoints import ENDPOINTS
from aggregator.http.openapi import document

EXAMPLES = 5
SCHEMA = schemathesis.openapi.from_dict(document(ENDPOINTS))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.specs.openapi.checks.status_code_conformance,
    schemathesis.specs.openapi.checks.content_type_conformance,
    schemathesis.specs.openapi.checks.response_schema_conformance,
]


@contextmanager
def serving(key: str) -> Iterator[tuple[str, dict[str, str]]]:
    """URL of a service that asks for no key or for this one, and the headers that bring it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "aggregator", "serve", "--port=0", "--store-url=memory", "--log-level=ERROR"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "AGGREGATOR_BOOTSTRAP_KEY": key},
    )
    assert process.stdout is not None
    with process:
        url = next(line.split()[-1] for line in process.stdout if "ready on " in line)
        yield url, {"Authorization": f"Bearer {key}"} if key else {}
        process.terminate()


@pytest.fixture(scope="module")
def open_() -> Iterator[tuple[str, dict[str, str]]]:
    """A service for everybody."""
    with serving("") as live:
        yield live


@pytest.fixture(scope="module")
def keyed() -> Iterator[tuple[str, dict[str, str]]]:
    """A service that asks for a key, and the key."""
    with serving("k" * 40) as live:
        yield live


@schemathesis.serializer("application/x-ndjson")
def _lines(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """A batch of one line."""
    return json.dumps(value).encode() + b"\n"


# The stream of events does not end; tests/http/test_sse.py reads it.
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
