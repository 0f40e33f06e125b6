"""Take-downs: articles removed for good, whose text is refused when it is posted again.

{takedowns}key       32 random bytes, the key of all hashes; present once something was taken down
{takedowns}t<hash>   a text: keyed hash of its ``text_hash``, or of ``text_of_id``: refused under that id only
{takedowns}i<hash>   an id: its keyed hash; the value lists the keys of its texts

Neither text, title nor id is stored, and all but the key expires with the retention. Lookups read the texts
with their buckets, and none before the first take-down.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import blake2b

from aggregator.domain import Problem
from aggregator.errors import NotFound
from aggregator.index import keys
from aggregator.index.bindings import Binding
from aggregator.index.snapshot import Snapshot
from aggregator.store.base import Put, Store, Transaction

SECRET, TEXT, ID = b"{takedowns}key", b"{takedowns}t", b"{takedowns}i"


def text_of_id(text_hash: bytes, id_: str) -> bytes:
    """The hash of a text under one id."""
    return text_hash + keys.id_hash(id_)


def refused_text(stored: Binding) -> bytes:
    """What to refuse once it is taken down: the text, or if that is not the article the text of this id."""
    is_notice = Problem.not_article in stored.outcome.problems
    return text_of_id(stored.text_hash, stored.id) if is_notice else stored.text_hash


class Takedowns:
    """What was taken down in a store, for ``ttl_ms`` (None: for ever). Methods raise StoreUnavailable."""

    def __init__(self, store: Store, ttl_ms: int | None) -> None:
        self._store, self._ttl_ms = store, ttl_ms
        self._secret: bytes | None = None

    def keys_to_read(self, text_hashes: Sequence[bytes]) -> list[bytes]:
        """What a lookup of these texts reads."""
        return [SECRET, *self._text_keys(text_hashes)]

    async def find(self, snapshot: Snapshot, text_hashes: Sequence[bytes]) -> list[bool]:
        """Whether each text was taken down, by a snapshot with its ``keys_to_read``.

        Reads again if the key has changed: once per process, after the first take-down.
        """
        if snapshot.values[SECRET] != self._secret:
            self._secret = snapshot.values[SECRET]
            read = self._text_keys(text_hashes)
            snapshot.values.update(zip(read, await self._store.read(read), strict=True))
        found = [snapshot.values[key] is not None for key in self._text_keys(text_hashes)]
        return found or [False] * len(text_hashes)

    async def add(self, id_: str, text_hashes: Sequence[bytes]) -> None:
        """Take down texts of an id. Idempotent."""
        await self._store.put([Put(SECRET, secrets.token_bytes(32))], only_if_absent=True)
        id_key, known = await self._read_id(id_)
        text_keys = list(dict.fromkeys([*known, *self._text_keys(text_hashes)]))
        writes = [Put(key, b"1", self._ttl_ms) for key in text_keys]
        writes.append(Put(id_key, b" ".join(text_keys), self._ttl_ms))
        await self._store.commit(Transaction((), tuple(writes)))

    async def lift(self, id_: str) -> None:
        """Accept the texts of an id again. Raises NotFound if none was taken down."""
        id_key, text_keys = await self._read_id(id_)
        if not text_keys:
            raise NotFound(f"The article {id_[:200]!r} is not taken down.")
        await self._store.delete([*text_keys, id_key])

    async def _read_id(self, id_: str) -> tuple[bytes, list[bytes]]:
        self._secret = (await self._store.read([SECRET]))[0]
        id_key = self._hashed_key(ID, id_.encode("utf-8", "surrogatepass"))
        return id_key, ((await self._store.read([id_key]))[0] or b"").split()

    def _text_keys(self, text_hashes: Sequence[bytes]) -> list[bytes]:
        return [self._hashed_key(TEXT, hashed) for hashed in text_hashes] if self._secret else []

    def _hashed_key(self, prefix: bytes, value: bytes) -> bytes:
        return prefix + blake2b(value, digest_size=16, key=self._secret or b"").hexdigest().encode()
