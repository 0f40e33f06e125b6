"""Encoding of events as response bodies."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta

from aggregator.contract.responses import encode
from aggregator.events.event import EditorAction
from aggregator.http.handlers.event_views import event_detail_out, event_out
from aggregator.time_units import to_datetime
from aggregator_client.wire import EventDetailOut, EventOut
from tests.support.factories import EVENT_MS, event

MERGE = EditorAction("merge", "desk", EVENT_MS + 5, "e2", into="e1")
EVENT = event(
    "e1",
    "Bridge closed",
    ["a1", "a2"],
    languages=("de", "fr"),
    headline_id="a2",
    first=(EVENT_MS, "a1", "one.example"),
    absorbed=("e2",),
    story_id="e0",
    acknowledged_by="desk",
    muted="story",
    expected=0.41666,
    actions=(MERGE,),
    revision=7,
)


def test_fields_keep_their_values() -> None:
    """All fields of the same name are equal, lists in the same order."""
    shown = json.loads(encode(event_out(EVENT, EVENT_MS)))
    shared = {field.name for field in dataclasses.fields(EVENT)} & set(shown) - {"actions", "expected"}

    assert len(shared) > 15
    assert {name: shown[name] for name in shared} == {
        name: list(value) if isinstance(value := getattr(EVENT, name), tuple) else value for name in shared
    }
    assert shown["expected"] == 0.42


def test_times_are_utc_to_the_millisecond() -> None:
    """No time of a list is shifted or truncated to seconds."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    start_ms = int(start.timestamp() * 1000)
    shown = event_out(
        event("e1", "", first_seen_ms=start_ms + 1, detected_at_ms=start_ms + 2, last_seen_ms=start_ms + 3),
        start_ms,
    )

    expected = [start + timedelta(milliseconds=n) for n in (1, 2, 3)]
    assert [shown.first_seen, shown.detected_at, shown.last_seen] == expected


def test_an_action_names_who_did_what() -> None:
    """The audit trail has every field of the action."""
    (shown,) = event_out(EVENT, EVENT_MS).actions

    assert (shown.action, shown.actor, shown.event, shown.into) == ("merge", "desk", "e2", "e1")
    assert (shown.at, shown.scope, shown.item) == (to_datetime(EVENT_MS + 5), None, None)


def test_a_report_has_all_fields_of_the_list_entry() -> None:
    """And the timeline, the items and the first source."""
    short, detail = (
        event_out(EVENT, EVENT_MS),
        event_detail_out(EVENT, EVENT_MS, [], event("e0", "Before"), None),
    )

    assert isinstance(detail, EventDetailOut)
    for name in EventOut.__struct_fields__:
        assert getattr(detail, name) == getattr(short, name), name
    assert [(point.at, point.items) for point in detail.timeline] == [
        (to_datetime(EVENT_MS - 3_600_000), 4),
        (to_datetime(EVENT_MS), 12),
    ]
    assert (list(detail.items), list(detail.cosines), detail.headline_id) == (["a1", "a2"], [1.0, 1.0], "a2")
    assert detail.first_source == "one.example"
    assert (detail.story_id, detail.previous, detail.next) == ("e0", "e0", None)


def test_an_event_without_sources_has_no_first_one() -> None:
    """All of its articles may have been deleted."""
    assert event_detail_out(event("e1", "", sources=()), EVENT_MS, [], None, None).first_source == ""
