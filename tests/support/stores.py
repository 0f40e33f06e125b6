"""Stores of tests, whose replies may take as long as on the busiest machine."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio

from aggregator.store.redis import RedisStore, open_redis_store
from tests.support.hang_limit import HANG_LIMIT_S

_LIMITS = {"socket_timeout_s": HANG_LIMIT_S, "connect_timeout_s": HANG_LIMIT_S}


def open_patient_store(url: str, **options: Any) -> RedisStore:
    """``open_redis_store`` with HANG_LIMIT_S instead of seconds, unless ``options`` say otherwise."""
    return open_redis_store(url, **(_LIMITS | options))


def direct_client(url: str, **options: Any) -> redis.Redis:
    """A blocking client of redis-py with HANG_LIMIT_S per reply instead of its 5 s."""
    return redis.Redis.from_url(url, socket_timeout=HANG_LIMIT_S, **options)


def direct_async_client(url: str, **options: Any) -> redis.asyncio.Redis:
    """Like ``direct_client``, for an event loop."""
    return redis.asyncio.Redis.from_url(url, socket_timeout=HANG_LIMIT_S, **options)
