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

from aggregator.errors import BadInput, NotFound, StoreUnavailable
from aggregator.store.base import Put, Store
from aggregator.store.versioned_map import Shelf

Role = Literal["crawler", "reader", "editor", "admin"]
Need = Literal["nothing", "key", "crawler", "reader", "editor", "admin"]

ROLES: tuple[Role, ...] = ("crawler", "reader", "editor", "admin")
# What each role may do. Crawlers write and do not read along; every other role includes the one before it.
GRANTS: dict[Role, frozenset[Need]] = {
    "crawler": frozenset({"nothing", "key", "crawler"}),
    "reader": frozenset({"nothing", "key", "reader"}),
    "editor": frozenset({"nothing", "key", "reader", "editor"}),
    "admin": frozenset({"nothing", "key", "crawler", "reader", "editor", "admin"}),
}

KEYS = b"{access}keys"
SESSIONS = b"session:"
MAX_KEYS = 1000
REFRESH_MS = 2000
# So long a request waits for that; it goes on by the keys that were known, and the look goes on without it.
PATIENCE_S = 0.5
SESSION_MS = 12 * 3_600_000
MAX_KEY_CHARACTERS = 200
_PREFIX = "agg"

audit = logging.getLogger("aggregator.index.recall_check")


class AccessKey(msgspec.Struct, frozen=True):
    """What is kept of a key. ``expires_ms``: None for never. ``sources``: of whose articles alone; () for all."""

    id: str
    name: str
    role: Role
    hash: bytes
    created_ms: int
    expires_ms: int | None = None
    sources: tuple[str, ...] = ()

    def lives(self, now_ms: int) -> bool:
        """Whether it may be used."""
        return self.expires_ms is None or now_ms < self.expires_ms

    def may(self, need: Need) -> bool:
        """Whether its role is enough for ``need``."""
        return need in GRANTS[self.role]


class Access:
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
        always: bool = False,
        never: bool = False,
    ) -> None:
        self._store, self._clock = store, clock
        self._shelf = Shelf(store, KEYS, AccessKey, "key", MAX_KEYS)
        self._own = _bootstrap_key(bootstrap) if bootstrap else None
        self._always = always or bool(bootstrap)
        self._never = never
        self._known: dict[str, AccessKey] = {}
        self._read_ms: int | None = None
        self._looking: asyncio.Task[None] | None = None

    # -- asking

    async def required(self) -> bool:
        """Whether anybody is asked for a key."""
        return not self._never and (self._always or bool(await self._keys()))

    async def lacks_keys(self) -> bool:
        """Whether keys are asked for, wherever we listen, and there is none: then nobody could come in."""
        return self._always and not self._never and self._own is None and not await self._keys()

    async def identify(self, presented: str) -> AccessKey | None:
        """Whose key this is; None when it is nobody's, revoked or expired."""
        id_ = _id_of(presented)
        if self._own is not None and hmac.compare_digest(self._own.hash, hashed(presented)):
            return self._own
        found = (await self._keys()).get(id_)
        same = hmac.compare_digest(found.hash if found else bytes(32), hashed(presented))
        return found if found is not None and same and found.lives(self._clock()) else None

    async def holds(self, key: AccessKey) -> bool:
        """Whether a key that was identified is still one: neither revoked nor expired since."""
        found = (
            self._own
            if self._own is not None and key.id == self._own.id
            else (await self._keys()).get(key.id)
        )
        return found is not None and found.lives(self._clock())

    async def _keys(self) -> dict[str, AccessKey]:
        if self._read_ms is None:
            await self._look()
        elif not 0 <= self._clock() - self._read_ms < REFRESH_MS:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            # Whoever was known stays so: while the store is away nobody can revoke anything.
            await asyncio.wait({self._looking}, timeout=PATIENCE_S)
            if self._looking.done():
                self._looking.result()
        return self._known

    async def _look(self) -> None:
        now_ms = self._clock()
        try:
            self._known = await self._shelf.all()
        except StoreUnavailable:
            if self._read_ms is None:
                raise
        self._read_ms = now_ms
        self._always = self._always or bool(self._known)

    # -- sessions of browsers

    async def begin_session(self, key: AccessKey) -> str:
        """A new session of ``key``: what its browser keeps."""
        token = secrets.token_urlsafe(32)
        await self._store.put([Put(_session(token), key.id.encode(), SESSION_MS)])
        return token

    async def of_session(self, token: str) -> AccessKey | None:
        """Whose session this is; None when it ended, or its key did."""
        id_ = (await self._store.read([_session(token)]))[0]
        if not id_:
            return None
        if self._own is not None and id_.decode() == self._own.id:
            return self._own
        found = (await self._keys()).get(id_.decode())
        return found if found is not None and found.lives(self._clock()) else None

    async def end_session(self, token: str) -> None:
        """Sign out. Harmless when it had ended."""
        await self._store.put([Put(_session(token), b"", 1)])

    # -- changing

    async def list(self) -> list[AccessKey]:
        """All keys of the store, oldest first."""
        return await self._shelf.values()

    async def add(
        self, name: str, role: Role, *, expires_ms: int | None = None, sources: tuple[str, ...] = ()
    ) -> tuple[AccessKey, str]:
        """A new key and, this once, its text. Raises BadInput, Conflict above 1000 keys."""
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise BadInput("name: a key needs a printable name of 1 to 100 characters.", field="name")
        key, text = _made(name.strip(), role, self._clock(), expires_ms, sources)
        await self._shelf.add(key.id, key)
        self._read_ms = None
        audit.info("key added id=%s name=%r role=%s", key.id, key.name, key.role)
        return key, text

    async def revoke(self, id_: str) -> None:
        """Take a key away. Raises NotFound."""
        await self._shelf.remove(id_)
        self._read_ms = None
        audit.info("key revoked id=%s", id_)

    async def rotate(self, id_: str, overlap_ms: int) -> tuple[AccessKey, str]:
        """Another key of the same name and role; the old one lives on for ``overlap_ms``. Raises NotFound."""
        now_ms = self._clock()
        made: list[tuple[AccessKey, str]] = []

        def change(known: dict[str, AccessKey]) -> None:
            old = known.get(id_)
            if old is None:
                raise NotFound(f"There is no key {id_[:200]!r}.")
            made[:] = [_made(old.name, old.role, now_ms, None, old.sources)]
            ends_ms = min(now_ms + overlap_ms, old.expires_ms or now_ms + overlap_ms)
            known[id_] = msgspec.structs.replace(old, expires_ms=ends_ms)
            known[made[0][0].id] = made[0][0]

        await self._shelf.change(change)
        self._read_ms = None
        audit.info("key rotated id=%s to=%s name=%r", id_, made[0][0].id, made[0][0].name)
        return made[0]


def hashed(presented: str) -> bytes:
    """(32,) bytes: what is kept of a secret."""
    return hashlib.sha256(presented[:MAX_KEY_CHARACTERS].encode("utf-8", "replace")).digest()


def _made(
    name: str, role: Role, now_ms: int, expires_ms: int | None, sources: tuple[str, ...]
) -> tuple[AccessKey, str]:
    id_ = secrets.token_hex(4)
    text = f"{_PREFIX}_{id_}_{secrets.token_urlsafe(32)}"
    return AccessKey(id_, name, role, hashed(text), now_ms, expires_ms, sources), text


def _bootstrap_key(text: str) -> AccessKey:
    # Its id follows from it, so that sessions end with the key that began them.
    digest = hashed(text)
    return AccessKey("b" + hashlib.sha256(digest).hexdigest()[:8], "bootstrap", "admin", digest, 0)


def _id_of(presented: str) -> str:
    parts = presented.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == _PREFIX else ""


def _session(token: str) -> bytes:
    return SESSIONS + hashed(token).hex().encode()
