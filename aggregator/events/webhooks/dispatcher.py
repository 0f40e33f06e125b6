"""A turn of the leader: changes of events become calls, calls go out, their results are saved."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
import msgspec

from aggregator.errors import StoreUnavailable
from aggregator.events.detection import Event
from aggregator.events.filter import EventQuery
from aggregator.events.repository import ChangeRecord, EventLog
from aggregator.events.webhooks.outbox import Call, Outbox, owing, settled
from aggregator.events.webhooks.payload import payload, ping
from aggregator.events.webhooks.sender import Result, send, sender
from aggregator.events.webhooks.subscriptions import Hook, Hooks
from aggregator.store.base import Equals, Put, StreamAdd, Transaction, Write
from aggregator.store.decoding import value_of
from aggregator.store.lease import Lease

OUTBOX = b"{events}outbox"
DEAD = b"{events}dead-calls"
LEASE = b"{events}courier"
LEASE_MS = 60_000
BATCH = 200
TOLD = frozenset({"fired", "doubled", "merged", "closed"})
KEPT_DEAD = 1000

log = logging.getLogger(__name__)

_outbox = msgspec.msgpack.Decoder(Outbox)
_call = msgspec.msgpack.Decoder(Call)


class Courier:
    """Sends what is owed. One replica at a time holds the lease; two at worst send a call twice.

    ``base_url``: for links in the calls. ``private``: addresses of a private network may be called.
    """

    def __init__(
        self,
        events: EventLog,
        hooks: Hooks,
        clock: Callable[[], int],
        *,
        base_url: str = "",
        private: bool = False,
    ) -> None:
        self._events, self._hooks, self._clock = events, hooks, clock
        self._base_url, self._private = base_url, private
        self._lease = Lease(events.store, LEASE, LEASE_MS)
        self._session: aiohttp.ClientSession | None = None
        self.sent = self.failures = 0
        self._problem = ""

    async def turn(self) -> None:
        """Make out and send what is due. Never raises, except when cancelled."""
        try:
            if await self._lease.take():
                await self.deliver()
        except StoreUnavailable as error:
            self._failed(f"webhooks wait for the store: {error}")
        except Exception as error:
            self._failed(f"the webhook courier failed and will try again: {error!r}", unexpected=True)
        else:
            self._problem = ""

    def _failed(self, problem: str, *, unexpected: bool = False) -> None:
        """Said once, not at each turn until it is over."""
        if problem != self._problem:
            log.log(logging.ERROR if unexpected else logging.WARNING, "%s", problem, exc_info=unexpected)
        self._problem = problem

    async def deliver(self) -> None:
        """One round, by whoever calls it. Raises StoreUnavailable."""
        hooks = await self._hooks.all()
        outbox = await self._make_out(hooks)
        due = outbox.due(self._clock()) if outbox is not None else []
        if due and outbox is not None:
            results = dict(zip((call.id for call in due), await self._send(hooks, due), strict=True))
            await self._settle(due, results)

    async def close(self) -> None:
        """Give the lease and the connections back. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._lease.close()

    async def dead(self, hook: str, count: int = 50) -> Sequence[Call]:
        """The newest calls to a webhook that were given up, newest first."""
        entries = await self._events.store.stream_tail(DEAD, KEPT_DEAD)
        calls = [value_of(_call, payload, "A call that was given up") for _, payload in entries]
        return [call for call in calls if call.hook == hook][:count]

    async def owed(self) -> dict[str, int]:
        """Calls that are owed, by webhook."""
        counts: dict[str, int] = {}
        for call in decoded((await self._events.store.read([OUTBOX]))[0]).calls:
            counts[call.hook] = counts.get(call.hook, 0) + 1
        return counts

    async def ping(self, hook: Hook) -> Result:
        """Call it now, with a test body, whatever is owed."""
        now_ms = self._clock()
        body = ping(hook.id, now_ms, hook.format)
        call = Call("msg_" + secrets.token_hex(12), hook.id, "", "ping", body, now_ms, now_ms)
        return (await self._send({hook.id: hook}, [call]))[0]

    # -- inside --------------------------------------------------------------------------------

    async def _make_out(self, hooks: dict[str, Hook]) -> Outbox | None:
        """The outbox with calls for all changes since; None when another courier was faster."""
        raw = (await self._events.store.read([OUTBOX]))[0]
        outbox = decoded(raw)
        if raw is None:  # the first turn ever: what happened before is not told
            return await self._save(raw, Outbox(await self._events.newest_change()), [])
        changes = await self._events.changes(outbox.position, BATCH)
        if not changes:
            return outbox
        told = [change for _, change in changes if change.kind in TOLD]
        events = await self._events.get_many(list(dict.fromkeys(change.event_id for change in told)))
        made = tuple(
            self._call(hook, change, events[change.event_id])
            for change in told
            for hook in hooks.values()
            if change.event_id in events
            and not hook.disabled
            and all(EventQuery.parse(query).matches(events[change.event_id]) for query in hook.queries)
        )
        return await self._save(raw, *owing(outbox, changes[-1][0], made))

    def _call(self, hook: Hook, change: ChangeRecord, event: Event) -> Call:
        """Its id follows from what it tells, so that nobody is told twice under different ids."""
        name = f"{hook.id}:{change.event_id}:{change.kind}:{change.revision}:{change.at_ms}".encode()
        now_ms = self._clock()
        return Call(
            id="msg_" + hashlib.sha256(name).hexdigest()[:24],
            hook=hook.id,
            event=change.event_id,
            kind=change.kind,
            body=payload(event, change.kind, change.at_ms, hook.format, self._base_url),
            made_ms=now_ms,
            due_ms=now_ms,
        )

    async def _send(self, hooks: dict[str, Hook], calls: Sequence[Call]) -> list[Result]:
        if self._session is None:
            self._session = sender(private=self._private)
        session, now_ms = self._session, self._clock()

        async def one(call: Call) -> Result:
            hook = hooks.get(call.hook)
            if hook is None:
                return Result("the webhook was removed", gone=True)
            return await send(session, hook, call, now_ms, private=self._private)

        return await asyncio.gather(*map(one, calls))

    async def _settle(self, calls: Sequence[Call], results: dict[str, Result]) -> None:
        now_ms = self._clock()
        gone = {call.hook for call in calls if results[call.id].gone}
        problems = {id_: result.problem for id_, result in results.items()}
        waits = {id_: result.wait_s for id_, result in results.items()}
        raw = (await self._events.store.read([OUTBOX]))[0]
        left, dead = settled(decoded(raw), problems, gone, now_ms, random.random(), waits)
        if await self._save(raw, left, dead) is None:
            return
        self.sent += sum(problem is None for problem in problems.values())
        self.failures += sum(problem is not None for problem in problems.values())
        for call in dead:
            log.error("webhook %s: the call %s was given up: %s", call.hook, call.id, call.result)
        await self._hooks.change(lambda hooks: _noted(hooks, calls, results, now_ms))

    async def _save(self, raw: bytes | None, outbox: Outbox, dead: Sequence[Call]) -> Outbox | None:
        """The outbox, if it still is what was read."""
        writes: list[Write] = [Put(OUTBOX, msgspec.msgpack.encode(outbox))]
        writes += [StreamAdd(DEAD, msgspec.msgpack.encode(call)) for call in dead]
        failed = await self._events.store.commit(Transaction((Equals(OUTBOX, raw),), tuple(writes)))
        if failed:
            return None
        if dead:
            await self._trim()
        return outbox

    async def _trim(self) -> None:
        kept = await self._events.store.stream_tail(DEAD, KEPT_DEAD)
        if len(kept) == KEPT_DEAD:
            await self._events.store.stream_trim(DEAD, kept[-1][0])


def decoded(raw: bytes | None) -> Outbox:
    return value_of(_outbox, raw, "The outbox of calls") if raw is not None else Outbox()


def _noted(hooks: dict[str, Hook], calls: Sequence[Call], results: dict[str, Result], now_ms: int) -> None:
    """How the webhooks have fared; one that answered "gone" is called no more."""
    for call in calls:
        hook, result = hooks.get(call.hook), results[call.id]
        if hook is None:
            continue
        changes: dict[str, Any] = {"last_ms": now_ms, "last_result": result.problem or "delivered"}
        changes["delivered" if result.problem is None else "failed"] = (
            hook.delivered + 1 if result.problem is None else hook.failed + 1
        )
        if result.gone:
            changes["disabled"] = "the receiver answered 410 Gone"
        hooks[call.hook] = msgspec.structs.replace(hook, **changes)
