"""Webhook subscriptions: secrets, limit, and resumption."""

from __future__ import annotations

import base64

import msgspec
import pytest

from aggregator.errors import Conflict, NotFound
from aggregator.events.webhooks.subscriptions import (
    MAX_SUBSCRIPTIONS,
    Subscription,
    Subscriptions,
    TargetKind,
    new_secret,
)
from aggregator.store.base import Store

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
        ("mail", "desk@newsroom.example", "d…@newsroom.example"),
        ("webhook", "https://hooks.example:8443/secret/path?token=1", "https://hooks.example:8443/…"),
        ("webhook", "https://[bad", "https://…"),
    ],
)
def test_addresses_are_masked(kind: TargetKind, url: str, shown: str) -> None:
    """The host unless it is secret; never tokens, users and passwords."""
    assert Subscription("h", url, "", kind=kind).masked_url == shown
