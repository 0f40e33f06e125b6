"""A leader that is stopped past its lease and goes on: no event is lost and none is told twice."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import aiohttp
import pytest
import redis.asyncio as redis

from aggregator.background.scheduler import DETECTOR_LEASE_KEY
from aggregator.events.repository import POSITION_KEY, ChangeRecord, EventRepository
from aggregator.store.redis import open_redis_store
from tests.support.factories import story
from tests.support.processes import scheduler_of
from tests.support.server_fixture import serving

ROUNDS, REPORTS = 5, 20
PATIENCE_S = 30


class Newsroom:
    """Two servers on one store; who leads stands in the lease: a process of one of them, by its id."""

    def __init__(self, session: aiohttp.ClientSession, store: redis.Redis, urls: dict[int, str]) -> None:
        self.session, self.store, self.urls = session, store, urls

    async def leader(self, other_than: int = 0) -> int:
        """The process that holds the lease, as soon as it is one of ours and not ``other_than``."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                token = await self.store.get(DETECTOR_LEASE_KEY)
                pid = int(token.partition(b":")[0]) if token else 0
                if self.server_of(pid) is not None and pid != other_than:
                    return pid
                await asyncio.sleep(0.01)

    def server_of(self, pid: int) -> str | None:
        """The URL of the server that has this process for the scheduled work."""
        return next((url for server, url in self.urls.items() if scheduler_of(server) == pid), None)

    async def post(self, url: str, round_: int, numbers: range) -> None:
        """Reports on one matter of this round: the same headline words, each with a text of its own."""
        subject = " ".join(story(1000 + round_, 1).split()[:4])
        for n in numbers:
            text = f"{subject} {subject}. {story(100 * round_ + n, 3)}"
            body = {"id": f"{round_}-{n}", "title": f"{subject} {n}", "text": text, "lang": "eo"}
            async with self.session.post(f"{url}/v1/articles", json=body) as answer:
                assert answer.status == 201, await answer.text()

    async def events(self, url: str) -> list[dict[str, object]]:
        """All events that this server shows."""
        async with self.session.get(f"{url}/v1/events?limit=100") as answer:
            return list((await answer.json())["events"])

    async def until(self, url: str, events: int, articles: int) -> list[dict[str, object]]:
        """The events, as soon as there are so many with at least so many articles in all."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.events(url)
                if len(found) >= events and sum(int(str(e["size"])) for e in found) >= articles:
                    return found
                await asyncio.sleep(0.05)


@pytest.mark.services
@pytest.mark.timeout(300)
async def test_a_leader_that_sleeps_past_its_lease_loses_and_doubles_nothing(valkey_url: str) -> None:
    """Five stories; in the midst of each the leader is stopped, the other takes over, and the first wakes up."""
    async with AsyncExitStack() as stack:
        pids: dict[int, str] = {}
        for _ in range(2):
            url = await stack.enter_async_context(serving(store_url=valkey_url, pids=pids))
            assert url in pids.values()
        session = await stack.enter_async_context(aiohttp.ClientSession())
        store = await stack.enter_async_context(redis.Redis.from_url(valkey_url))
        room = Newsroom(session, store, pids)
        for round_ in range(ROUNDS):
            await one_round(room, round_)

        shown = await room.until(next(iter(pids.values())), ROUNDS, ROUNDS * REPORTS)
        told = [record for _, record in await told_by(valkey_url)]
        fired = Counter(record.event_id for record in told if record.kind == "fired")
        assert fired == Counter(event["id"] for event in shown)
        assert [event["size"] for event in shown] == [REPORTS] * ROUNDS
        assert await store.get(POSITION_KEY) is not None


async def one_round(room: Newsroom, round_: int) -> None:
    """Half of a story, a leader that falls asleep at any point of its work, the other half, and it wakes."""
    asleep = await room.leader()
    own = room.server_of(asleep)
    assert own is not None
    other = next(url for url in room.urls.values() if url != own)
    posting = asyncio.create_task(room.post(other, round_, range(REPORTS // 2)))
    await asyncio.sleep(random.Random(round_).uniform(0.0, 0.3))
    os.kill(asleep, signal.SIGSTOP)
    try:
        await posting
        await room.leader(other_than=asleep)
        await room.post(other, round_, range(REPORTS // 2, REPORTS - 2))
        await room.until(other, round_ + 1, 0)
    finally:
        with suppress(ProcessLookupError):
            os.kill(asleep, signal.SIGCONT)
    await room.post(own, round_, range(REPORTS - 2, REPORTS))


async def told_by(url: str) -> Sequence[tuple[bytes, ChangeRecord]]:
    """The whole stream of changes."""
    store = open_redis_store(url)
    try:
        return await EventRepository(store).changes(count=10_000)
    finally:
        await store.close()
