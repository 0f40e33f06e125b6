"""Driving the burst detector over the live stream.

**The stream is the journal, the state a checkpoint.** ``advance`` reads what came behind the saved
positions, feeds the detector and saves state, positions and changed events together, in one commit that
holds only while the position is still the one that was read. So two leaders can at worst do the same work
twice: the loser drops its own and reads again. A leader that dies is followed by one that reads the stream
again from the last checkpoint and comes to the same events, since their ids depend on their articles
alone. Nothing is lost and nothing told twice: the stream of changes is part of the same commit.

A checkpoint is written at the end of a call in which an event fired, merged or closed or an article was taken down,
and otherwise every ``checkpoint_ms``; in between the leader's detector is ahead of what is saved, in memory only.

The commit also holds only while the editors' orders are those that the detector follows (``actions.py``);
when they are not, it follows the new ones and commits again.

    {events}position     checkpoint number, mode, positions in the article streams
    {events}state        the detector (``BurstDetector.dump``), compressed

What readers get of it is in ``eventlog.py``.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from aggregator.concurrency.yielding import GiveWay, give_way
from aggregator.domain import StreamItem
from aggregator.events.detection import BurstDetector, BurstRule, Change
from aggregator.events.repository import DESK, POSITION, RETENTION_MS, EventLog, decode_orders
from aggregator.events.unit_of_work import Draft
from aggregator.store.base import Equals, Put, Store, Transaction
from aggregator.store.decoding import value_of

# A bulk load fills the stream. So many items are read at a time.
BATCH = 100
# ... and about so many in one call of ``advance``, which takes about half a second: then what happened is saved (all of
# the state, which takes as long as hundreds of items), the lease is renewed, and who wants to stop can.
PASS = 2000
CHECKPOINT_MS = 10_000
STATE = b"{events}state"
FORMAT = b"\x01"
# Editors may act while a commit is prepared: so often it is prepared again.
SAVE_ATTEMPTS = 16
# The stream of changes is trimmed every so many checkpoints.
TRIM_EVERY = 100


class Source(Protocol):
    """What is read of the article stream: ``Index`` has it."""

    async def stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per stream behind ``positions``, in commit order, and the new positions."""


class _Position(msgspec.Struct, array_like=True):
    checkpoint: int
    mode: str
    streams: dict[bytes, bytes]


_position = msgspec.msgpack.Decoder(_Position)
_pack = msgspec.msgpack.Encoder().encode


class Events(EventLog):
    """Events over a store. ``advance`` is for one leader at a time, the rest for every replica.

    ``checkpoint_ms``: how much of the stream, in time, a crash makes the next leader read again.
    ``retention_ms``: how long closed events are kept after they were last seen. ``give_way`` lets others go on.
    """

    def __init__(
        self,
        store: Store,
        rule: BurstRule,
        *,
        batch: int = BATCH,
        checkpoint_ms: int = CHECKPOINT_MS,
        retention_ms: int = RETENTION_MS,
        give_way: GiveWay = give_way,
    ) -> None:
        super().__init__(store, retention_ms=retention_ms)
        self._rule = rule
        self._batch = batch
        self._checkpoint_ms = checkpoint_ms
        self._give_way = give_way
        self._lead: _Lead | None = None
        self.items_read = 0
        self.commits_lost = 0
        self.more = False

    async def advance(self, index: Source, now_ms: int) -> list[Change]:
        """One tick: read on, decide, save. Returns the changes as it told them (none when it lost a race).

        Afterwards ``more`` tells whether it stopped with more to read: call again.
        Raises StoreUnavailable; then nothing is half saved and the next call goes on where the save left off.
        """
        lead = self._lead
        saved, desk = await self.store.read([POSITION, DESK])
        if lead is None or lead.saved != saved:
            lead = await self._resume(saved)
        lead.follow(desk)
        self._lead = None  # whatever interrupts from here on, the next tick starts from what is saved
        self.more, begun = False, self.items_read
        while not self.more:
            items, streams = await index.stream(lead.streams, self._batch)
            await self._feed(lead, items, streams, now_ms)
            if len(items) < self._batch:
                break
            self.more = self.items_read - begun >= PASS
        await self._in_turns(lead.detector.ticking(now_ms))
        lead.pending += lead.detector.changes()
        if lead.wants_checkpoint(now_ms, self._checkpoint_ms) and not await self._save(lead, now_ms):
            return []
        self._lead = lead
        done, lead.done = lead.done, []
        return done

    async def behind(self, index: Source, at_most: int) -> int:
        """How many articles came behind the last checkpoint, counted up to about ``at_most`` of each space."""
        saved = (await self.store.read([POSITION]))[0]
        streams = {}
        if saved is not None and saved[:1] == FORMAT:
            streams = value_of(_position, saved[1:], "The place of the detector").streams
        return len((await index.stream(streams, at_most))[0])

    async def checkpoint(self, now_ms: int) -> None:
        """Save what the leader is ahead; on an orderly stop, so that its successor need not read again."""
        lead, self._lead = self._lead, None
        if lead is not None and lead.ahead:
            await self._save(lead, now_ms)

    async def _feed(
        self, lead: _Lead, items: Sequence[StreamItem], streams: dict[bytes, bytes], now_ms: int
    ) -> None:
        for item in items:
            await self._give_way()
            # A replica whose clock is ahead must not move time on for all.
            at_ms = min(item.arrived_ms, now_ms)
            if item.kind == "deleted":
                lead.deleted[item.first] = item.id
            await self._in_turns(lead.detector.observing(item, at_ms))
        self.items_read += len(items)
        lead.ahead += len(items)
        lead.streams = streams
        lead.pending += lead.detector.changes()

    async def _in_turns(self, work: Iterator[None]) -> None:
        """Requests have their turn after each piece.

        In a thread the detector would take the interpreter from them at every step, for as long as the switch
        interval, which is about what a piece takes.
        """
        for _ in work:
            await self._give_way()

    async def _resume(self, saved: bytes | None) -> _Lead:
        """The detector as it was saved.

        A rule with other numbers goes on with the state; one of another mode starts anew at the same
        place. A state that is lost or of another format is built again from the start of the stream;
        events that are known already are then not told again.
        """
        if saved is None or saved[:1] != FORMAT:
            return _Lead(BurstDetector(self._rule), {}, saved)
        position = value_of(_position, saved[1:], "The place of the detector")
        if position.mode != self._rule.mode:
            return _Lead(BurstDetector(self._rule), position.streams, saved, position.checkpoint)
        # State and position are of one commit; if another leader comes in between, our own commit fails.
        state = (await self.store.read([STATE]))[0]
        try:
            detector = BurstDetector.load(zlib.decompress(state or b""), self._rule)
        except (ValueError, zlib.error):
            return _Lead(BurstDetector(self._rule), {}, saved, position.checkpoint)
        return _Lead(detector, position.streams, saved, position.checkpoint)

    async def _save(self, lead: _Lead, now_ms: int) -> bool:
        """State, positions and changed events in one commit; False when another leader was faster."""
        number = lead.checkpoint + 1
        position = FORMAT + _pack(_Position(number, self._rule.mode, lead.streams))
        for _ in range(SAVE_ATTEMPTS):
            state = await self._state(lead)
            draft = await self._drafted(lead, now_ms)
            writes = [Put(POSITION, position), Put(STATE, state), *draft.writes()]
            checks = (Equals(POSITION, lead.saved), Equals(DESK, lead.desk))
            failed = await self.store.commit(Transaction(checks, tuple(writes)))
            if not failed:
                lead.saved_as(position, number, now_ms, draft.taken)
                if number % TRIM_EVERY == 0:
                    await self.trim_changes()
                return True
            if 0 in failed:
                break
            lead.follow((await self.store.read([DESK]))[0])
        self.commits_lost += 1
        return False

    async def _state(self, lead: _Lead) -> bytes:
        """The detector as it is saved."""
        pieces: list[bytes] = []
        for piece in lead.detector.dumping():
            pieces.append(piece)
            await self._give_way()
        # The thread lets go of the interpreter while it compresses.
        return await asyncio.to_thread(zlib.compress, b"".join(pieces), 1)

    async def _drafted(self, lead: _Lead, now_ms: int) -> Draft:
        """Versions of the events that changed since the last checkpoint."""
        if not lead.pending and not lead.deleted:
            return Draft(self, {})
        draft = Draft(self, await self.index())
        await draft.take(lead.pending, decode_orders(lead.desk))
        for first, id_ in lead.deleted.items():
            await draft.take_down(first, id_, now_ms)
        draft.expire(now_ms)
        return draft


class _Lead:
    """What the leader holds between two ticks: the detector, and how far it is ahead of the checkpoint."""

    def __init__(
        self, detector: BurstDetector, streams: dict[bytes, bytes], saved: bytes | None, checkpoint: int = 0
    ) -> None:
        self.detector = detector
        self.streams = streams
        self.saved = saved
        self.checkpoint = checkpoint
        self.saved_ms = 0
        self.ahead = 0
        self.pending: list[Change] = []
        self.done: list[Change] = []
        self.deleted: dict[int, str] = {}
        self.desk: bytes | None = b""  # nothing that can be saved: orders are followed at the first tick
        self.ordered = False

    def follow(self, desk: bytes | None) -> None:
        """Bring the detector in line with the editors' orders, when these are new."""
        if desk != self.desk:
            self.ordered = bool(self.desk)
            self.desk = desk
            self.detector.follow(decode_orders(desk))
            self.pending += self.detector.changes()

    def wants_checkpoint(self, now_ms: int, every_ms: int) -> bool:
        """At once for what people or feeds wait for, else now and then."""
        if self.deleted or self.ordered or any(change.kind != "updated" for change in self.pending):
            return True
        due = not 0 <= now_ms - self.saved_ms < every_ms
        return due and bool(self.ahead or self.pending)

    def saved_as(self, position: bytes, number: int, now_ms: int, told: Sequence[Change]) -> None:
        self.saved, self.checkpoint, self.saved_ms = position, number, now_ms
        self.done += told
        self.ahead, self.pending, self.deleted, self.ordered = 0, [], {}, False
