"""Failed requests leak no memory.

Reference cycles between errors and frames would keep bodies and lookups alive until a garbage collection.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.app import open_service
from aggregator.domain import Analysis, Article
from aggregator.index import Snapshot
from aggregator.ingest.commit import PendingArticle
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from tests.support.factories import story
from tests.support.fake_service import serving
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

TRACKED_TYPES = (Article, Analysis, PendingArticle, Snapshot)


def live_objects() -> Counter[str]:
    """Number of live objects per type."""
    return Counter(type(item).__name__ for item in gc.get_objects() if isinstance(item, TRACKED_TYPES))


async def leaked_since(before: Counter[str]) -> Counter[str]:
    """Additional live objects, once handlers have finished."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HANG_LIMIT_S):
            while live_objects() - before:  # noqa: ASYNC110  garbage has no event
                await asyncio.sleep(0.01)
    return live_objects() - before


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """Free objects by reference count only. Logging is off: pytest would keep the logged errors."""
    logging.disable(logging.WARNING)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


async def test_articles_of_failed_requests_are_freed(tmp_path: Path, no_garbage_collection: None) -> None:
    """40 concurrent single requests, and a batch, while the store is down."""
    with EmbeddedServer(tmp_path) as server:
        async with open_service(Settings(store_url=server.url)) as service, serving(service) as client:

            async def post(number: int) -> int:
                async with client.post("/v1/articles", json={"text": story(number, 9)}) as answer:
                    return answer.status

            async def batch() -> list[str]:
                lines = b"".join(json.dumps({"text": story(n, 9)}).encode() + b"\n" for n in range(40))
                async with client.post("/v1/articles/batch", data=lines) as answer:
                    return [json.loads(line)["error"]["code"] for line in (await answer.text()).splitlines()]

            assert await post(0) == 201
            before = live_objects()
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            singles = await asyncio.gather(*(post(number) for number in range(1, 41)))
            after_singles = await leaked_since(before)
            lines = await batch()
            after_batch = await leaked_since(before)

    assert (set(singles), set(lines)) == ({503}, {"store_unavailable"})
    assert (after_singles, after_batch) == (Counter(), Counter())
