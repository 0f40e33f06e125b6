"""The user whom a trusted proxy names in a header of a request.

* From a trusted proxy, with the header once: the user, with the role of ``user_roles``.
* From a trusted proxy, with the header repeated or unprintable: 401.
* From any other address: never a user; 401, unless the request has a valid key or session.
* Without the header: nobody; keys and sessions are checked as usual.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from aggregator.auth.api_keys import ApiKey
from aggregator.auth.proxy_users import UserRoles, is_user_name, user_key
from aggregator.errors import Forbidden, InvalidApiKey
from aggregator.http.forwarding import TrustedProxies, peer_address
from aggregator.settings import Settings


class ProxyUsers:
    """Users of requests; false if the settings have no ``user_header``."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._header, self._groups_header = settings.user_header, settings.user_groups_header
        self._proxies = TrustedProxies(settings.trusted_proxies)
        self._roles = UserRoles.parse(settings.user_roles)
        self._clock = clock

    def __bool__(self) -> bool:
        return bool(self._header)

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
