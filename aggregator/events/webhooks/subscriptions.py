"""Which addresses are called, for which events, and how each has fared."""

from __future__ import annotations

import base64
import secrets
from typing import Literal

import msgspec

from aggregator.store.base import Store
from aggregator.store.versioned_map import VersionedMap

SUBSCRIPTIONS_KEY = b"{events}webhooks"
MAX_SUBSCRIPTIONS = 100
SECRET_BYTES = 32

PayloadFormat = Literal["standard", "slack"]


class Subscription(msgspec.Struct, frozen=True):
    """One subscription.

    secret    "whsec_" + base64 of 32 random bytes: it signs the calls, so the store holds it as it is
    queries   query strings of /v1/events: only events that all of them admit
    disabled  why no more calls are made ("" while they are)
    """

    id: str
    url: str
    secret: str
    queries: tuple[str, ...] = ()
    format: PayloadFormat = "standard"
    created_ms: int = 0
    disabled: str = ""
    delivered: int = 0
    failed: int = 0
    last_ms: int = 0
    last_result: str = ""


class Subscriptions(VersionedMap[Subscription]):
    """The subscriptions of one store."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, SUBSCRIPTIONS_KEY, Subscription, "webhook", MAX_SUBSCRIPTIONS)

    async def subscribe(
        self, url: str, queries: tuple[str, ...], payload_format: PayloadFormat, now_ms: int
    ) -> Subscription:
        """Subscribe an address that was checked. Raises Conflict above 100."""
        hook = Subscription(secrets.token_hex(6), url, new_secret(), queries, payload_format, now_ms)
        await self.add(hook.id, hook)
        return hook

    async def enable(self, id_: str) -> Subscription:
        """Take calls up again. Raises NotFound."""
        return await self.update(id_, lambda hook: msgspec.structs.replace(hook, disabled=""))


def new_secret() -> str:
    """A signing secret (Standard Webhooks, "Signature scheme": 24 to 64 random bytes)."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
