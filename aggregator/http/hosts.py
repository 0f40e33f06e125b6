"""Where a request is addressed to and comes from: host names, the base address of links, proxies.

A web page can reach a service in the visitor's network, and count as the same site, through a host name that
it lets resolve to the service's address (DNS rebinding). And a link that is built from any ``Host`` points
where the sender of the request wants, for every reader of a shared cache. Therefore a name that public DNS
could resolve is answered only if the settings name it, and links are built from named hosts alone.

Headers of proxies say what any client wants them to say, so they count only on connections from
``trusted_proxies``:

    X-Forwarded-For      the client is the last address that is not of a trusted proxy; it is logged, and
                         limits without a key are divided by it
    X-Forwarded-Proto    https: session cookies are marked Secure
    ``user_header``      the user whom the proxy has signed in (``proxy_users.py``)

The host of links is ``public_url`` alone. If that has a path (https://news.example/dedup), requests are
answered below it and without it, so a proxy may remove it; inside, all paths are without it. It is added
again where an address leaves the service: ``Location`` here, pages in ``pages/``, the OpenAPI document.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDictProxy
from yarl import URL

from aggregator.errors import UnknownHost
from aggregator.http.app_keys import SERVICE
from aggregator.settings import Settings

ANY_HOST = "*"
# Probes address a replica directly, under any name, and answer nothing that a page could use.
PROBE_PATHS = ("/healthz", "/readyz")
# Names that public DNS does not resolve: reserved, or of a cluster.
PRIVATE_SUFFIXES = (".localhost", ".internal", ".svc", ".svc.cluster.local")
# RFC 9110, section 7.2. Other characters (user@, \\, #) make a browser go elsewhere than this program reads.
_HOST_HEADER = re.compile(r"(?P<name>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
RequestFactory = Callable[..., web.BaseRequest]
SCHEMES = ("http", "https")
UNKNOWN_HOST_MESSAGE = (
    "Host: {name!r} is not a host name of this service; set public_url or allowed_hosts to answer requests "
    "for it."
)


def check_host(request: web.Request) -> None:
    """Raise UnknownHost for a name that is neither configured nor unknown to public DNS."""
    settings, host = request.app[SERVICE].settings, request.host
    if is_answered_host(host, settings.allowed_hosts, settings.host, settings.public_url):
        return
    if request.path not in PROBE_PATHS:
        raise UnknownHost(UNKNOWN_HOST_MESSAGE.format(name=host[:100]))


@lru_cache(maxsize=256)  # called for every request
def is_answered_host(host: str, allowed_hosts: str, own_host: str, public_url: str) -> bool:
    """Whether a Host header is an IP address, a configured name, or a name that public DNS cannot resolve."""
    name = _name_of(host)
    if name is None:
        return False
    named = _named_hosts(allowed_hosts, own_host, public_url)
    return (
        name in named
        or ANY_HOST in named
        or "." not in name
        or name.endswith(PRIVATE_SUFFIXES)
        or _parse_address(name) is not None
    )


def base_url(request: web.Request) -> str:
    """Base address of links, without a trailing slash: public_url, else the address of the request.

    That is used if its Host is a configured name, localhost or the address that the request arrived at. For
    any other the result is "", which makes links relative to the address that the caller used.
    """
    settings = request.app[SERVICE].settings
    if settings.public_url:
        return settings.public_url.rstrip("/")
    name = _name_of(request.host)
    if name is None:
        return ""
    named = _named_hosts(settings.allowed_hosts, settings.host, settings.public_url)
    is_named = name in named or name == "localhost" or name.endswith(".localhost")
    address = _parse_address(name)
    if is_named or (address is not None and address == _local_address(request)):
        return f"{request.scheme}://{request.host}"
    return ""


def _named_hosts(allowed_hosts: str, host: str, public_url: str) -> frozenset[str]:
    """Host names of the settings, in lower case."""
    named = {name.strip().lower().rstrip(".") for name in allowed_hosts.split(",")}
    return frozenset(named | {host.lower(), urlsplit(public_url).hostname or ""}) - {""}


def _name_of(host: str) -> str | None:
    """The name or address of a Host header in lower case, without port; None if it is malformed."""
    match = _HOST_HEADER.fullmatch(host)
    return match["name"].strip("[]").lower().rstrip(".") if match else None


def _parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _local_address(request: web.Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that the connection was accepted at; None for a Unix socket."""
    own = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return _parse_address(own[0].partition("%")[0]) if isinstance(own, tuple) else None


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
            if client not in self or _parse_address(part.strip()) is None:
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
