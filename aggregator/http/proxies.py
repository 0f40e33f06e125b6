"""Reverse proxies: addresses and paths of requests behind them, and users whom they have signed in.

Headers of proxies say what any client wants them to say, so they count only on connections from
``trusted_proxies``:

    X-Forwarded-For      the client is the last address that is not of a trusted proxy; it is logged, and
                         limits without a key are divided by it
    X-Forwarded-Proto    https: session cookies are marked Secure
    ``user_header``      the user whom the proxy has signed in

If ``public_url`` has a path, requests are answered below it and without it. It is added again where an
address leaves the service: ``Location``, pages in ``pages/``, the OpenAPI document.

Roles of users and what is refused: docs/operating.md, "Users of a proxy".
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterable
from typing import Any, cast
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from yarl import URL

from aggregator.auth.api_keys import ROLE_PERMISSIONS, ApiKey, Role
from aggregator.errors import Forbidden, InvalidApiKey
from aggregator.settings import Settings
from aggregator.time_units import HOUR_MS

GROUP_MARK, ANYONE = "@", "*"
MAX_NAME_CHARACTERS = 100
# A stream that is open for longer is closed: the browser opens another one, and the proxy checks again.
USER_TTL_MS = HOUR_MS
SCHEMES = ("http", "https")
RequestFactory = Callable[..., web.BaseRequest]


class ProxyUsers:
    """Users of requests, if the settings have a ``user_header``."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._header, self._groups_header = settings.user_header, settings.user_groups_header
        self._proxies = TrustedProxies(settings.trusted_proxies)
        self._roles = UserRoles(settings.user_roles)
        self._clock = clock

    def user_of(self, request: web.Request, *, has_session: bool) -> ApiKey | None:
        """The user of a request; None without the header, or if it is ignored in favor of a session.

        Raises InvalidApiKey for a header that must not be believed, Forbidden for a user without a role.
        """
        names = request.headers.getall(self._header, ()) if self._header else ()
        if not names:
            return None
        peer = peer_address(request)
        if peer not in self._proxies:
            if has_session:
                return None
            raise InvalidApiKey(
                f"{self._header}: accepted from trusted_proxies only, and this connection comes from "
                f"{peer or 'a socket'}."
            )
        name = names[0].strip()
        if len(names) > 1 or not is_user_name(name):
            raise InvalidApiKey(
                f"{self._header}: expected once, with a printable name of at most 100 characters."
            )
        values = request.headers.getall(self._groups_header, ()) if self._groups_header else ()
        role = self._roles.role_of(name, [group.strip() for group in ",".join(values).split(",")])
        if role is None:
            raise Forbidden(f"{self._header}: user_roles has no role for {name!r} or a group of this user.")
        return user_key(name, role, self._clock())


PROXY_USERS = web.AppKey("proxy_users", ProxyUsers)


class UserRoles:
    """Roles by the valid setting ``user_roles``: NAME=ROLE, @GROUP=ROLE, *=ROLE (everybody), in any order."""

    def __init__(self, text: str) -> None:
        rules = (rule.rpartition("=") for rule in text.split(",") if rule.strip())
        self._roles = {name.strip(): cast(Role, role.strip()) for name, _, role in rules}

    def role_of(self, name: str, groups: Iterable[str]) -> Role | None:
        """The role of a user; None if no rule applies. Names are compared exactly."""
        if name in self._roles and name != ANYONE and not name.startswith(GROUP_MARK):
            return self._roles[name]
        found = [self._roles[key] for key in (GROUP_MARK + group for group in groups) if key in self._roles]
        return max(found, key=lambda role: len(ROLE_PERMISSIONS[role]), default=self._roles.get(ANYONE))


def is_user_name(name: str) -> bool:
    """Whether a name can be shown and recorded: 1 to 100 printable characters."""
    return bool(name) and name.isprintable() and len(name) <= MAX_NAME_CHARACTERS


def user_key(name: str, role: Role, now_ms: int) -> ApiKey:
    """The rights of a user as a key that is stored nowhere. Its id depends on the name alone."""
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    return ApiKey("u" + digest[:16], name, role, b"", now_ms, now_ms + USER_TTL_MS)


class TrustedProxies:
    """The networks of the setting ``trusted_proxies``."""

    def __init__(self, networks: str) -> None:
        self._networks = [ipaddress.ip_network(name.strip()) for name in networks.split(",") if name.strip()]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: str | None) -> bool:
        parsed = parse_address((address or "").partition("%")[0])
        # Of a listener for both protocols: ::ffff:10.0.0.1
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        return parsed is not None and any(parsed in network for network in self._networks)

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """The address of the client of a request from ``peer``; what a client claims itself is not reached.

        Each proxy appends the address that it was called from, so the list is read from its end for as long
        as the proxies are trusted. A part that is not an address ends it.
        """
        client = peer
        for part in reversed(forwarded_for.split(",")):
            if client not in self or parse_address(part.strip()) is None:
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
            headers = request.headers
            changes["remote"] = proxies.client_of(peer, ",".join(headers.getall("X-Forwarded-For", ())))
            if (scheme := headers.get("X-Forwarded-Proto", "").lower()) in SCHEMES:
                changes["scheme"] = scheme
        return request.clone(**changes) if changes else request

    return make


def _path_below(target: str, prefix: str) -> str | None:
    """The path of a request target without ``prefix``; None if it is another path."""
    path = target.partition("?")[0].partition("#")[0]
    if path == prefix:
        return "/"
    return path.removeprefix(prefix) if path.startswith(prefix + "/") else None


def parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text is; None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
