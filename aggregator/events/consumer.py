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

from aggregator.concurrency.yielding import YieldControl, yield_control
from aggregator.domain import StreamItem
from aggregator.events.detection import BurstDetector, BurstRule, EventChange
from aggregator.events.repository import (
    EVENT_RETENTION_MS,
    OVERRIDES_KEY,
    POSITION_KEY,
    EventRepository,
    decode_overrides,
)
from aggregator.events.unit_of_work import EventUnitOfWork
from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.store.decoding import decode_value

# A bulk load fills the stream. So many items are read at a time.
ITEMS_PER_READ = 100
# ... and about so many in one call of ``advance``, which takes about half a second: then what happened is saved (all of
# the state, which takes as long as hundreds of items), the lease is renewed, and who wants to stop can.
ITEMS_PER_POLL = 2000
CHECKPOINT_INTERVAL_MS = 10_000
STATE_KEY = b"{events}state"
FORMAT_BYTE = b"\x01"
# Editors may act while a commit is prepared: so often it is prepared again.
SAVE_ATTEMPTS = 16
# The stream of changes is trimmed every so many checkpoints.
TRIM_EVERY_CHECKPOINTS = 100


class ArticleStreamReader(Protocol):
    """What is read of the article stream: ``Index`` has it."""

    async def read_stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per stream behind ``positions``, in commit order, and the new positions."""


class _Position(msgspec.Struct, array_like=True):
    checkpoint: int
    mode: str
    streams: dict[bytes, bytes]


_position_decoder = msgspec.msgpack.Decoder(_Position)
_encode = msgspec.msgpack.Encoder().encode


class DetectorRunner(EventRepository):
    """Events over a store. ``advance`` is for one leader at a time, the rest for every replica.

    ``checkpoint_ms``: how much of the stream, in time, a crash makes the next leader read again.
    ``retention_ms``: how long closed events are kept after they were last seen. ``give_way`` lets others go on.
    """

    def __init__(
        self,
        store: Store,
        rule: BurstRule,
        *,
        items_per_read: int = ITEMS_PER_READ,
        checkpoint_interval_ms: int = CHECKPOINT_INTERVAL_MS,
        retention_ms: int = EVENT_RETENTION_MS,
        yield_control: YieldControl = yield_control,
    ) -> None:
        super().__init__(store, retention_ms=retention_ms)
        self._rule = rule
        self._items_per_read = items_per_read
        self._checkpoint_interval_ms = checkpoint_interval_ms
        self._yield_control = yield_control
        self._leader: _LeaderState | None = None
        self.items_read = 0
        self.commit_conflicts = 0
        self.has_backlog = False

    async def poll(self, index: ArticleStreamReader, now_ms: int) -> list[EventChange]:
        """One tick: read on, decide, save. Returns the changes as it told them (none when it lost a race).

        Afterwards ``more`` tells whether it stopped with more to read: call again.
        Raises StoreUnavailable; then nothing is half saved and the next call goes on where the save left off.
        """
        lead = self._leader
        saved, desk = await self.store.read([POSITION_KEY, OVERRIDES_KEY])
        if lead is None or lead.saved_position != saved:
            lead = await self._resume(saved)
        lead.apply_overrides(desk)
        self._leader = None  # whatever interrupts from here on, the next tick starts from what is saved
        self.has_backlog, begun = False, self.items_read
        while not self.has_backlog:
            items, streams = await index.read_stream(lead.streams, self._items_per_read)
            await self._feed(lead, items, streams, now_ms)
            if len(items) < self._items_per_read:
                break
            self.has_backlog = self.items_read - begun >= ITEMS_PER_POLL
        await self._run_cooperatively(lead.detector.tick_steps(now_ms))
        lead.pending_changes += lead.detector.drain_changes()
        if lead.checkpoint_is_due(now_ms, self._checkpoint_interval_ms) and not await self._save(
            lead, now_ms
        ):
            return []
        self._leader = lead
        done, lead.published = lead.published, []
        return done

    async def lag(self, index: ArticleStreamReader, limit: int) -> int:
        """How many articles came behind the last checkpoint, counted up to about ``at_most`` of each space."""
        saved = (await self.store.read([POSITION_KEY]))[0]
        streams = {}
        if saved is not None and saved[:1] == FORMAT_BYTE:
            streams = decode_value(_position_decoder, saved[1:], "The place of the detector").streams
        return len((await index.read_stream(streams, limit))[0])

    async def save_checkpoint(self, now_ms: int) -> None:
        """Save what the leader is ahead; on an orderly stop, so that its successor need not read again."""
        lead, self._leader = self._leader, None
        if lead is not None and lead.unsaved_items:
            await self._save(lead, now_ms)

    async def _feed(
        self, leader: _LeaderState, items: Sequence[StreamItem], streams: dict[bytes, bytes], now_ms: int
    ) -> None:
        for item in items:
            await self._yield_control()
            # A replica whose clock is ahead must not move time on for all.
            at_ms = min(item.arrived_ms, now_ms)
            if item.kind == "deleted":
                leader.deleted_articles[item.first_version] = item.id
            await self._run_cooperatively(leader.detector.observe_steps(item, at_ms))
        self.items_read += len(items)
        leader.unsaved_items += len(items)
        leader.streams = streams
        leader.pending_changes += leader.detector.drain_changes()

    async def _run_cooperatively(self, steps: Iterator[None]) -> None:
        """Requests have their turn after each piece.

        In a thread the detector would take the interpreter from them at every step, for as long as the switch
        interval, which is about what a piece takes.
        """
        for _ in steps:
            await self._yield_control()

    async def _resume(self, saved: bytes | None) -> _LeaderState:
        """The detector as it was saved.

        A rule with other numbers goes on with the state; one of another mode starts anew at the same
        place. A state that is lost or of another format is built again from the start of the stream;
        events that are known already are then not told again.
        """
        if saved is None or saved[:1] != FORMAT_BYTE:
            return _LeaderState(BurstDetector(self._rule), {}, saved)
        position = decode_value(_position_decoder, saved[1:], "The place of the detector")
        if position.mode != self._rule.mode:
            return _LeaderState(BurstDetector(self._rule), position.streams, saved, position.checkpoint)
        # State and position are of one commit; if another leader comes in between, our own commit fails.
        state = (await self.store.read([STATE_KEY]))[0]
        try:
            detector = BurstDetector.load(zlib.decompress(state or b""), self._rule)
        except (ValueError, zlib.error):
            return _LeaderState(BurstDetector(self._rule), {}, saved, position.checkpoint)
        return _LeaderState(detector, position.streams, saved, position.checkpoint)

    async def _save(self, leader: _LeaderState, now_ms: int) -> bool:
        """State, positions and changed events in one commit; False when another leader was faster."""
        number = leader.checkpoint + 1
        position = FORMAT_BYTE + _encode(_Position(number, self._rule.mode, leader.streams))
        for _ in range(SAVE_ATTEMPTS):
            state = await self._encode_state(leader)
            draft = await self._prepare_writes(leader, now_ms)
            writes = [Put(POSITION_KEY, position), Put(STATE_KEY, state), *draft.writes()]
            checks = (
                ValueEquals(POSITION_KEY, leader.saved_position),
                ValueEquals(OVERRIDES_KEY, leader.overrides_value),
            )
            failed = await self.store.commit(Transaction(checks, tuple(writes)))
            if not failed:
                leader.mark_saved(position, number, now_ms, draft.published)
                if number % TRIM_EVERY_CHECKPOINTS == 0:
                    await self.trim_changes()
                return True
            if 0 in failed:
                break
            leader.apply_overrides((await self.store.read([OVERRIDES_KEY]))[0])
        self.commit_conflicts += 1
        return False

    async def _encode_state(self, leader: _LeaderState) -> bytes:
        """The detector as it is saved."""
        pieces: list[bytes] = []
        for piece in leader.detector.dump_chunks():
            pieces.append(piece)
            await self._yield_control()
        # The thread lets go of the interpreter while it compresses.
        return await asyncio.to_thread(zlib.compress, b"".join(pieces), 1)

    async def _prepare_writes(self, leader: _LeaderState, now_ms: int) -> EventUnitOfWork:
        """Versions of the events that changed since the last checkpoint."""
        if not leader.pending_changes and not leader.deleted_articles:
            return EventUnitOfWork(self, {})
        draft = EventUnitOfWork(self, await self.summaries())
        await draft.add_detector_changes(leader.pending_changes, decode_overrides(leader.overrides_value))
        for first, id_ in leader.deleted_articles.items():
            await draft.remove_article(first, id_, now_ms)
        draft.drop_expired(now_ms)
        return draft


class _LeaderState:
    """What the leader holds between two ticks: the detector, and how far it is ahead of the checkpoint."""

    def __init__(
        self, detector: BurstDetector, streams: dict[bytes, bytes], saved: bytes | None, checkpoint: int = 0
    ) -> None:
        self.detector = detector
        self.streams = streams
        self.saved_position = saved
        self.checkpoint = checkpoint
        self.checkpoint_at_ms = 0
        self.unsaved_items = 0
        self.pending_changes: list[EventChange] = []
        self.published: list[EventChange] = []
        self.deleted_articles: dict[int, str] = {}
        self.overrides_value: bytes | None = (
            b""  # nothing that can be saved: orders are followed at the first tick
        )
        self.overrides_changed = False

    def apply_overrides(self, overrides_value: bytes | None) -> None:
        """Bring the detector in line with the editors' orders, when these are new."""
        if overrides_value != self.overrides_value:
            self.overrides_changed = bool(self.overrides_value)
            self.overrides_value = overrides_value
            self.detector.set_overrides(decode_overrides(overrides_value))
            self.pending_changes += self.detector.drain_changes()

    def checkpoint_is_due(self, now_ms: int, interval_ms: int) -> bool:
        """At once for what people or feeds wait for, else now and then."""
        if (
            self.deleted_articles
            or self.overrides_changed
            or any(change.kind != "updated" for change in self.pending_changes)
        ):
            return True
        due = not 0 <= now_ms - self.checkpoint_at_ms < interval_ms
        return due and bool(self.unsaved_items or self.pending_changes)

    def mark_saved(self, position: bytes, number: int, now_ms: int, published: Sequence[EventChange]) -> None:
        self.saved_position, self.checkpoint, self.checkpoint_at_ms = position, number, now_ms
        self.published += published
        self.unsaved_items, self.pending_changes, self.deleted_articles, self.overrides_changed = (
            0,
            [],
            {},
            False,
        )
