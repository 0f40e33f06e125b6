"""A server whose snapshots take long, for tests that interrupt one."""

from __future__ import annotations

import time

import redis

from tests.support.hang_limit import HANG_LIMIT_S

KEYS = 2000
_DELAY_US = 20_000  # per key: 40 s in all


def slow_down_snapshots(client: redis.Redis) -> None:
    """Store keys, and make each of them delay a snapshot."""
    client.mset({f"{{slow}}{number}": "x" * 2000 for number in range(KEYS)})
    client.config_set("rdb-key-save-delay", _DELAY_US)


def wait_for_snapshot(client: redis.Redis, *, running: bool) -> None:
    """Wait until a snapshot is being written, or until none is."""
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while bool(client.info("persistence")["rdb_bgsave_in_progress"]) != running:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
