"""Webhook subscriptions: secrets, limit, and resumption."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import Conflict, NotFound
from aggregator.events.desks import Alert, Desk
from aggregator.events.event import EditorAction, Note
from aggregator.events.newsroom import split_off
from aggregator.events.webhooks.subscriptions import (
    MAX_SUBSCRIPTIONS,
    Subscription,
    Subscriptions,
    TargetKind,
    alert_message,
    event_data,
    event_payload,
    new_secret,
    ping_body,
)
from aggregator.store.base import Store
from aggregator.time_units import format_rfc3339
from tests.support.factories import EVENT_MS, event

URL = "https://desk.example/in"


def test_a_secret_is_random_and_of_the_standard_length() -> None:
    """Standard Webhooks requires 24 to 64 random bytes in base64 after "whsec_"."""
    first, second = new_secret(), new_secret()

    assert first != second
    assert first.startswith("whsec_")
    assert 24 <= len(base64.b64decode(first.removeprefix("whsec_"), validate=True)) <= 64


async def test_a_subscription_starts_enabled_and_without_attempts(store: Store) -> None:
    """Every replica reads the same id and secret; one URL may be registered with two filters."""
    subscriptions = Subscriptions(store)

    first, _ = await subscriptions.subscribe(URL, ("term=bridge",), "slack", 7)
    second, _ = await subscriptions.subscribe(URL, (), "standard", 8)

    assert first == Subscription(first.id, URL, first.secret, ("term=bridge",), "slack", created_ms=7)
    assert (first.disabled, first.delivered, first.failed) == ("", 0, 0)
    assert first.id != second.id and first.secret != second.secret
    assert await Subscriptions(store).values() == [first, second]


async def test_a_disabled_subscription_is_resumed(store: Store) -> None:
    """Its counts, its last result and the other subscriptions stay as they are."""
    subscriptions = Subscriptions(store)
    first, _ = await subscriptions.subscribe(URL, (), "standard", 7)
    other, _ = await subscriptions.subscribe(URL, (), "slack", 8)
    for each in (first, other):
        await subscriptions.update(
            each.id,
            lambda known: msgspec.structs.replace(known, disabled="gone", failed=3, last_result="410 Gone"),
        )

    enabled = await subscriptions.suspend(first.id, "")

    assert enabled == msgspec.structs.replace(first, failed=3, last_result="410 Gone")
    assert await subscriptions.get(first.id) == enabled
    assert (await subscriptions.get(other.id)).disabled == "gone"


async def test_an_unknown_subscription_cannot_be_resumed(store: Store) -> None:
    """It is not created by that."""
    subscriptions = Subscriptions(store)

    with pytest.raises(NotFound, match="no webhook 'w1'"):
        await subscriptions.suspend("w1", "")
    assert await subscriptions.values() == []


async def test_no_more_than_the_limit_is_registered(store: Store) -> None:
    """The last one fits."""
    subscriptions = Subscriptions(store)
    existing = {f"w{i}": Subscription(f"w{i}", URL, "whsec_x") for i in range(MAX_SUBSCRIPTIONS - 1)}
    await subscriptions.mutate(lambda known: known.update(existing))

    await subscriptions.subscribe(f"{URL}/last", (), "standard", 7)
    with pytest.raises(Conflict):
        await subscriptions.subscribe(URL, (), "slack", 8)

    assert len(await subscriptions.all()) == MAX_SUBSCRIPTIONS


@pytest.mark.parametrize(
    ("kind", "url", "shown"),
    [
        ("mail", "desk@newsroom.example", "desk@newsroom.example"),
        ("webhook", "https://hooks.example:8443/secret/path?token=1", "https://hooks.example:8443/…a7c1"),
        ("webhook", "https://user:word@[bad", "https://bad/…a7c1"),
    ],
)
def test_addresses_are_masked(kind: TargetKind, url: str, shown: str) -> None:
    """The host and the end of the id, which distinguishes two of one host; no token, user and password."""
    assert Subscription("77a7c1", url, "", kind=kind).shown_url == shown


BASE_URL = "https://news.example"
STORM = event(
    "e1", "Storm <closes> & Sons", ["a1", "a2"], size=17, languages=("en",), revision=3, expected=0.456
)


def test_a_standard_body_describes_the_event() -> None:
    """Type, time of the change, and the fields of the event with a link to its page."""
    body = json.loads(event_payload(STORM, "fired", EVENT_MS + 5, "standard", BASE_URL, {}))

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
    data = json.loads(event_payload(STORM, "fired", EVENT_MS, "standard", BASE_URL, {}))["data"]

    assert data.keys().isdisjoint({"items", "actions", "acknowledged_by", "muted", "profile", "removed"})


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("fired", "New event"),
        ("doubled", "Twice as large"),
        ("merged", "Merged"),
        ("closed", "Ended"),
        ("development", "Development"),
        ("other", "Other"),
    ],
)
def test_a_chat_message_links_the_headline(kind: str, label: str) -> None:
    """The headline is escaped, since the chat system interprets "<" and "&"."""
    text = json.loads(event_payload(STORM, kind, EVENT_MS, "slack", BASE_URL, {}))["text"]

    assert text == (
        f"{label}: <{BASE_URL}/events/e1|Storm &lt;closes&gt; &amp; Sons> (17 items from 2 outlets)"
    )


def test_a_message_says_the_newest_figure_behind_an_older_one() -> None:
    """In a chat, a call, the subject and the list of a mail alike; not where the headline says it."""
    quake = event("e1", "Quake kills 9", tolls=((1, "dead", 1_031),), languages=("en",))
    said = "Quake kills 9 (2+ outlets: 1\u202f031 dead)"
    alert, plain = Alert(Desk("d", "Night", 0), (quake,)), said.replace("\u202f", " ")
    message = alert_message(alert, EVENT_MS, BASE_URL, {}, with_links=False)

    assert said in json.loads(event_payload(quake, "fired", EVENT_MS, "slack", BASE_URL, {}))["text"]
    assert event_data(quake, BASE_URL, {})["current_title"] == said
    assert (message.title, message.body[: len(said)]) == (f"Night: {plain}", plain)
    told = replace(quake, title="Toll of quake reaches 1,031")
    assert (
        alert_message(replace(alert, events=(told,)), EVENT_MS, "", {}, False).title == f"Night: {told.title}"
    )


def test_without_a_public_url_there_is_no_link() -> None:
    """A relative address would be of no use to the receiver."""
    assert json.loads(event_payload(STORM, "fired", EVENT_MS, "standard", "", {}))["data"]["url"] is None
    text = json.loads(event_payload(STORM, "fired", EVENT_MS, "slack", "", {}))["text"]
    assert text == "New event: Storm &lt;closes&gt; &amp; Sons (17 items from 2 outlets)"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_headline_cannot_form_a_link_or_mention(title: str) -> None:
    """Only the two brackets of the link itself are in the message."""
    text = json.loads(event_payload(event("e1", title), "fired", EVENT_MS, "slack", BASE_URL, {}))["text"]

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


def test_a_digest_says_who_is_on_an_event_and_the_last_note() -> None:
    """A note is cut; nothing is said of an event that nobody has seen."""
    notes = (Note(1, "Ada", 5, "Call the port."), Note(2, "Ben", 6, "Tug crew\nis safe. " + "x" * 900))
    taken = event("e1", "Ferry sinks", assignee="Ada", notes=notes)
    events = (taken, replace(taken, id="e2", assignee="", acknowledged_by="Ben", notes=()), STORM)
    alert = Alert(Desk("d", "Night", 0), events, kind="digest", sections={"taken": 2, "unhandled": 1})
    _, first, second, _, third = alert_message(alert, EVENT_MS, "", {}, False).body.split("\n\n")

    assert "; on it: Ada\nNote by Ben: Tug crew is safe. xxx" in first and "x" * 900 not in first
    assert "; seen by Ben\nWhen it was detected" in second
    assert "on it" not in third and "Note" not in third


def test_the_time_of_a_split_is_in_the_zone_of_the_desk() -> None:
    """As all times of a message; the reason, also of feeds, has none."""
    split = EditorAction("move_items", "Ada", EVENT_MS + 3_600_000, "e1", items=("a",), id=7)
    made = split_off(event("e1", "Ferry sinks"), split)
    made = replace(made, title="Tug sinks", actions=(replace(split, into=made.id),))
    desk = Desk("d", "Night", 0, time_zone="Europe/Berlin")
    text = alert_message(Alert(desk, (made,), kind="digest"), EVENT_MS, "", {}, False).body

    assert "When it was split off, 21 Sep, 17:13 CEST: As part of an event that an editor split." in text
    assert "T15:13" not in text
