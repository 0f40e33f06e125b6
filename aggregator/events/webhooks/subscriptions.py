"""Webhook subscriptions: URLs, their filters, and delivery status."""

from __future__ import annotations

import base64
import re
import secrets
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from aggregator.store.base import Store
from aggregator.store.optimistic import VersionedMap

SUBSCRIPTIONS_KEY = b"{events}webhooks"
MAX_SUBSCRIPTIONS = 100
SECRET_BYTES = 32

PayloadFormat = Literal["standard", "slack"]
TargetKind = Literal["webhook", "mail"]
_UNSAFE_HOST_CHARS = re.compile(r"[^\w.:-]", re.ASCII)


class Subscription(msgspec.Struct, frozen=True):
    """One subscription.

    secret    "whsec_" + base64 of 32 random bytes; stored in clear, since it signs the calls
    queries   query strings of /v1/events; an event must match all of them
    kind      "webhook", or "mail": ``url`` is an e-mail address
    desk      id of the desk whose alerts it gets; "": a webhook of its own, which gets every change
    disabled  reason why no calls are made ("" while they are); owner: id of the key that created it
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
    owner: str = ""
    kind: TargetKind = "webhook"
    desk: str = ""

    @property
    def service(self) -> str:
        """What it is called on the pages."""
        return "E-mail" if self.kind == "mail" else "Webhook"

    @property
    def masked_url(self) -> str:
        """The address without what is secret: "https://hooks.example/…", "d…@example.org"."""
        if self.kind == "mail":
            user, _, domain = self.url.rpartition("@")
            return f"{user[:1]}…@{domain}"
        scheme = self.url.partition("://")[0].lower()
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
        except ValueError:
            return f"{scheme}://…"
        return f"{scheme}://{_UNSAFE_HOST_CHARS.sub('', host)}{port}/…"


class Subscriptions(VersionedMap[Subscription]):
    """The subscriptions of a store, at most 100, of which one key creates at most half."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, SUBSCRIPTIONS_KEY, Subscription, "webhook", MAX_SUBSCRIPTIONS)

    async def subscribe(
        self,
        url: str,
        queries: tuple[str, ...],
        payload_format: PayloadFormat,
        now_ms: int,
        owner: str = "",
        *,
        kind: TargetKind = "webhook",
        desk: str = "",
    ) -> tuple[Subscription, bool]:
        """Add a validated URL with a new id and secret, unless known; whether it is new. Raises Conflict."""
        subscription = Subscription(
            secrets.token_hex(6), url, new_secret(), queries, payload_format, now_ms, owner=owner, kind=kind,
            desk=desk,
        )  # fmt: skip
        return await self.add_once(subscription.id, subscription, _is_same, lambda known: known.owner)

    async def suspend(self, id_: str, reason: str) -> Subscription:
        """Suspend the calls of a subscription, or resume them without a reason. Raises NotFound."""
        return await self.update(id_, lambda known: msgspec.structs.replace(known, disabled=reason))

    async def remove_of_desk(self, desk: str) -> None:
        """Remove all targets of a desk."""

        def remove(known: dict[str, Subscription]) -> None:
            for id_ in [id_ for id_, target in known.items() if target.desk == desk]:
                del known[id_]

        await self.mutate(remove)


def _is_same(one: Subscription, other: Subscription) -> bool:
    first, second = ((s.url, s.kind, s.desk, s.format, sorted(s.queries)) for s in (one, other))
    return first == second


def new_secret() -> str:
    """New signing secret (Standard Webhooks, "Signature scheme": 24 to 64 random bytes)."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
