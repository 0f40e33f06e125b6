"""Which store this is: an identity and a count of articles, which processes remember.

A store that was emptied, exchanged, set back or that lost its API keys answers like any other, and every
article is new to it. So each process remembers what it saw, compares it at every look-up, and reports an
incident (``StoreMemory.incident``) until an operator accepts the store. A first start is not an incident, nor
is a store whose identity ``follows`` the one remembered, as ``aggregator restore`` and ``doctor
--accept-store`` write. Retention and deletion do not lower the count.

    {format}identity   ``Identity``; absent until a service has started on the store
    {format}taken      number of articles ever taken; each process adds its own once a second
    {format}missed     identities that running processes miss here; those that start read it

A process that starts remembers by ``MEMORY_NAME`` in its data directory (docs/durability.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.store.base import Delete, Put, Store, Transaction, ValueEquals
from aggregator.store.disk import TEMPORARY_PREFIX
from aggregator.store.periodic_task import repeat
from aggregator.store.server_process import SOCKET_NAME

if TYPE_CHECKING:
    from aggregator.store.redis import RedisStore

IDENTITY_KEY, TAKEN_KEY, MISSED_KEY = b"{format}identity", b"{format}taken", b"{format}missed"
WATCHED_KEYS: Final = (IDENTITY_KEY, TAKEN_KEY, MISSED_KEY)
MEMORY_NAME: Final = "store-memory.json"
OBSERVE_INTERVAL_S, PROBE_INTERVAL_S, SAVE_INTERVAL_S = 1.0, 0.5, 5.0
MAX_FOLLOWED = 32
_REMEDY = "restore a backup, or accept the store as it is with `aggregator doctor --accept-store`."

log = logging.getLogger("aggregator.store")


class Identity(msgspec.Struct, frozen=True, array_like=True):
    """A random id, and those of earlier stores that it replaces."""

    id: str
    follows: tuple[str, ...] = ()


class Remembered(msgspec.Struct, frozen=True):
    """What a process knows of its store."""

    id: str
    taken: int
    has_keys: bool


class Incident(msgspec.Struct, frozen=True):
    """Why the store is not the one remembered, one sentence; ``is_foreign``: it is another installation's."""

    sentence: str
    is_foreign: bool = False


class Seen(msgspec.Struct, frozen=True):
    """What a store says of itself."""

    identity: Identity | None
    taken: int
    missed: tuple[str, ...]
    has_keys: bool


def decode(values: Sequence[bytes | None]) -> Seen:
    """From the values of WATCHED_KEYS and of the API keys. Raises StoreUnavailable if they are damaged."""
    identity, taken, missed, *keys = values
    try:
        return Seen(
            msgspec.msgpack.decode(identity, type=Identity) if identity else None,
            int(taken or 0),
            msgspec.msgpack.decode(missed, type=tuple[str, ...]) if missed else (),
            any(keys),
        )
    except ValueError as error:  # of msgspec, too
        raise StoreUnavailable(f"The identity of the store is damaged ({error}); {_REMEDY}") from error


def find_incident(known: Remembered | None, seen: Seen) -> Incident | None:
    """Judge a store by what a process remembers; None: nothing. Pure."""
    what = "is not the one that running processes know" if seen.missed else ""
    if known is not None and seen.identity is None:
        what = f"was emptied or exchanged for an empty one (it had taken at least {known.taken:,} articles)"
    elif known is not None and seen.identity is not None and seen.identity.id != known.id:
        if known.id in seen.identity.follows:
            return None
        return Incident(
            f"The store is that of another installation ({seen.identity.id}, expected {known.id}): articles "
            "are answered unchecked and not stored; correct store_url, or accept that store with "
            "`aggregator doctor --accept-store`.",
            is_foreign=True,
        )
    elif known is not None and seen.taken < known.taken:
        what = f"was set back: it has taken {seen.taken:,} articles, and had {known.taken:,}"
    elif known is not None and known.has_keys and not seen.has_keys:
        what = "has lost its API keys; those that a process has read stay valid there"
    sentence = f"The store {what}: articles are stored and answered unchecked; {_REMEDY}"
    return Incident(sentence) if what else None


class StoreMemory:
    """What one process remembers of its store; without ``begin`` nothing, and nothing is read.

    ``keys``: what each look-up reads and passes to ``is_outdated``. ``started``: the incident was there at
    the start, so the process is not ready; a running one goes on, since without it articles get no answer.
    """

    def __init__(self) -> None:
        self.keys: tuple[bytes, ...] = ()
        self.incident: Incident | None = None
        self.identity = "memory"  # of the store that is read; "": it has none yet
        self.started = False
        self.pending = 0  # articles taken that are not counted yet
        self._store: RedisStore | None = None
        self._known: Remembered | None = None
        self._raw_identity: bytes | None = None
        self._saved: tuple[float, Remembered | None] = (0.0, None)
        self._lock = asyncio.Lock()

    async def begin(
        self, store: RedisStore, path: Path, url: str, keys_key: bytes, format_entry: Put, *, serving: bool
    ) -> None:
        """Compare ``store`` with the memory in ``path``, before its first use. Raises StoreUnavailable.

        ``keys_key``: that of the API keys. ``format_entry``: what a store that was emptied gets again.
        ``serving``: give a new store an identity, and save what is remembered.
        """
        self._path, self._name, self._serving = path, memory_name(url, path.parent), serving
        self._keys_key, self._format_entry = keys_key, format_entry
        if self._name == "embedded":
            store.kind = self._name
        self._known = read_memory(path).get(self._name)
        self._store, self.keys = store, WATCHED_KEYS
        await self.observe()
        self.started = self.incident is not None

    @property
    def had_keys(self) -> bool:
        """Whether the store that is remembered has API keys."""
        return self._known is not None and self._known.has_keys

    async def is_outdated(self, values: Mapping[bytes, bytes | None]) -> bool:
        """Whether a look-up that read ``values`` must be repeated: its connection led to another store."""
        if not self.keys or self.incident is not None:
            return False
        is_same = values[IDENTITY_KEY] == self._raw_identity and not values[MISSED_KEY]
        if is_same and int(values[TAKEN_KEY] or 0) >= (self._known.taken if self._known else 0):
            return False
        await self.observe()
        return self.incident is None or self.incident.is_foreign

    async def check(self) -> str | None:
        """For readiness: the incident that was there at the start. Raises StoreUnavailable."""
        await self.observe()
        return self.incident.sentence if self.incident and self.started else None

    async def observe(self) -> None:
        """Compare what is remembered with the store, and add to its count. Raises StoreUnavailable."""
        if self._store is None:
            return
        async with self._lock:
            values = await self._store.read([*WATCHED_KEYS, self._keys_key])
            if find_incident(self._known, decode(values)) and self.incident is None:
                await self._store.reconnect()  # the old server, which others have left, may answer
                values = await self._store.read([*WATCHED_KEYS, self._keys_key])
            seen = decode(values)
            self.identity = (seen.identity or self._known or Identity("")).id
            if self._known and seen.taken < self._known.taken and self._store.is_promoted:
                log.error("a failover lost the last %d articles", self._known.taken - seen.taken)
                self._known = msgspec.structs.replace(self._known, taken=seen.taken)
            found = find_incident(self._known, seen)
            if found and (self.incident is None or found.is_foreign != self.incident.is_foreign):
                log.error("%s", found.sentence)
            elif self.incident and not found:
                log.warning("the store is the one remembered again, or was accepted")
            self.incident, self._store.refusal = found, found.sentence if found and found.is_foreign else ""
            if found is None:
                await self._remember(self._store, values, seen)
            elif self._known and not found.is_foreign and self._known.id not in seen.missed:
                missed = Put(MISSED_KEY, msgspec.msgpack.encode((*seen.missed, self._known.id)))
                writes = (missed,) if seen.identity else (missed, self._format_entry)
                await self._store.commit(Transaction((ValueEquals(MISSED_KEY, values[2]),), writes))

    async def run(self) -> None:
        """``observe``, and leave a server that has moved, until cancelled; then save."""
        assert self._store is not None
        leaving = repeat(PROBE_INTERVAL_S, self._store.leave_moved_server)  # also while the server hangs
        try:
            await asyncio.gather(repeat(OBSERVE_INTERVAL_S, self.observe), leaving)
        finally:
            with contextlib.suppress(AggregatorError):
                await self.observe()
                if self.incident is None:
                    self._save()
                    self._save()

    async def _remember(self, store: Store, values: Sequence[bytes | None], seen: Seen) -> None:
        self.started, taken = False, seen.taken
        if added := self.pending:
            put = Put(TAKEN_KEY, b"%d" % (taken + added))
            if not await store.commit(Transaction((ValueEquals(TAKEN_KEY, values[1]),), (put,))):
                self.pending -= added
                taken += added
        self._raw_identity = values[0]
        if seen.identity:
            self._known = Remembered(seen.identity.id, taken, seen.has_keys)
            if time.monotonic() >= self._saved[0] + SAVE_INTERVAL_S:
                self._save()
        elif self._serving:
            with contextlib.suppress(StoreUnavailable):  # a read-only store gets it later
                await store.commit(Transaction((ValueEquals(IDENTITY_KEY, None),), (_new_identity(),)))

    def _save(self) -> None:
        """Save what was known at the last call: a power loss may take the newest articles from the store."""
        known, self._saved = self._saved[1], (time.monotonic(), self._known)
        if not self._serving or known is None or read_memory(self._path).get(self._name) == known:
            return
        draft = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(msgspec.json.encode(read_memory(self._path) | {self._name: known}))
            draft.replace(self._path)
        except OSError as error:
            self._serving = False  # one warning is enough
            log.warning(
                "%s cannot be written (%s): the next start will not know this store", self._path, error
            )


def memory_name(url: str, data_dir: Path) -> str:
    """The name of the store at ``url`` in the memory: a hash of its address, without user and password.

    The embedded store of ``data_dir`` has one name, though its socket moves where the path is too long.
    """
    socket = Path(unquote(url.removeprefix("unix://")))
    is_embedded = socket in (data_dir.absolute() / SOCKET_NAME, Path()) or (
        socket.name == SOCKET_NAME and socket.parent.name.startswith(TEMPORARY_PREFIX)
    )
    address = url.partition("://")[2].rpartition("@")[2].encode()
    return "embedded" if is_embedded else hashlib.sha256(address).hexdigest()[:16]


def read_memory(path: Path) -> dict[str, Remembered]:
    """The stores that processes with this data directory remember; {} without a readable file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Remembered])
    except (OSError, msgspec.MsgspecError):
        return {}


def remembered_ids(data_dir: Path) -> list[str]:
    """The identities that processes with this data directory remember."""
    return [known.id for known in read_memory(data_dir / MEMORY_NAME).values()]


async def identities_of(store: Store) -> list[str]:
    """The identity of a store, those that it replaces, and those missed there. Raises StoreUnavailable."""
    seen = decode(await store.read(WATCHED_KEYS))
    return [*seen.missed, *((seen.identity.id, *seen.identity.follows) if seen.identity else ())]


async def accept(store: Store, known: Sequence[str]) -> None:
    """Give the store an identity that follows those of ``known`` and its own, if there are any."""
    if follows := tuple(dict.fromkeys([*known, *await identities_of(store)]))[:MAX_FOLLOWED]:
        await store.commit(Transaction((), (_new_identity(follows), Delete(MISSED_KEY))))


def _new_identity(follows: tuple[str, ...] = ()) -> Put:
    return Put(IDENTITY_KEY, msgspec.msgpack.encode(Identity(secrets.token_hex(8), follows)))
