"""Bodies of webhook calls."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.webhooks.payload import event_payload, ping_body
from aggregator.events.webhooks.subscriptions import Subscription
from aggregator.time_units import format_rfc3339
from tests.support.factories import EVENT_MS, event

BASE_URL = "https://news.example"
STORM = event(
    "e1", "Storm <closes> & Sons", ["a1", "a2"], size=17, languages=("en",), revision=3, expected=0.456
)


def test_a_standard_body_describes_the_event() -> None:
    """Type, time of the change, and the fields of the event with a link to its page."""
    body = json.loads(event_payload(STORM, "fired", EVENT_MS + 5, "standard", BASE_URL))

    assert (body["type"], body["timestamp"]) == ("event.fired", format_rfc3339(EVENT_MS + 5))
    data = body["data"]
    assert (data["id"], data["title"], data["url"]) == (
        "e1",
        "Storm <closes> & Sons",
        f"{BASE_URL}/events/e1",
    )
    assert (data["size"], data["expected"], data["revision"], data["merged_into"]) == (17, 0.46, 3, None)
    assert data["sources"] == ["one.example", "two.example"]
    assert data["detected_at"] == data["last_seen"] == format_rfc3339(EVENT_MS)
    assert data["first_seen"] == format_rfc3339(EVENT_MS - 3_600_000)


def test_what_editors_do_and_article_ids_are_not_sent() -> None:
    """A receiver outside the newsroom gets neither names of editors nor the profile."""
    data = json.loads(event_payload(STORM, "fired", EVENT_MS, "standard", BASE_URL))["data"]

    assert data.keys().isdisjoint({"items", "actions", "acknowledged_by", "muted", "profile", "removed"})


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("fired", "Breaking"),
        ("doubled", "Growing"),
        ("merged", "Merged"),
        ("closed", "Ended"),
        ("other", "other"),
    ],
)
def test_a_chat_message_links_the_headline(kind: str, label: str) -> None:
    """The headline is escaped, since the chat system interprets "<" and "&"."""
    text = json.loads(event_payload(STORM, kind, EVENT_MS, "slack", BASE_URL))["text"]

    assert text == (
        f"{label}: <{BASE_URL}/events/e1|Storm &lt;closes&gt; &amp; Sons> (17 items from 2 outlets)"
    )


def test_without_a_public_url_there_is_no_link() -> None:
    """A relative address would be of no use to the receiver."""
    assert json.loads(event_payload(STORM, "fired", EVENT_MS, "standard", ""))["data"]["url"] is None
    text = json.loads(event_payload(STORM, "fired", EVENT_MS, "slack", ""))["text"]
    assert text == "Breaking: Storm &lt;closes&gt; &amp; Sons (17 items from 2 outlets)"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_headline_cannot_form_a_link_or_mention(title: str) -> None:
    """Only the two brackets of the link itself are in the message."""
    text = json.loads(event_payload(event("e1", title), "fired", EVENT_MS, "slack", BASE_URL))["text"]

    assert (text.count("<"), text.count(">")) == (1, 1)


def test_a_test_call_names_the_webhook() -> None:
    """The chat message does not, since people read it."""
    assert json.loads(ping_body(None, Subscription("w1", "", ""), EVENT_MS, BASE_URL)) == {
        "type": "ping",
        "timestamp": format_rfc3339(EVENT_MS),
        "data": {"webhook": "w1"},
    }
    slack = Subscription("w1", "", "", format="slack")
    assert json.loads(ping_body(None, slack, EVENT_MS, "")).keys() == {"text"}
