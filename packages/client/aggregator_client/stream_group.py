"""One consumer of a consumer group of a Redis stream: reads entries, stores outputs, acknowledges, trims."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from redis import asyncio as driver
from redis.exceptions import ResponseError

BATCH_ENTRIES = 64
LETTER_FIELDS = (b"entry", b"reason", b"fields_left_out")  # what a dead letter adds to its entry
MAX_LETTER_FIELDS = 50  # of an entry, besides its article; scripts of Redis take some thousand values
MAX_REASON_CHARS = 1_000

# Stores the output of an entry, then acknowledges it; an error of XADD ends the script before XACK. Returns 0
# if the entry is not pending any more: another worker has processed it.
_SETTLE = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', unpack(ARGV, 4))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
"""

# Returns a dead letter to its stream; 0 if another command has done so.
_REPLAY = """
if #redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', unpack(ARGV, 2))
return redis.call('XDEL', KEYS[2], ARGV[1])
"""

StreamEntry = tuple[bytes, dict[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class StreamNames:
    """Names of the streams, the group and this worker; running workers need different ``consumer`` names."""

    source: str = "articles"
    verdicts: str = "verdicts"
    group: str = "aggregator"
    consumer: str = "worker-1"

    @property
    def dead_letters(self) -> str:
        """Stream of the entries that could not be processed."""
        return f"{self.source}:dead"


class StreamGroup:
    """See the module. All methods raise RedisError and OSError.

    Args:
        redis: Server of the streams.
        names: Names of the streams, the group and this consumer.
        idle_ms: Entries of other consumers are claimed after this time without progress.
        maxlen: Approximate length of the output streams, and of the input stream when trimmed.
    """

    def __init__(self, redis: driver.Redis, names: StreamNames, idle_ms: int, maxlen: int) -> None:
        self.names = names
        self._redis, self._idle_ms, self._maxlen = redis, idle_ms, maxlen
        self._own_pending_done = False
        self._settle_script = redis.register_script(_SETTLE)
        self._replay_script = redis.register_script(_REPLAY)

    def reread_own_pending(self) -> None:
        """Read the entries that this consumer has not acknowledged again, before new ones."""
        self._own_pending_done = False

    async def ensure(self) -> None:
        """Create the consumer group, from the beginning of the stream, unless it exists."""
        try:
            await self._redis.xgroup_create(self.names.source, self.names.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def read_own_pending(self) -> list[StreamEntry]:
        """The next entry that this consumer read before a restart; skipped once all of them are processed.

        One at a time, as those of others: their batch may have been too large for a process.
        """
        if self._own_pending_done:
            return []
        entries = await self._read("0", None, 1)
        self._own_pending_done = not entries
        return await self._without_trimmed(entries)

    async def claim_idle(self) -> list[StreamEntry]:
        """An entry of another consumer that is idle."""
        names = self.names
        claimed = await self._redis.xautoclaim(
            names.source, names.group, names.consumer, self._idle_ms, start_id="0", count=1
        )
        return await self._without_trimmed(claimed[1])

    async def read_new(self, block_ms: int | None) -> list[StreamEntry]:
        """Entries that no consumer has read; ``block_ms``: how long to wait for one, None: not at all."""
        return await self._read(">", block_ms)

    async def _read(self, after: str, block_ms: int | None, count: int = BATCH_ENTRIES) -> list[StreamEntry]:
        names = self.names
        answer: Any = await self._redis.xreadgroup(
            names.group, names.consumer, {names.source: after}, count=count, block=block_ms
        )
        # Entries per stream: a list of pairs in RESP2, a mapping to lists of lists in RESP3.
        if isinstance(answer, dict):
            return [entry for chunks in answer.values() for chunk in chunks for entry in chunk]
        return [entry for _, chunk in answer or [] for entry in chunk]

    async def _without_trimmed(self, entries: Sequence[StreamEntry]) -> list[StreamEntry]:
        """Without the entries that were removed from the stream while they were pending."""
        for entry in entries:
            if not entry[1]:
                await self._redis.xack(self.names.source, self.names.group, entry[0])
        return [entry for entry in entries if entry[1]]

    async def keep(self, ids: Sequence[bytes]) -> None:
        """Reset the idle time of pending entries, so that no other worker claims them."""
        names = self.names
        # JUSTID does not count as a delivery.
        await self._redis.xclaim(names.source, names.group, names.consumer, 0, list(ids), justid=True)

    async def settle(self, entry_id: bytes, stream: str, fields: dict[bytes, bytes]) -> bool:
        """Append to ``stream`` and acknowledge the entry; False if another worker has done so."""
        values = [value for pair in fields.items() for value in pair]
        stored = await self._settle_script(
            keys=[self.names.source, stream], args=[self.names.group, entry_id, self._maxlen, *values]
        )
        return bool(stored)

    async def dead_letters(self) -> AsyncIterator[StreamEntry]:
        """Those that are kept now, oldest first."""
        stream, after = self.names.dead_letters, "-"
        last: Any = await self._redis.xrevrange(stream, count=1)
        while last:
            letters: Any = await self._redis.xrange(stream, after, last[0][0], count=1)
            if not letters:
                return
            yield letters[0]
            after = f"({letters[0][0].decode()}"

    async def replay(self, letter: StreamEntry) -> bool:
        """Move a dead letter back to the end of its stream; False if it has no article or is gone."""
        fields = {name: value for name, value in letter[1].items() if name not in LETTER_FIELDS}
        if b"article" not in fields:
            return False
        values = [value for pair in fields.items() for value in pair]
        keys = [self.names.source, self.names.dead_letters]
        return bool(await self._replay_script(keys=keys, args=[letter[0], *values]))

    async def trim(self) -> None:
        """Remove the entries that all consumer groups have acknowledged from a stream above ``maxlen``."""
        source = self.names.source
        if await self._redis.xlen(source) <= self._maxlen:
            return
        oldest_needed = []
        for group in await self._redis.xinfo_groups(source):
            pending: Any = await self._redis.xpending(source, group["name"])
            entry_id = pending["min"] or group["last-delivered-id"]
            oldest_needed.append([int(part) for part in entry_id.split(b"-")])
        if oldest_needed:
            milliseconds, sequence = min(oldest_needed)
            await self._redis.xtrim(source, minid=f"{milliseconds}-{sequence}", approximate=True)


def letter_fields(entry: StreamEntry, reason: str) -> dict[bytes, bytes]:
    """A dead letter: the fields of the entry, its article and ``MAX_LETTER_FIELDS`` others, id and reason."""
    fields = entry[1]
    others = [name for name in fields if name != b"article"]
    kept = {name: fields[name] for name in (b"article", *others[:MAX_LETTER_FIELDS]) if name in fields}
    if len(others) > MAX_LETTER_FIELDS:
        kept[b"fields_left_out"] = str(len(others) - MAX_LETTER_FIELDS).encode()
    return {**kept, b"entry": entry[0], b"reason": reason[:MAX_REASON_CHARS].encode("utf-8", "replace")}
