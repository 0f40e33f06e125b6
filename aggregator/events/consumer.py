"""Event detection on the live article stream: one leader reads, detects and saves checkpoints.

Why nothing is lost: docs/design/life-of-an-event.md. A checkpoint is written at the end of a call in which
an event fired, merged or closed or an article was deleted, otherwise every ``checkpoint_interval_ms``.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec

from aggregator.analysis.term_frequencies import TermRates
from aggregator.concurrency import YieldControl, yield_control
from aggregator.domain import StreamItem
from aggregator.events.changes import EventUnitOfWork
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule, EventChange, LearningStatus
from aggregator.events.detection.top_stories import top_stories
from aggregator.events.repository import (
    INDEX_FORMAT,
    INDEX_KEY,
    LEARNING_KEY,
    OVERRIDES_FORMAT,
    OVERRIDES_KEY,
    POSITION_KEY,
    STORYLINES_KEY,
    TOP_STORIES_KEY,
    EventRepository,
)
from aggregator.events.storylines import decode_storylines
from aggregator.index.article_stream import ArticleStream
from aggregator.store.base import Put, Transaction
from aggregator.store.decoding import decode_value
from aggregator.time_units import MINUTE_MS

logger = logging.getLogger(__name__)
ITEMS_PER_READ = 100  # articles per read of the article stream
# Articles per ``poll``, 0.5 s of work: then the state is saved (the work of some hundred), the lease renewed.
ITEMS_PER_POLL = 2000
CHECKPOINT_INTERVAL_MS = 10_000
STATE_KEY = b"{events}state"  # ``BurstDetector.dump``, compressed
FORMAT_BYTE = b"\x02"
MAX_SAVE_ATTEMPTS = 16  # commit attempts of one checkpoint while editors keep changing the overrides
TRIM_EVERY_CHECKPOINTS = 100
_encode = msgspec.msgpack.Encoder().encode


class LeaderState:
    """The leader's detector between two calls, and how far it is ahead of the checkpoint."""

    def __init__(
        self, detector: BurstDetector, streams: dict[bytes, bytes], saved: bytes | None, checkpoint: int = 0
    ) -> None:
        self.detector, self.streams, self.saved_position = detector, streams, saved
        self.checkpoint, self.checkpoint_at_ms, self.unsaved_items = checkpoint, 0, 0
        self.pending_changes: list[EventChange] = []
        self.published: list[EventChange] = []
        self.deleted_articles: dict[int, str] = {}
        # b"" is never stored, so the first call applies the overrides.
        self.overrides_value: bytes | None = b""
        self.overrides_changed = False

    def apply_overrides(self, overrides_value: bytes | None) -> None:
        """Apply the stored editor overrides to the detector when they changed."""
        if overrides_value != self.overrides_value:
            self.overrides_changed = self.overrides_value != b""
            self.overrides_value = overrides_value
            self.detector.set_overrides(OVERRIDES_FORMAT.decode(overrides_value))
            self.pending_changes += self.detector.drain_changes()

    def checkpoint_is_due(self, now_ms: int, interval_ms: int) -> bool:
        """Return whether to save now, at least every ``interval_ms``; alerts and deletions at once."""
        has_alerts = any(change.kind != "updated" for change in self.pending_changes)
        if self.deleted_articles or self.overrides_changed or has_alerts:
            return True
        interval_over = not 0 <= now_ms - self.checkpoint_at_ms < interval_ms
        return interval_over and bool(self.unsaved_items or self.pending_changes)

    def mark_saved(self, position: bytes, number: int, now_ms: int, published: Sequence[EventChange]) -> None:
        """Record that checkpoint ``number`` was committed."""
        self.saved_position, self.checkpoint, self.checkpoint_at_ms = position, number, now_ms
        self.published += published
        self.unsaved_items, self.pending_changes = 0, []
        self.deleted_articles, self.overrides_changed = {}, False


class _Position(msgspec.Struct, array_like=True):
    checkpoint: int
    streams: dict[bytes, bytes]


_position_decoder = msgspec.msgpack.Decoder(_Position)


class DetectorRunner:
    """Runs the burst detector over the article stream; at most one process, the leader, should call ``poll``.

    ``trusted_clock``: the time by which closed events are removed, in ms; None: that of the call.
    ``has_backlog``: the last ``poll`` stopped before the end; ``learning``: None before the first poll.
    """

    def __init__(
        self,
        repository: EventRepository,
        rule: BurstRule,
        *,
        checkpoint_interval_ms: int = CHECKPOINT_INTERVAL_MS,
        yield_control: YieldControl = yield_control,
        trusted_clock: Callable[[], int] | None = None,
        term_rates: Callable[[], TermRates | None] = lambda: None,
    ) -> None:
        self.repository = repository
        self._rule, self._checkpoint_interval_ms = rule, checkpoint_interval_ms
        self._yield_control, self._trusted_clock = yield_control, trusted_clock
        self._term_rates = term_rates
        self._leader: LeaderState | None = None
        self.items_read = 0
        self.has_backlog = False
        self.learning: LearningStatus | None = None
        self._stories_ms = self._stories_items = 0

    async def poll(self, stream: ArticleStream, now_ms: int) -> list[EventChange]:
        """Read new articles, detect events, save; returns the published changes, none if another leader won.

        Call again at once while ``has_backlog``. After StoreUnavailable it resumes from the checkpoint.
        """
        leader = self._leader
        saved, overrides_value = await self.repository.store.read([POSITION_KEY, OVERRIDES_KEY])
        if leader is None or leader.saved_position != saved:
            leader = await self._resume(saved)
        leader.apply_overrides(overrides_value)
        self._leader = None  # after an exception from here on, the next call starts from the checkpoint
        self.has_backlog = await self._feed_new_items(leader, stream, now_ms)
        await self._run_cooperatively(leader.detector.tick(now_ms))
        leader.pending_changes += leader.detector.drain_changes()
        is_due = leader.checkpoint_is_due(now_ms, self._checkpoint_interval_ms)
        if is_due and not await self._save(leader, now_ms):
            return []
        self._leader = leader
        if self.items_read != self._stories_items and not 0 <= now_ms - self._stories_ms < MINUTE_MS:
            await self._publish_top_stories(leader.detector)
            self._stories_ms, self._stories_items = now_ms, self.items_read
        self.learning = leader.detector.learned_history.status(now_ms)
        published, leader.published = leader.published, []
        return published

    async def lag(self, stream: ArticleStream, limit: int) -> int:
        """Number of articles after the last checkpoint, counted up to ``limit`` in each stream."""
        saved = (await self.repository.store.read([POSITION_KEY]))[0]
        return await stream.count(_decode_position(saved).streams, limit)

    async def save_checkpoint(self, now_ms: int) -> None:
        """Save a checkpoint now, on an orderly stop, so that the next leader reads nothing again."""
        leader, self._leader = self._leader, None
        if leader is not None and leader.unsaved_items:
            await self._save(leader, now_ms)

    async def _feed_new_items(self, leader: LeaderState, stream: ArticleStream, now_ms: int) -> bool:
        remaining = ITEMS_PER_POLL
        while remaining > 0:
            items, streams = await stream.read(leader.streams, ITEMS_PER_READ)
            await self._feed(leader, items, streams, now_ms)
            if len(items) < ITEMS_PER_READ:
                return False
            remaining -= len(items)
        return True

    async def _feed(
        self, leader: LeaderState, items: Sequence[StreamItem], streams: dict[bytes, bytes], now_ms: int
    ) -> None:
        ignored_before = leader.detector.memory.undated.ignored
        for item in items:
            await self._yield_control()
            # A replica whose clock is ahead must not advance the detector's clock.
            at_ms = min(item.arrived_ms, now_ms)
            if item.kind == "deleted":
                leader.deleted_articles[item.first_version] = item.id
            else:
                await self._run_cooperatively(leader.detector.advance_clock_steps(at_ms))
            leader.detector.observe(item, at_ms)
        if leader.detector.memory.undated.ignored and not ignored_before:
            logger.warning(
                "Articles without published_at arrive faster than a crawler sends them: event detection "
                "ignores this bulk load. Send dates, or declare imports as backfill."
            )
        self.items_read += len(items)
        leader.unsaved_items += len(items)
        leader.streams = streams

    async def _run_cooperatively(self, steps: Iterator[None]) -> None:
        """Yield after each step; a thread would hold the interpreter lock for the switch interval."""
        for _ in steps:
            await self._yield_control()

    async def _publish_top_stories(self, detector: BurstDetector) -> None:
        """Store the largest stories with their storylines, outside the checkpoint."""
        storylines = decode_storylines((await self.repository.store.read([STORYLINES_KEY]))[0])
        found = []
        for story in top_stories(detector):
            story_id = storylines.find_story(story.event)
            linked = story_id if story.is_event or story_id != story.event.id else ""
            event = replace(story.event, profile=())
            found.append(msgspec.structs.replace(story, event=event, story_id=linked))
            await self._yield_control()
        write = Put(TOP_STORIES_KEY, msgspec.json.encode(found))
        await self.repository.store.commit(Transaction((), (write,)))

    async def _resume(self, saved: bytes | None) -> LeaderState:
        """The detector of the last checkpoint, or an empty one."""
        position = _decode_position(saved)
        # Position and state are written by one commit; if another leader commits between the two reads, our
        # own commit fails on the position.
        state = (await self.repository.store.read([STATE_KEY]))[0] if position.checkpoint else None
        try:
            detector = BurstDetector.load(zlib.decompress(state or b""), self._rule, self._term_rates())
        except (ValueError, zlib.error):
            return LeaderState(BurstDetector(self._rule, self._term_rates()), {}, saved, position.checkpoint)
        return LeaderState(detector, position.streams, saved, position.checkpoint)

    async def _save(self, leader: LeaderState, now_ms: int) -> bool:
        """Commit state, positions, and changed events; False if another leader won."""
        number = leader.checkpoint + 1
        position = FORMAT_BYTE + _encode(_Position(number, leader.streams))
        for _ in range(MAX_SAVE_ATTEMPTS):
            state = await self._encode_state(leader)
            history = _encode(leader.detector.learned_history)
            unit = await self._collect_changes(leader, now_ms)
            saved = Put(POSITION_KEY, position), Put(STATE_KEY, state), Put(LEARNING_KEY, history)
            conflicts = await unit.commit(*saved)
            if not conflicts:
                leader.mark_saved(position, number, now_ms, unit.published)
                if number % TRIM_EVERY_CHECKPOINTS == 0:
                    await self.repository.trim_changes(self._trusted_ms(now_ms))
                return True
            if POSITION_KEY in conflicts:
                break
            leader.apply_overrides((await self.repository.store.read([OVERRIDES_KEY]))[0])
        return False

    async def _encode_state(self, leader: LeaderState) -> bytes:
        chunks: list[bytes] = []
        for chunk in leader.detector.dump_chunks():
            chunks.append(chunk)
            await self._yield_control()
        # zlib releases the interpreter lock, so requests can run while a thread compresses.
        return await asyncio.to_thread(zlib.compress, b"".join(chunks), 1)

    async def _collect_changes(self, leader: LeaderState, now_ms: int) -> EventUnitOfWork:
        changed = bool(leader.pending_changes or leader.deleted_articles or leader.overrides_changed)
        keys = [INDEX_KEY, STORYLINES_KEY]
        index, storylines = await self.repository.store.read(keys) if changed else (None, None)
        unit = EventUnitOfWork(
            self.repository,
            INDEX_FORMAT.decode(index),
            position=leader.saved_position,
            overrides_value=leader.overrides_value,
            storylines=decode_storylines(storylines),
        )
        if changed:
            await unit.add_detector_changes(leader.pending_changes)
            for first_version, article_id in leader.deleted_articles.items():
                await unit.remove_article(first_version, article_id, now_ms)
            if not self.has_backlog:  # else the detector may open them yet
                await unit.close_arranged(leader.detector.open_events.by_id, now_ms)
            unit.drop_expired(self._trusted_ms(now_ms))
        return unit

    def _trusted_ms(self, now_ms: int) -> int:
        return now_ms if self._trusted_clock is None else self._trusted_clock()


def _decode_position(saved: bytes | None) -> _Position:
    """The saved one; checkpoint 0 for none, or for one of another format. Raises StoreUnavailable."""
    if saved is None or saved[:1] != FORMAT_BYTE:
        return _Position(0, {})
    return decode_value(_position_decoder, saved[1:], "The detector position")
