"""Users whom a trusted reverse proxy has signed in, and the role that each of them has.

The proxy names the user, and perhaps the user's groups, in headers of each request:

* From a trusted proxy, with the header once: the user, with the role of ``user_roles``.
* From a trusted proxy, with the header repeated or unprintable: 401.
* From any other address: never a user; 401, unless the request has a valid key or session.
* Without the header: nobody; keys and sessions are checked as usual.

The rules of the setting ``user_roles`` are ``ada@news.example=admin, @newsroom=editor, *=reader``. A rule for
the user's name takes precedence, then the highest role of the user's groups, then ``*``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import cast

from aiohttp import web

from aggregator.auth.api_keys import ROLE_PERMISSIONS, ApiKey, Role
from aggregator.errors import Forbidden, InvalidApiKey
from aggregator.http.hosts import TrustedProxies, peer_address
from aggregator.settings import Settings
from aggregator.time_units import HOUR_MS

GROUP_MARK, ANYONE = "@", "*"
MAX_NAME_CHARACTERS = 100
# A stream that is open for longer is closed: the browser opens another one, and the proxy checks again.
USER_TTL_MS = HOUR_MS


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
