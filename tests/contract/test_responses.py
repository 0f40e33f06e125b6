"""Response types: independence of the service, descriptions, and names shared with the domain."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest

from aggregator import domain
from aggregator.contract import requests, responses
from aggregator.events import selection
from aggregator.events.detection import model
from aggregator.events.webhooks import subscriptions
from aggregator_client import wire

STRUCTS = [
    class_
    for module in (responses, wire)
    for _, class_ in inspect.getmembers(module, inspect.isclass)
    if issubclass(class_, msgspec.Struct) and class_ is not msgspec.Struct
]


@pytest.mark.parametrize(
    ("public", "internal"),
    [
        (wire.VerdictName, domain.VerdictName),
        (wire.EventStatus, model.EventStatus),
        (wire.MuteScope, model.MuteScope),
        (wire.Severity, selection.Severity),
        (requests.EventOrder, selection.EventOrder),
        (msgspec.inspect.type_info(wire.DuplicateOf), domain.MatchRule),
        (msgspec.inspect.type_info(requests.WebhookIn), subscriptions.PayloadFormat),
    ],
    ids=["verdict", "status", "scope", "severity", "order", "rule", "format"],
)
def test_repeated_names_are_those_of_the_domain(public: Any, internal: Any) -> None:
    """Clients must accept every name that the service can return, and no other."""
    if isinstance(public, msgspec.inspect.StructType):
        types = [getattr(f.type, "type", f.type) for f in public.fields]  # of the annotated ones, the type
        literals = [type_ for type_ in types if isinstance(type_, msgspec.inspect.LiteralType)]
        names = {name for literal in literals for name in literal.values}
    else:
        names = set(get_args(public))

    assert names == set(get_args(internal))


@pytest.mark.parametrize("struct_type", STRUCTS)
def test_every_type_has_a_description(struct_type: type[msgspec.Struct]) -> None:
    """It is the description of the schema in the OpenAPI document."""
    assert (vars(struct_type).get("__doc__") or "").strip()


def test_times_are_in_utc_with_z() -> None:
    """The milliseconds of a time are not lost."""
    at = datetime(2026, 11, 20, 8, 0, 0, 7_000, tzinfo=UTC)

    text = msgspec.json.decode(responses.encode(wire.TimelinePoint(at, 3)))["at"]

    assert text.startswith("2026-11-20T08:00:00.007")
    assert text.endswith("Z")
    assert datetime.fromisoformat(text) == at


def test_a_fingerprint_has_16_lower_case_digits() -> None:
    """A client that checks the schema refuses any other text."""
    side = {"label": "a1", "space": "en.0000", "figures": None, "own_passages": None}

    assert msgspec.convert({**side, "fingerprint": "00ff" * 4}, wire.ExplainSideOut)
    for wrong in ("00FF" * 4, "00ff" * 3, "00ff" * 4 + "0"):
        with pytest.raises(msgspec.ValidationError, match="fingerprint"):
            msgspec.convert({**side, "fingerprint": wrong}, wire.ExplainSideOut)
