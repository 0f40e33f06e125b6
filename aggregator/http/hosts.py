"""Host names that requests may be addressed to, and the base address of links.

A web page can reach a service in the visitor's network, and count as the same site, through a host name that
it lets resolve to the service's address (DNS rebinding). And a link that is built from any ``Host`` points
where the sender of the request wants, for every reader of a shared cache. Therefore a name that public DNS
could resolve is answered only if the settings name it, and links are built from named hosts alone.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit

from aiohttp import web

from aggregator.errors import UnknownHost
from aggregator.http.app_keys import SERVICE

ANY_HOST = "*"
# Probes address a replica directly, under any name, and answer nothing that a page could use.
PROBE_PATHS = ("/healthz", "/readyz")
# Names that public DNS does not resolve: reserved, or of a cluster.
PRIVATE_SUFFIXES = (".localhost", ".internal", ".svc", ".svc.cluster.local")
# RFC 9110, section 7.2. Other characters (user@, \\, #) make a browser go elsewhere than this program reads.
_HOST_HEADER = re.compile(r"(?P<name>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
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
