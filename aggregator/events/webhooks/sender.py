"""Sends one webhook call, guarded against server-side request forgery (OWASP API7:2023).

The host name is resolved once, all its addresses must be public, and the connection uses exactly these
addresses (a second look-up would allow DNS rebinding). Hosts that the system reads as IP literals are not
resolved, and there are more notations than validation knows, so each address is checked again when its socket
is created. Redirects are not followed, response bodies are cut off, and the whole call has a timeout.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from aggregator.errors import InvalidInput
from aggregator.events.notifications.addresses import is_public_address
from aggregator.events.webhooks.outbox import Delivery
from aggregator.events.webhooks.subscriptions import Subscription

TIMEOUT_S = 15.0
MAX_RESPONSE_BYTES = 16 * 1024
MAX_URL_CHARS = 2000
MAX_RETRY_AFTER_S = 3600


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Result of one attempt. ``error``: None on success; ``unsubscribed``: the receiver answered 410 Gone."""

    error: str | None
    unsubscribed: bool = False
    retry_after_s: int = 0


class ForbiddenAddress(OSError):
    """The host resolves to an address that webhooks must not reach."""


def validate_url(url: str, *, allow_private: bool) -> str:
    """The URL of a webhook, checked as far as possible without resolving it. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        # Normalized as by the HTTP client: a circled ten is "10", and a final dot has no meaning.
        host = (URL(url).raw_host or "").rstrip(".") if parts.hostname else None
    except ValueError:
        host, parts = None, urlsplit("")
    schemes = ("https", "http") if allow_private else ("https",)
    if (
        not host
        or parts.scheme not in schemes
        or len(url) > MAX_URL_CHARS
        or not url.isprintable()
        or " " in url
    ):
        allowed = " or ".join(f"{scheme}://" for scheme in schemes)
        raise InvalidInput(f"url: expected a URL that begins with {allowed}.", field="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url: remove user and password; calls are signed instead.", field="url")
    if not allow_private and _is_ip_literal(host) and not is_public_address(_parse_ip_literal(host)):
        raise InvalidInput(
            "url: webhooks go to public addresses only (webhook_allow_private_addresses allows others).",
            field="url",
        )
    return url


class PublicResolver(AbstractResolver):
    """Resolver that rejects hosts with any address that is not public."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a host. Raises ForbiddenAddress."""
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, family=family
        )
        addresses = [(kind, str(address[0])) for kind, _, _, _, address in found]
        if not addresses or not all(is_public_address(address) for _, address in addresses):
            raise ForbiddenAddress(f"{host} resolves to an address that webhooks must not reach")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
            for kind, address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""


def _open_public_socket(address: AddrInfoType) -> socket.socket:
    """Socket for a connection to ``address`` (a getaddrinfo entry). Raises ForbiddenAddress."""
    family, kind, protocol, _, (ip, *_) = address
    if not is_public_address(str(ip)):
        raise ForbiddenAddress(f"{ip} is an address that webhooks must not reach")
    return socket.socket(family, kind, protocol)


def make_session(*, allow_private: bool) -> aiohttp.ClientSession:
    """Client session for webhook calls; ``allow_private``: addresses are not checked (internal networks)."""
    connector = (
        aiohttp.TCPConnector(use_dns_cache=False, force_close=True)
        if allow_private
        else aiohttp.TCPConnector(
            resolver=PublicResolver(),
            socket_factory=_open_public_socket,
            use_dns_cache=False,
            force_close=True,
        )
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def send(
    session: aiohttp.ClientSession,
    subscription: Subscription,
    delivery: Delivery,
    now_ms: int,
    *,
    allow_private: bool,
) -> DeliveryResult:
    """One attempt. Never raises, except when cancelled."""
    try:
        validate_url(subscription.url, allow_private=allow_private)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "aggregator",
            **signature_headers(subscription, delivery, now_ms),
        }
        async with session.post(
            subscription.url, data=delivery.body, headers=headers, allow_redirects=False
        ) as response:
            await response.content.read(MAX_RESPONSE_BYTES)
            return _result_of(response)
    except TimeoutError:
        return DeliveryResult(f"no response within {TIMEOUT_S:g} s")
    except aiohttp.ClientConnectorError as error:
        return DeliveryResult(f"cannot connect to {error.host}: {error.os_error}"[:300])
    except (aiohttp.ClientError, OSError, InvalidInput, ValueError) as error:
        return DeliveryResult((str(error) or type(error).__name__)[:300])


def signature_headers(subscription: Subscription, delivery: Delivery, now_ms: int) -> dict[str, str]:
    """Headers of Standard Webhooks: HMAC-SHA256 of id, time and body with the subscription's secret."""
    seconds = str(now_ms // 1000)
    secret = base64.b64decode(subscription.secret.removeprefix("whsec_"))
    message = b".".join((delivery.id.encode(), seconds.encode(), delivery.body))
    signature = base64.b64encode(hmac.new(secret, message, hashlib.sha256).digest()).decode()
    return {"webhook-id": delivery.id, "webhook-timestamp": seconds, "webhook-signature": f"v1,{signature}"}


def _result_of(response: aiohttp.ClientResponse) -> DeliveryResult:
    if 200 <= response.status < 300:
        return DeliveryResult(None)
    header = response.headers.get("Retry-After", "")
    retry_after_s = min(int(header), MAX_RETRY_AFTER_S) if header.isascii() and header.isdigit() else 0
    return DeliveryResult(
        f"answered with status {response.status}",
        unsubscribed=response.status == 410,
        retry_after_s=retry_after_s,
    )


def _is_ip_literal(host: str) -> bool:
    """Whether the system reads the host as an address, as it does 127.1, 0x7f.1 and 2130706433."""
    return ":" in host or host.rsplit(".", 1)[-1][:1].isdigit() or host.lower().startswith("0x")


def _parse_ip_literal(host: str) -> str:
    if ":" in host:
        return host
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return ""
