"""API keys with roles.

The text of a key is ``agg_<id>_<secret>``: a public id and 256 random bits. Only its SHA-256 is stored (a
password hash would add nothing to random bits), and it is compared in constant time. Keys are stored in a
``VersionedMap``; each process caches them for ``REFRESH_INTERVAL_MS``, so a revoked key works for at most
that long, and a request needs no round trip. A browser exchanges its key for a session (``sessions.py``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from aggregator.auth.sessions import LastUse, Sessions, hash_secret
from aggregator.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from aggregator.store.base import Store
from aggregator.store.identity import StoreMemory
from aggregator.store.optimistic import VersionedMap

Role = Literal["related", "crawler", "reader", "editor", "admin"]
Permission = Literal["nothing", "related", "key", "crawler", "reader", "editor", "admin"]

# Permissions of each role. A crawler writes only; "related", for keys in public pages, asks for related
# articles only; every other role includes reader.
ROLE_PERMISSIONS: dict[Role, frozenset[Permission]] = {
    "related": frozenset({"nothing", "related"}),
    "crawler": frozenset({"nothing", "key", "crawler"}),
    "reader": frozenset({"nothing", "key", "related", "reader"}),
    "editor": frozenset({"nothing", "key", "related", "reader", "editor"}),
    "admin": frozenset({"nothing", "key", "related", "crawler", "reader", "editor", "admin"}),
}

API_KEYS_KEY = b"{access}keys"
MAX_KEYS = 1000
REFRESH_INTERVAL_MS = 2000
# Time that a request waits for a refresh; then it uses the cached keys, and the refresh continues in the
# background.
REFRESH_TIMEOUT_S = 0.5
_KEY_TEXT_PREFIX = "agg"

NO_ADMIN_MESSAGE = (
    "role: there is no admin key. From the first key on every caller needs a key, people and crawlers that "
    "work without one included, so create an admin key first (`aggregator keys add NAME --role admin`) or "
    "set AGGREGATOR_BOOTSTRAP_KEY (that of the service, if it has one)."
)
LAST_ADMIN_MESSAGE = (
    "id: {id} is the last admin key, and every caller would still need a key. Create another admin key first "
    "(`aggregator keys add NAME --role admin`), or replace this one with `aggregator keys rotate {id}`."
)

audit_log = logging.getLogger("aggregator.audit")


class ApiKey(msgspec.Struct, frozen=True):
    """A stored API key; ``expires_ms`` None: never; ``sources`` () for all; ``replaced_by``: the new id."""

    id: str
    name: str
    role: Role
    hash: bytes
    created_ms: int
    expires_ms: int | None = None
    sources: tuple[str, ...] = ()
    replaced_by: str = ""

    def is_active(self, now_ms: int) -> bool:
        """Whether the key has not expired."""
        return self.expires_ms is None or now_ms < self.expires_ms

    def allows(self, permission: Permission) -> bool:
        """Whether the key grants ``permission``: that of its role, bound to sources at most a crawler's."""
        granted = ROLE_PERMISSIONS[self.role]
        return permission in (granted & ROLE_PERMISSIONS["crawler"] if self.sources else granted)


class ApiKeys:
    """API keys of one store, cached per process.

    ``bootstrap``: text of an admin key from the settings, never stored. ``enforce``: require a key even if
    none exists, as on any address but loopback; ``disabled``: never. Otherwise one is required from the first
    on: a store that lost its keys must not open what they protected. ``memory``: while it reports an
    incident, the keys that were read before stay valid; those of another installation are not read.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], int],
        memory: StoreMemory | None = None,
        *,
        bootstrap: str = "",
        enforce: bool = False,
        disabled: bool = False,
    ) -> None:
        self._clock = clock
        self._memory = memory or StoreMemory()
        self.sessions = Sessions(store)
        self.last_use = LastUse(store, clock)
        self._stored_keys = VersionedMap(store, API_KEYS_KEY, ApiKey, "key", MAX_KEYS)
        # The id is derived from the text, so sessions end when the operator replaces the key.
        hashed = hash_secret(bootstrap)
        id_ = "b" + hashlib.sha256(hashed).hexdigest()[:8]
        self._bootstrap = ApiKey(id_, "bootstrap", "admin", hashed, 0) if bootstrap else None
        self._enforce = enforce or bool(bootstrap)
        self._disabled = disabled
        self._cached_keys: dict[str, ApiKey] = {}
        self._refreshed_ms: int | None = None
        self._refresh_task: asyncio.Task[None] | None = None

    async def is_required(self) -> bool:
        """Whether requests need a key."""
        return not self._disabled and (self._enforce or bool(await self.current()))

    async def is_missing_keys(self) -> bool:
        """Whether a key is required and none exists, so that no request could succeed."""
        return self._enforce and not self._disabled and self._bootstrap is None and not await self.current()

    async def authenticate(self, key_text: str) -> ApiKey | None:
        """The key with this text; None if it is unknown, revoked or expired."""
        digest = hash_secret(key_text)
        if self._bootstrap is not None and hmac.compare_digest(self._bootstrap.hash, digest):
            return self._bootstrap
        key = await self._find_active(parse_key_id(key_text))
        # The comparison is made for an unknown id, too: the response time must not reveal which ids exist.
        is_same = hmac.compare_digest(key.hash if key is not None else bytes(32), digest)
        if key is None or not is_same:
            return None
        self.last_use.note(key.id)
        return key

    async def authenticate_session(self, token: str) -> ApiKey | None:
        """The key of a session; None if the session or its key has ended."""
        id_ = await self.sessions.key_id(token)
        key = await self._find_active(id_) if id_ else None
        if key is not None and key is not self._bootstrap:
            self.last_use.note(key.id)
        return key

    async def is_still_valid(self, key: ApiKey) -> bool:
        """Whether an authenticated key has been neither revoked nor expired since."""
        if not key.hash:  # of a user whom a proxy has signed in; not stored
            return key.is_active(self._clock())
        return await self._find_active(key.id) is not None

    async def _find_active(self, id_: str) -> ApiKey | None:
        if self._bootstrap is not None and id_ == self._bootstrap.id:
            return self._bootstrap
        key = (await self.current()).get(id_)
        return key if key is not None and key.is_active(self._clock()) else None

    async def current(self) -> Mapping[str, ApiKey]:
        """All keys by id, at most ``REFRESH_INTERVAL_MS`` old, or older without a store."""
        if self._refreshed_ms is None:
            await self._refresh()
        elif not 0 <= self._clock() - self._refreshed_ms < REFRESH_INTERVAL_MS:
            if self._refresh_task is None or self._refresh_task.done():
                self._refresh_task = asyncio.create_task(self._refresh())
            # Cached keys stay valid: while the store is unavailable no key can be revoked.
            await asyncio.wait({self._refresh_task}, timeout=REFRESH_TIMEOUT_S)
            if self._refresh_task.done():
                self._refresh_task.result()
        return self._cached_keys

    async def _refresh(self) -> None:
        now_ms = self._clock()
        try:
            stored = await self._stored_keys.all()
            await self._memory.observe()  # after it: what was read is of the store that is judged
            incident = self._memory.incident
            if incident is None or not incident.is_foreign:
                self._cached_keys = stored if incident is None else self._cached_keys | stored
        except StoreUnavailable:
            if self._refreshed_ms is None:
                raise
        self._refreshed_ms = now_ms
        self._enforce = self._enforce or bool(self._cached_keys) or self._memory.had_keys

    async def list_keys(self) -> list[ApiKey]:
        """All stored keys, oldest first."""
        return await self._stored_keys.values()

    async def add(
        self,
        name: str,
        role: Role,
        *,
        expires_ms: int | None = None,
        sources: tuple[str, ...] = (),
        keep_admin: bool = False,
    ) -> tuple[ApiKey, str]:
        """Create a key; returns it and its text. Raises InvalidInput, Conflict (``keep_admin``: no admin)."""
        sources = tuple(" ".join(source.split()) for source in sources)
        if not all(source and source.isprintable() for source in sources):
            raise InvalidInput("source: give the printable name of a source.", field="source")
        if sources and role != "crawler":
            raise InvalidInput(
                f"source: only keys with the role crawler can be restricted to sources, not {role}.",
                field="source",
            )
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise InvalidInput("name: a key needs a printable name of 1 to 100 characters.", field="name")
        key, text = _new_key(name.strip(), role, self._clock(), expires_ms, sources)

        def insert(known: dict[str, ApiKey]) -> None:
            self._stored_keys.check_space(known)
            known[key.id] = key
            if keep_admin and not self._has_admin(known):
                raise Conflict(NO_ADMIN_MESSAGE)

        await self._stored_keys.mutate(insert)
        self._refreshed_ms = None
        audit_log.info("key added id=%s name=%r role=%s", key.id, key.name, key.role)
        return key, text

    async def revoke(self, id_: str, *, keep_admin: bool = False) -> None:
        """Delete a key. Raises NotFound, and Conflict for the last admin key if ``keep_admin``."""

        def delete(known: dict[str, ApiKey]) -> None:
            had_admin = self._has_admin(known)
            if known.pop(id_, None) is None:
                raise NotFound(f"id: no key has the id {id_[:200]!r}; `aggregator keys list` shows the ids.")
            if keep_admin and had_admin and not self._has_admin(known):
                raise Conflict(LAST_ADMIN_MESSAGE.format(id=id_))

        await self._stored_keys.mutate(delete)
        await self.last_use.forget(id_)
        self._refreshed_ms = None
        audit_log.info("key revoked id=%s", id_)

    def _has_admin(self, known: Mapping[str, ApiKey]) -> bool:
        """Whether an active admin key exists, the bootstrap key included."""
        now_ms = self._clock()
        return self._bootstrap is not None or any(
            key.allows("admin") and key.is_active(now_ms) for key in known.values()
        )

    async def rotate(self, id_: str, overlap_ms: int) -> tuple[ApiKey, str]:
        """Replace a key by a new one; the old one expires after ``overlap_ms``. Raises NotFound."""
        now_ms = self._clock()

        def replace(known: dict[str, ApiKey]) -> tuple[ApiKey, str]:
            old = known.get(id_)
            if old is None:
                raise NotFound(f"id: no key has the id {id_[:200]!r}; `aggregator keys list` shows the ids.")
            key, text = _new_key(old.name, old.role, now_ms, None, old.sources)
            ends_ms = min(now_ms + overlap_ms, old.expires_ms or now_ms + overlap_ms)
            known[id_] = msgspec.structs.replace(old, expires_ms=ends_ms, replaced_by=key.id)
            known[key.id] = key
            return key, text

        key, text = await self._stored_keys.mutate(replace)
        self._refreshed_ms = None
        audit_log.info("key rotated id=%s to=%s name=%r", id_, key.id, key.name)
        return key, text


def _new_key(
    name: str, role: Role, now_ms: int, expires_ms: int | None, sources: tuple[str, ...]
) -> tuple[ApiKey, str]:
    id_ = secrets.token_hex(4)
    text = f"{_KEY_TEXT_PREFIX}_{id_}_{secrets.token_urlsafe(32)}"
    return ApiKey(id_, name, role, hash_secret(text), now_ms, expires_ms, sources), text


def parse_key_id(key_text: str) -> str:
    """The id that a key's text contains, whether or not the key exists; "" without one."""
    parts = key_text.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == _KEY_TEXT_PREFIX else ""
