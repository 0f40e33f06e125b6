"""Who may do what: access keys, their roles, and how much each may ask.

A key is 256 random bits. The store knows its SHA-256 only (a hash meant for passwords would add nothing to random
bits), it is compared in constant time, and it can be told apart by the id in front of it, which is no secret:
``agg_<id>_<secret>``. Keys live on a ``Shelf``; each process looks at them again after ``REFRESH_MS``, so a key that
was revoked works for that long at most, and a request costs no round trip of its own.

A browser exchanges its key for a session: random bits again, of which the store keeps the hash, until they expire.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Literal

import msgspec

from aggregator.errors import InvalidInput, NotFound, StoreUnavailable
from aggregator.store.base import Put, Store
from aggregator.store.versioned_map import VersionedMap

Role = Literal["crawler", "reader", "editor", "admin"]
Permission = Literal["nothing", "key", "crawler", "reader", "editor", "admin"]

ROLES: tuple[Role, ...] = ("crawler", "reader", "editor", "admin")
# What each role may do. Crawlers write and do not read along; every other role includes the one before it.
ROLE_PERMISSIONS: dict[Role, frozenset[Permission]] = {
    "crawler": frozenset({"nothing", "key", "crawler"}),
    "reader": frozenset({"nothing", "key", "reader"}),
    "editor": frozenset({"nothing", "key", "reader", "editor"}),
    "admin": frozenset({"nothing", "key", "crawler", "reader", "editor", "admin"}),
}

API_KEYS_KEY = b"{access}keys"
SESSION_KEY_PREFIX = b"session:"
MAX_KEYS = 1000
REFRESH_INTERVAL_MS = 2000
# So long a request waits for that; it goes on by the keys that were known, and the look goes on without it.
REFRESH_TIMEOUT_S = 0.5
SESSION_TTL_MS = 12 * 3_600_000
MAX_KEY_CHARACTERS = 200
_KEY_TEXT_PREFIX = "agg"

audit_log = logging.getLogger("aggregator.audit")


class ApiKey(msgspec.Struct, frozen=True):
    """What is kept of a key. ``expires_ms``: None for never. ``sources``: of whose articles alone; () for all."""

    id: str
    name: str
    role: Role
    hash: bytes
    created_ms: int
    expires_ms: int | None = None
    sources: tuple[str, ...] = ()

    def is_active(self, now_ms: int) -> bool:
        """Whether it may be used."""
        return self.expires_ms is None or now_ms < self.expires_ms

    def allows(self, permission: Permission) -> bool:
        """Whether its role is enough for ``need``."""
        return permission in ROLE_PERMISSIONS[self.role]


class ApiKeys:
    """The keys of one store.

    ``bootstrap``: an admin key that the operator gives in the settings; it is not written anywhere.
    ``always``: keys are asked for even when there are none, as on any address but loopback; otherwise they are asked
    for as soon as there is one, and from then on: a store that lost its keys must not open what they guarded.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], int],
        *,
        bootstrap: str = "",
        enforce: bool = False,
        disabled: bool = False,
    ) -> None:
        self._store, self._clock = store, clock
        self._stored_keys = VersionedMap(store, API_KEYS_KEY, ApiKey, "key", MAX_KEYS)
        self._bootstrap = _bootstrap_key(bootstrap) if bootstrap else None
        self._enforce = enforce or bool(bootstrap)
        self._disabled = disabled
        self._cached_keys: dict[str, ApiKey] = {}
        self._refreshed_ms: int | None = None
        self._refresh_task: asyncio.Task[None] | None = None

    # -- asking

    async def is_required(self) -> bool:
        """Whether anybody is asked for a key."""
        return not self._disabled and (self._enforce or bool(await self._current_keys()))

    async def is_missing_keys(self) -> bool:
        """Whether keys are asked for, wherever we listen, and there is none: then nobody could come in."""
        return (
            self._enforce
            and not self._disabled
            and self._bootstrap is None
            and not await self._current_keys()
        )

    async def authenticate(self, key_text: str) -> ApiKey | None:
        """Whose key this is; None when it is nobody's, revoked or expired."""
        id_ = _parse_key_id(key_text)
        if self._bootstrap is not None and hmac.compare_digest(self._bootstrap.hash, hash_secret(key_text)):
            return self._bootstrap
        found = (await self._current_keys()).get(id_)
        same = hmac.compare_digest(found.hash if found else bytes(32), hash_secret(key_text))
        return found if found is not None and same and found.is_active(self._clock()) else None

    async def is_still_valid(self, key: ApiKey) -> bool:
        """Whether a key that was identified is still one: neither revoked nor expired since."""
        found = (
            self._bootstrap
            if self._bootstrap is not None and key.id == self._bootstrap.id
            else (await self._current_keys()).get(key.id)
        )
        return found is not None and found.is_active(self._clock())

    async def _current_keys(self) -> dict[str, ApiKey]:
        if self._refreshed_ms is None:
            await self._refresh()
        elif not 0 <= self._clock() - self._refreshed_ms < REFRESH_INTERVAL_MS:
            if self._refresh_task is None or self._refresh_task.done():
                self._refresh_task = asyncio.create_task(self._refresh())
            # Whoever was known stays so: while the store is away nobody can revoke anything.
            await asyncio.wait({self._refresh_task}, timeout=REFRESH_TIMEOUT_S)
            if self._refresh_task.done():
                self._refresh_task.result()
        return self._cached_keys

    async def _refresh(self) -> None:
        now_ms = self._clock()
        try:
            self._cached_keys = await self._stored_keys.all()
        except StoreUnavailable:
            if self._refreshed_ms is None:
                raise
        self._refreshed_ms = now_ms
        self._enforce = self._enforce or bool(self._cached_keys)

    # -- sessions of browsers

    async def start_session(self, key: ApiKey) -> str:
        """A new session of ``key``: what its browser keeps."""
        token = secrets.token_urlsafe(32)
        await self._store.put([Put(_session_store_key(token), key.id.encode(), SESSION_TTL_MS)])
        return token

    async def authenticate_session(self, token: str) -> ApiKey | None:
        """Whose session this is; None when it ended, or its key did."""
        id_ = (await self._store.read([_session_store_key(token)]))[0]
        if not id_:
            return None
        if self._bootstrap is not None and id_.decode() == self._bootstrap.id:
            return self._bootstrap
        found = (await self._current_keys()).get(id_.decode())
        return found if found is not None and found.is_active(self._clock()) else None

    async def end_session(self, token: str) -> None:
        """Sign out. Harmless when it had ended."""
        await self._store.put([Put(_session_store_key(token), b"", 1)])

    # -- changing

    async def list_keys(self) -> list[ApiKey]:
        """All keys of the store, oldest first."""
        return await self._stored_keys.values()

    async def add(
        self, name: str, role: Role, *, expires_ms: int | None = None, sources: tuple[str, ...] = ()
    ) -> tuple[ApiKey, str]:
        """A new key and, this once, its text. Raises BadInput, Conflict above 1000 keys."""
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise InvalidInput("name: a key needs a printable name of 1 to 100 characters.", field="name")
        key, text = _new_key(name.strip(), role, self._clock(), expires_ms, sources)
        await self._stored_keys.add(key.id, key)
        self._refreshed_ms = None
        audit_log.info("key added id=%s name=%r role=%s", key.id, key.name, key.role)
        return key, text

    async def revoke(self, id_: str) -> None:
        """Take a key away. Raises NotFound."""
        await self._stored_keys.remove(id_)
        self._refreshed_ms = None
        audit_log.info("key revoked id=%s", id_)

    async def rotate(self, id_: str, overlap_ms: int) -> tuple[ApiKey, str]:
        """Another key of the same name and role; the old one lives on for ``overlap_ms``. Raises NotFound."""
        now_ms = self._clock()
        made: list[tuple[ApiKey, str]] = []

        def change(known: dict[str, ApiKey]) -> None:
            old = known.get(id_)
            if old is None:
                raise NotFound(f"There is no key {id_[:200]!r}.")
            made[:] = [_new_key(old.name, old.role, now_ms, None, old.sources)]
            ends_ms = min(now_ms + overlap_ms, old.expires_ms or now_ms + overlap_ms)
            known[id_] = msgspec.structs.replace(old, expires_ms=ends_ms)
            known[made[0][0].id] = made[0][0]

        await self._stored_keys.mutate(change)
        self._refreshed_ms = None
        audit_log.info("key rotated id=%s to=%s name=%r", id_, made[0][0].id, made[0][0].name)
        return made[0]


def hash_secret(secret: str) -> bytes:
    """(32,) bytes: what is kept of a secret."""
    return hashlib.sha256(secret[:MAX_KEY_CHARACTERS].encode("utf-8", "replace")).digest()


def _new_key(
    name: str, role: Role, now_ms: int, expires_ms: int | None, sources: tuple[str, ...]
) -> tuple[ApiKey, str]:
    id_ = secrets.token_hex(4)
    text = f"{_KEY_TEXT_PREFIX}_{id_}_{secrets.token_urlsafe(32)}"
    return ApiKey(id_, name, role, hash_secret(text), now_ms, expires_ms, sources), text


def _bootstrap_key(text: str) -> ApiKey:
    # Its id follows from it, so that sessions end with the key that began them.
    digest = hash_secret(text)
    return ApiKey("b" + hashlib.sha256(digest).hexdigest()[:8], "bootstrap", "admin", digest, 0)


def _parse_key_id(key_text: str) -> str:
    parts = key_text.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == _KEY_TEXT_PREFIX else ""


def _session_store_key(token: str) -> bytes:
    return SESSION_KEY_PREFIX + hash_secret(token).hex().encode()
