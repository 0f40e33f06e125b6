"""What fails leaves nothing behind: errors that hold their frames in circles would keep bodies and look-ups of a bad hour."""

from __future__ import annotations

import asyncio
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
from aggregator.ingest.pending import PendingArticle
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from tests.support.factories import story
from tests.support.fake_service import serving

HELD = (Article, Analysis, PendingArticle, Snapshot)


def held() -> Counter[str]:
    """How many of what an article becomes on its way are alive."""
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, HELD))


async def left_beyond(before: Counter[str]) -> Counter[str]:
    """What there is more, once handlers that have answered have ended too."""
    for _ in range(200):
        if not held() - before:
            break
        await asyncio.sleep(0.01)
    return held() - before


@pytest.fixture
def by_count_alone() -> Iterator[None]:
    """Nothing is freed but what nobody refers to; pytest would keep what is logged, and the errors named there."""
    logging.disable(logging.WARNING)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


async def test_articles_that_the_store_failed_are_let_go(tmp_path: Path, by_count_alone: None) -> None:
    """Forty single ones at once, and a batch: of neither is anything left once it is answered."""
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
            before = held()
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            singles = await asyncio.gather(*(post(number) for number in range(1, 41)))
            after_singles = await left_beyond(before)
            lines = await batch()
            after_batch = await left_beyond(before)

    assert (set(singles), set(lines)) == ({503}, {"store_unavailable"})
    assert (after_singles, after_batch) == (Counter(), Counter())
