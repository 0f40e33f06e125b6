"""Sends one delivery: an e-mail, or a webhook call.

Calls are guarded against server-side request forgery (OWASP API7:2023): the address of each connection is
checked when its socket is created, whatever notation or name led to it. Redirects are not followed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import socket
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp import AddrInfoType
from yarl import URL

from aggregator.errors import InvalidInput
from aggregator.events.webhooks.mail import SmtpServer, plain_reason, send_mail
from aggregator.events.webhooks.outbox import Delivery, DeliveryResult
from aggregator.events.webhooks.subscriptions import Message, Subscription

TIMEOUT_S = 15.0
MAX_RESPONSE_BYTES = 16 * 1024
MAX_URL_CHARS = 2000
MAX_RETRY_AFTER_S = 3600
NO_SMTP_SERVER = "e-mail is not set up: the administrator sets AGGREGATOR_SMTP_URL and AGGREGATOR_SMTP_SENDER"

# Global unicast addresses of IPv6 (RFC 4291, section 2.4), and the NAT64 prefix (RFC 6052).
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Not global by the IANA registries, which some supported versions of Python do not know completely. Clouds
# answer metadata at 192.0.0.192.
_SPECIAL_PURPOSE = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))


class ForbiddenAddress(OSError):
    """The host has an address that webhooks must not reach."""


def is_public_address(address: str) -> bool:
    """Whether an IP address is public; an embedded IPv4 address (mapped, 6to4, Teredo, NAT64) must be too."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public_address(str(inner))
        if ip in _NAT64:
            return is_public_address(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if ip not in _GLOBAL_UNICAST:
            return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL_PURPOSE)


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
    is_plain = url.isprintable() and " " not in url and len(url) <= MAX_URL_CHARS
    if not host or parts.scheme not in schemes or not is_plain:
        allowed = " or ".join(f"{scheme}://" for scheme in schemes)
        raise InvalidInput(f"url: expected a URL that begins with {allowed}.", field="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url: remove user and password; calls are signed instead.", field="url")
    address = None if allow_private else _literal_address(host)
    if address is not None and not is_public_address(address):
        raise InvalidInput(
            "url: webhooks go to public addresses only (webhook_allow_private_addresses allows others).",
            field="url",
        )
    return url


def _open_public_socket(address: AddrInfoType) -> socket.socket:
    """Socket for a connection to ``address`` (a getaddrinfo entry). Raises ForbiddenAddress."""
    family, kind, protocol, _, (ip, *_) = address
    if not is_public_address(str(ip)):
        raise ForbiddenAddress(f"{ip} is an address that webhooks must not reach")
    return socket.socket(family, kind, protocol)


class TargetSender:
    """Sends deliveries. ``allow_private``: private addresses may be called; ``smtp``: None for no e-mail."""

    def __init__(self, *, allow_private: bool, smtp: SmtpServer | None = None) -> None:
        self.allow_private, self.smtp = allow_private, smtp
        self._session: aiohttp.ClientSession | None = None

    async def send(self, target: Subscription | None, delivery: Delivery, now_ms: int) -> DeliveryResult:
        """One attempt; None: the target was removed. Never raises, except when cancelled."""
        if target is None:
            return DeliveryResult("the webhook was removed", unsubscribed=True)
        if target.kind == "mail":
            return await self._send_mail(target.url, delivery, now_ms)
        if self._session is None:
            self._session = self._make_session()
        try:
            validate_url(target.url, allow_private=self.allow_private)
            headers = signature_headers(target, delivery, now_ms)
            async with self._session.post(
                target.url, data=delivery.body, headers=headers, allow_redirects=False
            ) as response:
                await response.content.read(MAX_RESPONSE_BYTES)
                return _result_of(response, now_ms)
        except TimeoutError:
            return DeliveryResult(f"no response within {TIMEOUT_S:g} s")
        except aiohttp.ClientConnectorError as error:
            is_unknown = isinstance(error, aiohttp.ClientConnectorDNSError)
            reason = "there is no such host" if is_unknown else plain_reason(error.os_error)
            return DeliveryResult(f"cannot connect to {error.host}: {reason}"[:300])
        except (aiohttp.ClientError, OSError, InvalidInput, ValueError) as error:
            return DeliveryResult(plain_reason(error)[:300])

    async def _send_mail(self, address: str, delivery: Delivery, now_ms: int) -> DeliveryResult:
        try:
            message = msgspec.json.decode(delivery.body, type=Message)
        except msgspec.MsgspecError:
            return DeliveryResult("the stored notification is damaged")
        if self.smtp is None:
            return DeliveryResult(NO_SMTP_SERVER)
        error = await send_mail(self.smtp, address, message.title, message.body, delivery.id, now_ms)
        return DeliveryResult(error)

    def _make_session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,  # one call per target
            socket_factory=None if self.allow_private else _open_public_socket,
            use_dns_cache=False,
            force_close=True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers={"Content-Type": "application/json", "User-Agent": "aggregator"},
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def signature_headers(subscription: Subscription, delivery: Delivery, now_ms: int) -> dict[str, str]:
    """Headers of Standard Webhooks: HMAC-SHA256 of id, time and body with the subscription's secret."""
    seconds = str(now_ms // 1000)
    secret = base64.b64decode(subscription.secret.removeprefix("whsec_"))
    message = b".".join((delivery.id.encode(), seconds.encode(), delivery.body))
    signature = base64.b64encode(hmac.new(secret, message, hashlib.sha256).digest()).decode()
    return {"webhook-id": delivery.id, "webhook-timestamp": seconds, "webhook-signature": f"v1,{signature}"}


def _result_of(response: aiohttp.ClientResponse, now_ms: int) -> DeliveryResult:
    if 200 <= response.status < 300:
        return DeliveryResult(None)
    return DeliveryResult(
        f"answered with status {response.status}",
        unsubscribed=response.status == 410,
        retry_after_s=_retry_after_s(response.headers.get("Retry-After", ""), now_ms),
    )


def _retry_after_s(header: str, now_ms: int) -> int:
    """The seconds of a Retry-After header (seconds or a date), 0 to ``MAX_RETRY_AFTER_S``."""
    try:
        wait_s = int(header) if header.isdigit() else parsedate_to_datetime(header).timestamp() - now_ms / 1e3
    except (ValueError, OverflowError):
        return 0
    return round(min(max(0, wait_s), MAX_RETRY_AFTER_S))


def _literal_address(host: str) -> str | None:
    """The address that the system reads in a host, as in 127.1, 0x7f.1 and 2130706433; None: in a name."""
    if ":" in host:
        return host
    if not host.rsplit(".", 1)[-1][:1].isdigit() and not host.lower().startswith("0x"):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return ""
