"""People whom a reverse proxy has signed in, and the role that each of them has.

The proxy names the user, and perhaps the user's groups, in headers of each request. The rules are those of
the setting ``user_roles``: ``ada@news.example=admin, @newsroom=editor, *=reader``. A rule for the user's name
takes precedence, then the highest role of the user's groups, then ``*``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast, get_args

from aggregator.auth.api_keys import ROLE_PERMISSIONS, ApiKey, Role
from aggregator.time_units import HOUR_MS

GROUP_MARK, ANYONE = "@", "*"
MAX_NAME_CHARACTERS = 100
# A stream that is open for longer is closed: the browser opens another one, and the proxy checks again.
USER_TTL_MS = HOUR_MS


@dataclass(frozen=True, slots=True)
class UserRoles:
    """Roles by user name, by group, and of everybody else (None: no access)."""

    users: dict[str, Role]
    groups: dict[str, Role]
    default: Role | None = None

    @classmethod
    def parse(cls, text: str) -> UserRoles:
        """The rules of a valid setting ``user_roles``: NAME=ROLE, @GROUP=ROLE and *=ROLE, in any order."""
        users: dict[str, Role] = {}
        groups: dict[str, Role] = {}
        default: Role | None = None
        for rule in filter(str.strip, text.split(",")):
            name, _, role_name = rule.rpartition("=")
            name, role = name.strip(), cast(Role, role_name.strip())
            assert role in get_args(Role)
            if name == ANYONE:
                default = role
            elif name.startswith(GROUP_MARK):
                groups[name.removeprefix(GROUP_MARK)] = role
            else:
                users[name] = role
        return cls(users, groups, default)

    def role_of(self, name: str, groups: Iterable[str]) -> Role | None:
        """The role of a user; None if no rule applies. Names are compared exactly."""
        if name in self.users:
            return self.users[name]
        found = [self.groups[group] for group in groups if group in self.groups]
        return max(found, key=lambda role: len(ROLE_PERMISSIONS[role]), default=self.default)


def is_user_name(name: str) -> bool:
    """Whether a name can be shown and recorded: 1 to 100 printable characters."""
    return bool(name) and name.isprintable() and len(name) <= MAX_NAME_CHARACTERS


def user_key(name: str, role: Role, now_ms: int) -> ApiKey:
    """What a request of this user may do, in the form of a key that is stored nowhere.

    Its id depends on the name alone, so notes, read marks and desks belong to the same user tomorrow.
    """
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    return ApiKey("u" + digest[:16], name, role, b"", now_ms, now_ms + USER_TTL_MS)
