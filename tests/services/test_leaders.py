"""A detector that is suspended until its lease expires: no event is lost and none is reported twice."""

from __future__ import annotations

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

from aggregator.background.tasks import DETECTOR_LEASE_KEY
from aggregator.events.repository import POSITION_KEY, ChangeRecord, EventRepository
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import background_process_of
from tests.support.server_fixture import serving
from tests.support.stores import direct_async_client, open_patient_store

ROUNDS, REPORTS = 3, 20


class Newsroom:
    """Two services on one store; the lease contains the process id of the active detector."""

    def __init__(self, session: aiohttp.ClientSession, store: redis.Redis, urls: dict[int, str]) -> None:
        self.session, self.store, self.urls = session, store, urls

    async def leader(self, other_than: int = 0) -> int:
        """Wait until a background process other than ``other_than`` holds the lease; its id."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while True:
                token = await self.store.get(DETECTOR_LEASE_KEY)
                pid = int(token.partition(b":")[0]) if isinstance(token, bytes) else 0
                if self.server_of(pid) is not None and pid != other_than:
                    return pid
                await asyncio.sleep(0.01)

    def server_of(self, pid: int) -> str | None:
        """The URL of the service with this background process."""
        return next((url for server, url in self.urls.items() if background_process_of(server) == pid), None)

    async def post(self, url: str, round_: int, numbers: range) -> None:
        """Post articles on the story of this round: the same headline words, different texts."""
        subject = " ".join(story(1000 + round_, 1).split()[:4])
        for n in numbers:
            text = f"{subject} {subject}. {story(100 * round_ + n, 3)}"
            body = {"id": f"{round_}-{n}", "title": f"{subject} {n}", "text": text, "lang": "eo"}
            body["source"] = f"Outlet {n}"  # on the first day, reports without one need more in common
            async with self.session.post(f"{url}/v1/articles", json=body) as response:
                assert response.status == 201, await response.text()

    async def events(self, url: str) -> list[dict[str, object]]:
        """All events that this service lists."""
        async with self.session.get(f"{url}/v1/events?limit=100") as response:
            return list((await response.json())["events"])

    async def until(self, url: str, events: int, articles: int) -> list[dict[str, object]]:
        """Wait for this many events with at least this many items in all; the events."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while True:
                found = await self.events(url)
                if len(found) >= events and sum(int(str(e["size"])) for e in found) >= articles:
                    return found
                await asyncio.sleep(0.05)


@pytest.mark.services
async def test_a_suspended_detector_loses_and_repeats_no_event(valkey_url: str) -> None:
    """Five stories; during each the active detector is suspended, the other takes over, the first resumes."""
    async with AsyncExitStack() as stack:
        pids: dict[int, str] = {}
        for _ in range(2):
            url = await stack.enter_async_context(serving(store_url=valkey_url, pids=pids))
            assert url in pids.values()
        session = await stack.enter_async_context(aiohttp.ClientSession())
        store = await stack.enter_async_context(direct_async_client(valkey_url))
        room = Newsroom(session, store, pids)
        for round_ in range(ROUNDS):
            await one_round(room, round_)

        listed = await room.until(next(iter(pids.values())), ROUNDS, ROUNDS * REPORTS)
        changes = [record for _, record in await change_records(valkey_url)]
        fired = Counter(record.event_id for record in changes if record.kind == "fired")
        assert fired == Counter(event["id"] for event in listed)
        assert [event["size"] for event in listed] == [REPORTS] * ROUNDS
        assert await store.get(POSITION_KEY) is not None


async def one_round(room: Newsroom, round_: int) -> None:
    """Half of a story, SIGSTOP of the active detector at a random time, the other half, SIGCONT."""
    suspended = await room.leader()
    own = room.server_of(suspended)
    assert own is not None
    other = next(url for url in room.urls.values() if url != own)
    posting = asyncio.create_task(room.post(other, round_, range(REPORTS // 2)))
    await asyncio.sleep(random.Random(round_).uniform(0.0, 0.3))
    os.kill(suspended, signal.SIGSTOP)
    try:
        await posting
        await room.leader(other_than=suspended)
        await room.post(other, round_, range(REPORTS // 2, REPORTS - 2))
        await room.until(other, round_ + 1, 0)
    finally:
        with suppress(ProcessLookupError):
            os.kill(suspended, signal.SIGCONT)
    await room.post(own, round_, range(REPORTS - 2, REPORTS))


async def change_records(url: str) -> Sequence[tuple[bytes, ChangeRecord]]:
    """The whole change stream."""
    store = open_patient_store(url)
    try:
        return await EventRepository(store).changes(count=10_000)
    finally:
        await store.close()
