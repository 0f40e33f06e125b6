"""Sessions of browsers: random tokens, whose hash is stored until the session expires.

session:<SHA-256 of the token>    id of the API key
"""

from __future__ import annotations

import hashlib
import secrets

from aggregator.store.base import Put, Store
from aggregator.time_units import HOUR_MS

SESSION_TTL_MS = 12 * HOUR_MS
MAX_SECRET_CHARS = 200


class Sessions:
    """The sessions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def start(self, key_id: str) -> str:
        """Start a session of a key; returns the token for the browser."""
        token = secrets.token_urlsafe(32)
        await self._store.put([Put(_store_key(token), key_id.encode(), SESSION_TTL_MS)])
        return token

    async def key_id(self, token: str) -> str:
        """Id of the key of a session; "" if it has ended."""
        return ((await self._store.read([_store_key(token)]))[0] or b"").decode()

    async def end(self, token: str) -> None:
        """End a session. Idempotent; an unknown token, which anybody can send, writes nothing."""
        key = _store_key(token)
        if (await self._store.read([key]))[0]:
            await self._store.put([Put(key, b"", 1)])


def hash_secret(secret: str) -> bytes:
    """SHA-256 of a secret, 32 bytes."""
    return hashlib.sha256(secret[:MAX_SECRET_CHARS].encode("utf-8", "replace")).digest()


def _store_key(token: str) -> bytes:
    return b"session:" + hash_secret(token).hex().encode()
