"""Webhook dispatcher: from an event change to a signed call, on every kind of store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.errors import StoreUnavailable
from aggregator.events.repository import EventRepository
from aggregator.events.webhooks import dispatcher as dispatcher_module
from aggregator.events.webhooks.dispatcher import WebhookDispatcher
from aggregator.events.webhooks.outbox import DeliveryQueue
from aggregator.events.webhooks.subscriptions import Subscriptions
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import EVENT_MS, Clock, commit_event, event
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration


@dataclass
class Receiver:
    """A system that is called; it answers with the next of ``statuses``, else 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Record one call."""
        self.calls.append((request.headers["webhook-id"], await request.json()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    async def hang(self, request: web.Request) -> web.Response:
        """Answer once ``released``."""
        await self.released.wait()
        return await self.handle(request)

    @property
    def types(self) -> list[str]:
        """Types of the calls received."""
        return [body["type"] for _, body in self.calls]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on loopback."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/in", receiver.handle)
    app.router.add_post("/hangs", receiver.hang)
    async with TestServer(app) as server:
        receiver.url = str(server.make_url("/in"))
        yield receiver


async def test_an_unavailable_store_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """The dispatcher retries every second; the log has one line per outage, which ends with three runs."""

    class FailingStore(MemoryStore):
        failing = True

        async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
            if self.failing:
                raise StoreUnavailable("No connection.")
            return await super().read(keys)

    store = FailingStore()
    dispatcher = WebhookDispatcher(EventRepository(store), Subscriptions(store), Clock(EVENT_MS))
    for failing in (True, True, False, True, False, False, False, True):
        store.failing = failing
        await dispatcher.run_once()
    await dispatcher.close()

    message = "the webhook dispatcher failed and will be retried: No connection."
    assert [record.message for record in caplog.records] == [message] * 2


@dataclass
class Webhooks:
    """Repository, subscriptions and dispatcher over one store."""

    repository: EventRepository
    subscriptions: Subscriptions
    dispatcher: WebhookDispatcher
    clock: Clock


@pytest.fixture
async def webhooks(store: Store) -> AsyncIterator[Webhooks]:
    """A dispatcher after its first run."""
    repository, subscriptions, clock = EventRepository(store), Subscriptions(store), Clock(EVENT_MS)
    dispatcher = WebhookDispatcher(
        repository, subscriptions, clock, base_url="https://news.example", allow_private=True
    )
    await dispatcher.lead()
    yield Webhooks(repository, subscriptions, dispatcher, clock)
    await dispatcher.close()


@pytest.mark.parametrize("kinds", [(), ("development", "fired")])
async def test_all_but_updates_or_the_chosen_kinds_are_sent(
    webhooks: Webhooks, receiver: Receiver, kinds: tuple[str, ...]
) -> None:
    """A webhook chooses what it hears of: alerts, each development, events at twice the size, their end."""
    await webhooks.subscriptions.subscribe(receiver.url, (), "standard", EVENT_MS, kinds=kinds)
    for kind in ("fired", "updated", "development", "doubled", "updated", "merged", "closed"):
        await commit_event(webhooks.repository, kind, event("e/1", "Bridge closed", ("a",)), EVENT_MS)
    for _ in range(7):
        await webhooks.dispatcher.lead()

    sent = ["fired", "development", *(["doubled", "merged", "closed"] if not kinds else [])]
    assert receiver.types == [f"event.{kind}" for kind in sent]
    assert receiver.calls[0][1]["data"]["url"] == "https://news.example/events/e%2F1"
    assert len({id_ for id_, _ in receiver.calls}) == len(sent)
    assert (await webhooks.subscriptions.values())[0].delivered == len(sent)


async def test_the_saved_queries_of_a_webhook_filter_events(webhooks: Webhooks, receiver: Receiver) -> None:
    """An event must match all of them."""
    await webhooks.subscriptions.subscribe(receiver.url, ("term=bridge", "min_size=2"), "slack", EVENT_MS)
    await commit_event(webhooks.repository, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await commit_event(
        webhooks.repository, "fired", event("e2", "Bakery opens", ("a", "b"), terms=()), EVENT_MS
    )
    await commit_event(
        webhooks.repository, "fired", event("e3", "Bridge <opens> & more", ("a", "b")), EVENT_MS
    )
    await webhooks.dispatcher._enqueue_changes(await webhooks.subscriptions.all())
    _, outbox = await DeliveryQueue(webhooks.repository.store).outbox.read_with_raw()

    assert receiver.calls == []
    assert [json.loads(delivery.body)["text"] for delivery in outbox.calls] == [
        "New event: <https://news.example/events/e3|Bridge &lt;opens&gt; &amp; more> (2 items from 2 outlets)"
    ]


async def test_a_target_that_hangs_delays_no_other(
    webhooks: Webhooks, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others get later events too, and their results are saved; it is called once until it answers."""
    monkeypatch.setattr(dispatcher_module, "PATIENCE_S", 0.001)
    for url in (receiver.url, receiver.url.replace("/in", "/hangs")):
        await webhooks.subscriptions.subscribe(url, (), "standard", EVENT_MS)
    hanging = (await webhooks.subscriptions.values())[1]
    async with asyncio.timeout(HANG_LIMIT_S):
        for number in (1, 2, 3):
            await commit_event(
                webhooks.repository, "fired", event(f"e{number}", "Bridge closed", ("a",)), EVENT_MS
            )
            while await webhooks.dispatcher.queue.pending() != {hanging.id: number}:
                await asyncio.gather(webhooks.dispatcher.lead(), asyncio.sleep(0.001))
        assert [body["data"]["id"] for _, body in receiver.calls] == ["e1", "e2", "e3"]
        receiver.released.set()
        while await webhooks.dispatcher.queue.pending():
            await asyncio.gather(webhooks.dispatcher.lead(), asyncio.sleep(0.001))

    assert len({id_ for id_, _ in receiver.calls}) == len(receiver.calls) == 6
    assert [hook.delivered for hook in await webhooks.subscriptions.values()] == [3, 3]


async def test_a_result_is_saved_by_a_replica_that_leads_no_more(
    webhooks: Webhooks, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leads now would call again otherwise."""
    monkeypatch.setattr(dispatcher_module, "PATIENCE_S", 0.001)
    await webhooks.subscriptions.subscribe(receiver.url.replace("/in", "/hangs"), (), "standard", EVENT_MS)
    await commit_event(webhooks.repository, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await webhooks.dispatcher.lead()
    receiver.released.set()
    async with asyncio.timeout(HANG_LIMIT_S):
        while await webhooks.dispatcher.queue.pending():
            await asyncio.gather(webhooks.dispatcher.follow(), asyncio.sleep(0.001))

    assert len(receiver.calls) == 1


async def test_a_failed_delivery_is_retried_under_the_same_id(webhooks: Webhooks, receiver: Receiver) -> None:
    """After its delay, and not before; the receiver sees one id."""
    receiver.statuses = [500, 500]
    await webhooks.subscriptions.subscribe(receiver.url, (), "standard", EVENT_MS)
    await commit_event(webhooks.repository, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await webhooks.dispatcher.lead()
    await webhooks.dispatcher.lead()
    assert len(receiver.calls) == 1
    webhooks.clock.now_ms += 10_000
    await webhooks.dispatcher.lead()
    webhooks.clock.now_ms += 600_000
    await webhooks.dispatcher.lead()
    subscription = (await webhooks.subscriptions.values())[0]

    assert len(receiver.calls) == 3 and len({id_ for id_, _ in receiver.calls}) == 1
    assert (subscription.delivered, subscription.failed, subscription.last_result) == (1, 2, "delivered")
    assert await webhooks.dispatcher.queue.pending() == {}


async def test_a_crash_after_the_call_repeats_it_under_the_same_id(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    """The results were not saved; the receiver recognizes the repetition by its id."""
    await webhooks.subscriptions.subscribe(receiver.url, (), "standard", EVENT_MS)
    await commit_event(webhooks.repository, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    subscriptions = await webhooks.subscriptions.all()
    outbox = await webhooks.dispatcher._enqueue_changes(subscriptions)
    assert outbox is not None
    for delivery in outbox.due(webhooks.clock()):
        await webhooks.dispatcher.sender.send(subscriptions[delivery.hook], delivery, webhooks.clock())
    other = WebhookDispatcher(webhooks.repository, webhooks.subscriptions, webhooks.clock, allow_private=True)
    await other.lead()
    await other.close()

    assert len(receiver.calls) == 2 and len({id_ for id_, _ in receiver.calls}) == 1
    assert await webhooks.dispatcher.queue.pending() == {}


async def test_a_410_response_disables_the_webhook(webhooks: Webhooks, receiver: Receiver) -> None:
    """Until it is enabled again; pending deliveries become dead letters."""
    receiver.statuses = [410]
    subscription, _ = await webhooks.subscriptions.subscribe(receiver.url, (), "standard", EVENT_MS)
    for kind in ("fired", "closed"):
        await commit_event(webhooks.repository, kind, event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await webhooks.dispatcher.lead()
    await commit_event(webhooks.repository, "fired", event("e2", "Another", ("a",)), EVENT_MS)
    await webhooks.dispatcher.lead()

    assert len(receiver.calls) == 1
    assert (await webhooks.subscriptions.get(subscription.id)).disabled
    assert [letter.kind for letter in await webhooks.dispatcher.queue.dead_letters({subscription.id})] == [
        "closed",
        "fired",
    ]
    assert not (await webhooks.subscriptions.suspend(subscription.id, "")).disabled


async def test_changes_before_the_first_run_are_not_delivered(store: Store, receiver: Receiver) -> None:
    """A new service does not report last week's events."""
    repository, subscriptions = EventRepository(store), Subscriptions(store)
    await commit_event(repository, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    dispatcher = WebhookDispatcher(repository, subscriptions, Clock(EVENT_MS), allow_private=True)
    await subscriptions.subscribe(receiver.url, (), "standard", EVENT_MS)
    await dispatcher.lead()
    await commit_event(repository, "closed", event("e1", "Bridge closed", ("a",), status="closed"), EVENT_MS)
    await dispatcher.lead()
    await dispatcher.close()

    assert receiver.types == ["event.closed"]


async def test_one_of_two_replicas_sends_the_calls(webhooks: Webhooks, receiver: Receiver) -> None:
    """The one that holds the lease; after its release the other takes over."""
    await webhooks.subscriptions.subscribe(receiver.url, (), "standard", EVENT_MS)
    other = WebhookDispatcher(webhooks.repository, webhooks.subscriptions, webhooks.clock, allow_private=True)
    await webhooks.dispatcher.run_once()
    await commit_event(webhooks.repository, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await other.run_once()
    assert receiver.calls == []
    await webhooks.dispatcher.close()
    await other.run_once()
    await other.close()

    assert receiver.types == ["event.fired"]
