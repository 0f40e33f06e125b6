"""From a changed event to a signed call, on every kind of store."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.errors import StoreUnavailable
from aggregator.events.repository import EventRepository
from aggregator.events.webhooks import Subscriptions, WebhookDispatcher
from aggregator.events.webhooks.dispatcher import OUTBOX_KEY, decode_outbox
from aggregator.store.memory import MemoryStore
from tests.support.factories import EVENT_MS, Clock, event, tell


@dataclass
class Receiver:
    """A system that is called; it answers the next of ``statuses``, else 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    calls: list[tuple[str, dict]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        """One call."""
        self.calls.append((request.headers["webhook-id"], await request.json()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    @property
    def types(self) -> list[str]:
        """What it was told."""
        return [body["type"] for _, body in self.calls]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on loopback."""
    made = Receiver()
    app = web.Application()
    app.router.add_post("/in", made.take)
    async with TestServer(app) as server:
        made.url = str(server.make_url("/in"))
        yield made


async def test_a_store_that_is_away_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """The courier tries again each second; whoever reads the log is told when it begins, and when it begins again."""

    class Away(MemoryStore):
        away = True

        async def read(self, keys):
            if self.away:
                raise StoreUnavailable("It is away.")
            return await super().read(keys)

    store = Away()
    courier = WebhookDispatcher(EventRepository(store), Subscriptions(store), Clock(EVENT_MS))
    for away in (True, True, True, False, False, True):
        store.away = away
        await courier.run_once()
    await courier.close()

    assert [record.message for record in caplog.records] == ["webhooks wait for the store: It is away."] * 2


@dataclass
class Desk:
    """Log, hooks and courier over one store."""

    log: EventRepository
    hooks: Subscriptions
    courier: WebhookDispatcher
    clock: Clock


@pytest.fixture
async def desk(store) -> AsyncIterator[Desk]:
    """A courier that has had its first turn."""
    log, hooks, clock = EventRepository(store), Subscriptions(store), Clock(EVENT_MS)
    courier = WebhookDispatcher(log, hooks, clock, base_url="https://news.example", allow_private=True)
    await courier.deliver_due()
    yield Desk(log, hooks, courier, clock)
    await courier.close()


async def test_fired_doubled_merged_closed_and_nothing_else(desk, receiver):
    """Never per item."""
    await desk.hooks.subscribe(receiver.url, (), "standard", EVENT_MS)
    for kind in ("fired", "updated", "doubled", "updated", "merged", "closed"):
        await tell(desk.log, kind, event("e/1", "Bridge closed", ("a",)), EVENT_MS)
    for _ in range(6):
        await desk.courier.deliver_due()

    assert receiver.types == ["event.fired", "event.doubled", "event.merged", "event.closed"]
    assert receiver.calls[0][1]["data"]["url"] == "https://news.example/events/e%2F1"
    assert len({id_ for id_, _ in receiver.calls}) == 4
    assert (await desk.hooks.values())[0].delivered == 4


async def test_only_what_was_asked_for(desk, receiver):
    """All saved queries of a hook must admit the event."""
    await desk.hooks.subscribe(receiver.url, ("term=bridge", "min_size=2"), "slack", EVENT_MS)
    await tell(desk.log, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await tell(desk.log, "fired", event("e2", "Bakery opens", ("a", "b"), terms=()), EVENT_MS)
    before = len(receiver.calls)
    await tell(desk.log, "fired", event("e3", "Bridge <opens> & more", ("a", "b")), EVENT_MS)
    receiver.take = None  # type: ignore[assignment]
    calls = decode_outbox((await desk.log.store.read([OUTBOX_KEY]))[0]).calls
    await desk.courier._enqueue_changes(await desk.hooks.all())
    calls = decode_outbox((await desk.log.store.read([OUTBOX_KEY]))[0]).calls

    assert before == 0
    assert [json.loads(call.body)["text"] for call in calls] == [
        "Breaking: <https://news.example/events/e3|Bridge &lt;opens&gt; &amp; more> (2 items from 2 outlets)"
    ]


async def test_what_fails_is_tried_again_under_the_same_id(desk, receiver):
    """After its pause, and not before; the receiver sees one id."""
    receiver.statuses = [500, 500]
    await desk.hooks.subscribe(receiver.url, (), "standard", EVENT_MS)
    await tell(desk.log, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await desk.courier.deliver_due()
    await desk.courier.deliver_due()
    assert len(receiver.calls) == 1
    desk.clock.now_ms += 10_000
    await desk.courier.deliver_due()
    desk.clock.now_ms += 600_000
    await desk.courier.deliver_due()
    hook = (await desk.hooks.values())[0]

    assert len(receiver.calls) == 3 and len({id_ for id_, _ in receiver.calls}) == 1
    assert (hook.delivered, hook.failed, hook.last_result, await desk.courier.pending()) == (
        1,
        2,
        "delivered",
        {},
    )


async def test_a_crash_after_the_call_repeats_it_under_the_same_id(desk, receiver):
    """The results were never saved: the next courier cannot know, the receiver can."""
    await desk.hooks.subscribe(receiver.url, (), "standard", EVENT_MS)
    await tell(desk.log, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    hooks = await desk.hooks.all()
    outbox = await desk.courier._enqueue_changes(hooks)
    await desk.courier._send_all(hooks, outbox.due(desk.clock()))
    other = WebhookDispatcher(desk.log, desk.hooks, desk.clock, allow_private=True)
    await other.deliver_due()
    await other.close()

    assert len(receiver.calls) == 2 and len({id_ for id_, _ in receiver.calls}) == 1
    assert await desk.courier.pending() == {}


async def test_gone_means_gone(desk, receiver):
    """410 ends the subscription until somebody takes it up again; what was owed is listed."""
    receiver.statuses = [410]
    hook = await desk.hooks.subscribe(receiver.url, (), "standard", EVENT_MS)
    for kind in ("fired", "closed"):
        await tell(desk.log, kind, event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await desk.courier.deliver_due()
    await tell(desk.log, "fired", event("e2", "Another", ("a",)), EVENT_MS)
    await desk.courier.deliver_due()

    assert len(receiver.calls) == 1
    assert (await desk.hooks.get(hook.id)).disabled
    assert [call.kind for call in await desk.courier.dead_letters(hook.id)] == ["closed", "fired"]
    assert not (await desk.hooks.enable(hook.id)).disabled


async def test_what_happened_before_the_first_hook_is_not_told(store, receiver):
    """A new service does not call the world about last week."""
    log, hooks = EventRepository(store), Subscriptions(store)
    await tell(log, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    courier = WebhookDispatcher(log, hooks, Clock(EVENT_MS), allow_private=True)
    await hooks.subscribe(receiver.url, (), "standard", EVENT_MS)
    await courier.deliver_due()
    await tell(log, "closed", event("e1", "Bridge closed", ("a",), status="closed"), EVENT_MS)
    await courier.deliver_due()
    await courier.close()

    assert receiver.types == ["event.closed"]


async def test_one_of_two_replicas_does_the_calls(desk, receiver):
    """The lease keeps it to one; when it goes, the other takes over."""
    await desk.hooks.subscribe(receiver.url, (), "standard", EVENT_MS)
    other = WebhookDispatcher(desk.log, desk.hooks, desk.clock, allow_private=True)
    await desk.courier.run_once()
    await tell(desk.log, "fired", event("e1", "Bridge closed", ("a",)), EVENT_MS)
    await other.run_once()
    assert receiver.calls == []
    await desk.courier.close()
    await other.run_once()
    await other.close()

    assert receiver.types == ["event.fired"]
