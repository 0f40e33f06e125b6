"""Requests that arrive through a reverse proxy: client address, scheme, user and path below a prefix.

Headers say what any client wants them to say, so they count only on connections from ``trusted_proxies``:

    X-Forwarded-For      the client is the last address that is not of a trusted proxy; it is logged, and
                         limits without a key are divided by it
    X-Forwarded-Proto    https: session cookies are marked Secure
    ``user_header``      the user whom the proxy has signed in (``http/middleware/proxy_users.py``)

The host of links is ``public_url`` alone. If that has a path (https://news.example/dedup), requests are
answered below it and without it, so a proxy may remove it; inside, all paths are without it. It is added
again where an address leaves the service: ``Location`` here, pages in ``pages/``, the OpenAPI document.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDictProxy
from yarl import URL

from aggregator.settings import Settings

RequestFactory = Callable[..., web.BaseRequest]
SCHEMES = ("http", "https")


class TrustedProxies:
    """The networks of the setting ``trusted_proxies``."""

    def __init__(self, networks: str) -> None:
        self._networks = [ipaddress.ip_network(name.strip()) for name in networks.split(",") if name.strip()]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: str | None) -> bool:
        try:
            parsed = ipaddress.ip_address((address or "").partition("%")[0])
        except ValueError:
            return False
        # Of a listener for both protocols: ::ffff:10.0.0.1
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(parsed in network for network in self._networks)

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """The address of the client of a request from ``peer``; what a client claims itself is not reached.

        Each proxy appends the address that it was called from, so the list is read from its end for as long
        as the proxies are trusted. A part that is not an address ends it.
        """
        client = peer
        for part in reversed(forwarded_for.split(",")):
            if client not in self or not _is_address(part.strip()):
                break
            client = part.strip()
        return client


def base_path(settings: Settings) -> str:
    """The path of ``public_url`` without a slash at the end; "" for a service with a host of its own."""
    return urlsplit(settings.public_url).path.rstrip("/")


def peer_address(request: web.BaseRequest) -> str:
    """The address that the connection comes from: that of the last proxy; "" for a Unix socket."""
    peer = request.get_extra_info("peername")
    return peer[0] if isinstance(peer, tuple) else ""


def wrap_factory(factory: RequestFactory, settings: Settings) -> RequestFactory:
    """The request factory of a server behind proxies; ``factory`` itself without such settings."""
    proxies, prefix = TrustedProxies(settings.trusted_proxies), base_path(settings)
    if not proxies and not prefix:
        return factory

    def make(message: RawRequestMessage, *args: Any, **kwargs: Any) -> web.BaseRequest:
        request = factory(message, *args, **kwargs)
        changes: dict[str, Any] = {}
        if prefix and (path := _path_below(message.path, prefix)) is not None:
            changes["rel_url"] = URL.build(path=path, query_string=message.url.raw_query_string, encoded=True)
        if (peer := peer_address(request)) in proxies:
            changes |= _forwarded(proxies, peer, request.headers)
        return request.clone(**changes) if changes else request

    return make


def _forwarded(proxies: TrustedProxies, peer: str, headers: CIMultiDictProxy[str]) -> dict[str, str]:
    found = {"remote": proxies.client_of(peer, ",".join(headers.getall("X-Forwarded-For", ())))}
    scheme = headers.get("X-Forwarded-Proto", "").lower()
    return found | ({"scheme": scheme} if scheme in SCHEMES else {})


def _path_below(target: str, prefix: str) -> str | None:
    """The path of a request target without ``prefix``; None if it is another path."""
    path = target.partition("?")[0].partition("#")[0]
    if path == prefix:
        return "/"
    return path.removeprefix(prefix) if path.startswith(prefix + "/") else None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
