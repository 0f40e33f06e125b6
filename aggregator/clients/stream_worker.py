"""Consumer of a Redis stream of articles that writes verdicts to another stream.

Each entry of the input stream has a field ``article`` with the JSON of one article. A worker of the consumer
group reads up to 64 entries, submits them as one batch, and writes each verdict and the acknowledgement of
its entry in one transaction. An entry is therefore acknowledged only after its article was committed; the
entries of a worker that died are claimed by another one after a minute (a restarted worker first processes
its own). Submitting an article again returns the same verdict, so delivery at least once yields one verdict.

An entry that cannot be parsed, is rejected, or was delivered too often goes to the stream ``<input>:dead``
with the reason. The streams of verdicts and dead letters are trimmed to ``MAX_OUTPUT_ENTRIES``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from redis import asyncio as driver
from redis.exceptions import RedisError, ResponseError

from aggregator.clients.client import Client
from aggregator.clients.decision import Decision, Unavailable
from aggregator.errors import ConfigurationError, StoreUnavailable

BATCH_ENTRIES = 64
BLOCK_MS = 1_000
CLAIM_IDLE_MS = 60_000
MAX_DELIVERIES = 5
MAX_OUTPUT_ENTRIES = 100_000
RETRY_DELAY_S = 1.0

log = logging.getLogger(__name__)

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


class StreamWorker:
    """One consumer of the group; ``client`` must fail closed: entries without an answer stay pending."""

    def __init__(
        self,
        redis: driver.Redis,
        client: Client,
        streams: StreamNames,
        *,
        idle_ms: int = CLAIM_IDLE_MS,
        max_deliveries: int = MAX_DELIVERIES,
    ) -> None:
        self._redis, self._client, self._streams = redis, client, streams
        self._idle_ms, self._max_deliveries = idle_ms, max_deliveries
        self._own_pending_done = False
        self.processed = self.dead_lettered = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Process entries until ``stop`` is set; waits while Redis or the service is unavailable.

        Raises ConfigurationError if the stream cannot be read.
        """
        while not stop.is_set():
            try:
                await self.ensure_group()
                while not stop.is_set():
                    await self.process_batch(BLOCK_MS)
            except ResponseError as error:
                raise self._stream_error(error) from None
            except (RedisError, OSError, Unavailable) as error:
                log.warning("retrying in %g s: %s", RETRY_DELAY_S, error)
                self._own_pending_done = False
                await _wait_before_retry(stop)

    async def drain(self) -> None:
        """Process entries until none is left. Raises StoreUnavailable, ConfigurationError."""
        try:
            await self.ensure_group()
            while await self.process_batch():
                pass
        except ResponseError as error:
            raise self._stream_error(error) from None
        except (RedisError, OSError) as error:
            reason = str(error).rstrip(".")
            raise StoreUnavailable(
                f"The stream {self._streams.source!r} is unavailable ({reason}); "
                "run the command again when its Redis answers. Nothing is lost."
            ) from None

    def _stream_error(self, error: ResponseError) -> ConfigurationError:
        return ConfigurationError(f"The stream {self._streams.source!r} cannot be read: {error}.")

    async def ensure_group(self) -> None:
        """Create the consumer group, from the beginning of the stream, unless it exists."""
        try:
            await self._redis.xgroup_create(self._streams.source, self._streams.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def process_batch(self, block_ms: int | None = None) -> int:
        """Process one batch of own pending, idle or new entries, in this order; returns its size."""
        entries = await self._read_own_pending() or await self._claim_idle() or await self._read_new(block_ms)
        if entries:
            await self._process(entries)
        return len(entries)

    async def _read_own_pending(self) -> list[StreamEntry]:
        """Entries that this consumer read before a restart; skipped once all of them are processed."""
        if self._own_pending_done:
            return []
        entries = await self._read("0", None)
        self._own_pending_done = not entries
        return await self._dead_letter_exhausted(entries)

    async def _claim_idle(self) -> list[StreamEntry]:
        names = self._streams
        claimed = await self._redis.xautoclaim(
            names.source, names.group, names.consumer, self._idle_ms, start_id="0", count=BATCH_ENTRIES
        )
        return await self._dead_letter_exhausted(claimed[1])

    async def _read_new(self, block_ms: int | None) -> list[StreamEntry]:
        return await self._read(">", block_ms)

    async def _read(self, after: str, block_ms: int | None) -> list[StreamEntry]:
        names = self._streams
        answer: Any = await self._redis.xreadgroup(
            names.group, names.consumer, {names.source: after}, count=BATCH_ENTRIES, block=block_ms
        )
        # Entries per stream: a list of pairs in RESP2, a mapping to lists of lists in RESP3.
        if isinstance(answer, dict):
            return [entry for chunks in answer.values() for chunk in chunks for entry in chunk]
        return [entry for _, chunk in answer or [] for entry in chunk]

    async def _dead_letter_exhausted(self, entries: Sequence[StreamEntry]) -> list[StreamEntry]:
        """Move entries that were delivered too often to the dead letters; returns the others."""
        if not entries:
            return []
        names = self._streams
        details: Any = await self._redis.xpending_range(
            names.source, names.group, min=entries[0][0], max=entries[-1][0], count=len(entries) * 4
        )
        exhausted = {d["message_id"] for d in details if d["times_delivered"] > self._max_deliveries}
        for entry in entries:
            if entry[0] in exhausted:
                await self._dead_letter(entry, f"delivered more than {self._max_deliveries} times")
            elif not entry[1]:  # trimmed from the stream while it was pending
                await self._redis.xack(names.source, names.group, entry[0])
        return [entry for entry in entries if entry[0] not in exhausted and entry[1]]

    async def _process(self, entries: Sequence[StreamEntry]) -> None:
        decoded = [_parse_article(fields) for _, fields in entries]
        articles = [article for article in decoded if isinstance(article, dict)]
        answers = iter(await self._client.submit_many(articles))
        for entry, parsed in zip(entries, decoded, strict=True):
            decision = next(answers) if isinstance(parsed, dict) else Decision("refused", problem=parsed)
            if decision.answer is None:
                await self._dead_letter(entry, decision.problem)
            else:
                await self._acknowledge(entry[0], msgspec.json.encode(decision.answer))

    async def _acknowledge(self, entry_id: bytes, verdict: bytes) -> None:
        names = self._streams
        async with self._redis.pipeline(transaction=True) as transaction:
            transaction.xadd(
                names.verdicts,
                {"entry": entry_id, "verdict": verdict},
                maxlen=MAX_OUTPUT_ENTRIES,
                approximate=True,
            )
            transaction.xack(names.source, names.group, entry_id)
            await transaction.execute()
        self.processed += 1

    async def _dead_letter(self, entry: StreamEntry, reason: str) -> None:
        names = self._streams
        log.warning("entry %s moved to %s: %s", entry[0].decode(), names.dead_letters, reason)
        async with self._redis.pipeline(transaction=True) as transaction:
            fields: dict[Any, Any] = {**entry[1], b"entry": entry[0], b"reason": reason}
            transaction.xadd(names.dead_letters, fields, maxlen=MAX_OUTPUT_ENTRIES, approximate=True)
            transaction.xack(names.source, names.group, entry[0])
            await transaction.execute()
        self.dead_lettered += 1


async def _wait_before_retry(stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(RETRY_DELAY_S):
            await stop.wait()
    except TimeoutError:
        pass


def _parse_article(fields: dict[bytes, bytes]) -> dict[str, Any] | str:
    """The article of an entry, or a sentence that says why it is invalid."""
    raw = fields.get(b"article")
    if raw is None:
        return "The entry has no field 'article'."
    try:
        article = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return f"The field 'article' is not JSON ({error})."
    return article if isinstance(article, dict) else "The field 'article' is not a JSON object."
