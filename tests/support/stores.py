"""Stores of tests, whose replies may take as long as on the busiest machine."""

from __future__ import annotations

from typing import Any

from aggregator.store.redis import RedisStore, open_redis_store
from tests.support.hang_limit import HANG_LIMIT_S

_LIMITS = {"socket_timeout_s": HANG_LIMIT_S, "connect_timeout_s": HANG_LIMIT_S}


def open_patient_store(url: str, **options: Any) -> RedisStore:
    """``open_redis_store`` with HANG_LIMIT_S instead of seconds, unless ``options`` say otherwise."""
    return open_redis_store(url, **(_LIMITS | options))
