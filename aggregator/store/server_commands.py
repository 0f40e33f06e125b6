"""Commands to a server on this machine that concern its databases as a whole. They block."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from redis import Redis

from aggregator.errors import StoreUnavailable

_POLL_INTERVAL_S = 0.02
_TIMEOUT_S = 600.0  # of one reply: deleting the keys of a large database takes longer than redis-py's 5 s


@dataclass(frozen=True, slots=True)
class KeyCount:
    """Number of keys of a database, and of those with a time to live."""

    keys: int
    expiring: int


def _connect(url: str, **options: Any) -> Redis:
    return Redis.from_url(url, socket_timeout=_TIMEOUT_S, **options)


def count_keys(url: str) -> KeyCount:
    """Number of keys at ``url``."""
    with _connect(url) as client:
        found = client.info("keyspace").get(f"db{client.get_connection_kwargs().get('db', 0)}", {})
    return KeyCount(int(found.get("keys", 0)), int(found.get("expires", 0)))


def select_database(url: str, database: int) -> None:
    """Make ``database`` the database 0 of a server, and delete the keys of all others."""
    with _connect(url) as client:
        if database:
            client.swapdb(0, database)
        for name in client.info("keyspace"):
            if name != "db0":
                with _connect(url, db=int(name.removeprefix("db"))) as other:
                    other.flushdb()


def rewrite_log(url: str) -> None:
    """Rewrite the append-only log of a server in its own format. Raises StoreUnavailable."""
    with _connect(url) as client:
        client.bgrewriteaof()
        while True:
            state = client.info("persistence")
            if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
                break
            time.sleep(_POLL_INTERVAL_S)
        if state["aof_last_bgrewrite_status"] != "ok":
            raise StoreUnavailable("The embedded store cannot rewrite its log; see server.log.")
