"""Consumer of a Redis stream of articles that writes verdicts to another stream.

Each entry of the input stream has a field ``article`` with the JSON of one article. A worker of the consumer
group reads up to 64 entries, submits them as one batch, and stores the verdict of each entry and then
acknowledges it, in one script. An entry is therefore acknowledged only after its verdict was stored; the
entries of a worker that died are claimed by another one after a minute (a restarted worker first processes
its own). Submitting an article again returns the same verdict, so delivery at least once yields one verdict.

While Redis or the service is unavailable, the worker waits and loses nothing, for any time: neither
deliveries nor failures of the service count against an entry. Only two kinds of entries go to the stream
``<input>:dead``, with the reason: those that cannot be parsed or that the service rejects, and those at which
a service that had just reported ready failed ``MAX_FAILURES`` times when they were sent alone.
``aggregator work --dead-letters`` lists and replays them.

The streams of verdicts and dead letters are trimmed to about ``maxlen`` entries. Processed entries of the
input stream are removed only on request; see ``StreamWorker``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from redis import asyncio as driver
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from aggregator_client.client import Client
from aggregator_client.decision import TAKEN_DOWN, Decision
from aggregator_client.errors import ConfigurationError, Unavailable
from aggregator_client.stream_group import StreamEntry, StreamGroup, StreamNames, letter_fields

BLOCK_MS = 1_000
CLAIM_IDLE_MS = 60_000
MAX_FAILURES = 5
MAX_OUTPUT_ENTRIES = 100_000
RETRY_DELAY_S = 1.0
STOP_GRACE_S = 5.0
REPORT_INTERVAL_S = 60.0

# Failures that an article may have caused; the others are those of a service that is not there or busy.
_ARTICLE_FAILURES = frozenset({"timeout", "connection_lost", "server_error"})
# Errors of Redis that waiting does not end; all others, such as READONLY in a failover, are waited for.
_PERMANENT_ERRORS = ("WRONGTYPE", "unknown command", "CROSSSLOT")

log = logging.getLogger(__name__)


class StreamWorker:
    """One consumer of the group; ``client`` must fail closed.

    Args:
        redis: Server of the streams.
        client: Client of the service.
        streams: Names.
        idle_ms: Entries of other workers are claimed after this time without progress.
        maxlen: Approximate length of the streams of verdicts and dead letters.
        trim_source: Whether to remove the processed entries of the input stream when it has more than
            ``maxlen`` entries. Entries that a consumer group has not acknowledged stay.
        retry_delay_s: Pause between two attempts to reach Redis or the service, in seconds.
    """

    def __init__(
        self,
        redis: driver.Redis,
        client: Client,
        streams: StreamNames,
        *,
        idle_ms: int = CLAIM_IDLE_MS,
        maxlen: int = MAX_OUTPUT_ENTRIES,
        trim_source: bool = False,
        retry_delay_s: float = RETRY_DELAY_S,
    ) -> None:
        self._group = StreamGroup(redis, streams, idle_ms, maxlen)
        self._client, self._streams = client, streams
        self._trim_source, self._retry_delay_s = trim_source, retry_delay_s
        self._stopping = False
        self._waiting_since_s: float | None = None
        self._reported = (0, 0)
        self._next_report_s = time.monotonic() + REPORT_INTERVAL_S
        self.processed = self.dead_lettered = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Process entries until ``stop`` is set; waits while Redis or the service is unavailable.

        A batch that is being processed then gets ``STOP_GRACE_S``; what is left stays pending.
        Raises ConfigurationError if the stream cannot be read or the service refuses the key.
        """
        work = asyncio.create_task(self._run())
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._stopping = True
                await asyncio.wait((work,), timeout=STOP_GRACE_S)
        finally:
            stopped.cancel()
            work.cancel()
            await asyncio.wait((work,))
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._group.ensure()
                while not self._stopping:
                    await self.process_batch(BLOCK_MS)
                    self._resumed()
                    self._report()
            except (RedisError, OSError) as error:
                self._check_permanent(error)
                self._wait_for(f"Redis ({error})")
                self._group.reread_own_pending()
                await asyncio.sleep(self._retry_delay_s)

    async def drain(self) -> None:
        """Process entries until none is left; waits for the service, not for Redis.

        Raises Unavailable if Redis is unavailable, ConfigurationError as ``run``.
        """
        try:
            await self._group.ensure()
            while await self.process_batch():
                self._report()
        except (RedisError, OSError) as error:
            self._check_permanent(error)
            reason = str(error).rstrip(".")
            raise Unavailable(
                f"The stream {self._streams.source!r} is unavailable ({reason}); "
                "run the command again when its Redis answers. Nothing is lost."
            ) from None

    def _check_permanent(self, error: Exception) -> None:
        """Raise ConfigurationError for an error that waiting does not end."""
        if isinstance(error, NoPermissionError | AuthenticationError) or (
            isinstance(error, ResponseError) and any(name in str(error) for name in _PERMANENT_ERRORS)
        ):
            raise ConfigurationError(
                f"The streams of {self._streams.source!r} cannot be read and written: {error}."
            ) from None

    def _wait_for(self, what: str) -> None:
        """Log once that the worker waits."""
        if self._waiting_since_s is None:
            self._waiting_since_s = time.monotonic()
            log.warning("waiting for %s; entries stay pending, nothing is lost", what)

    def _resumed(self) -> None:
        if self._waiting_since_s is not None:
            log.warning("resumed after %.0f s", time.monotonic() - self._waiting_since_s)
            self._waiting_since_s = None

    def _report(self) -> None:
        """Log the counts once a minute if they changed."""
        if time.monotonic() < self._next_report_s or self._reported == (self.processed, self.dead_lettered):
            return
        self._next_report_s = time.monotonic() + REPORT_INTERVAL_S
        self._reported = self.processed, self.dead_lettered
        log.info("%s", self.summary())

    def summary(self) -> str:
        """Counts since the start, in one line."""
        counts = self._client.counts
        verdicts = ", ".join(f"{counts[name]} {name}" for name in ("new", "related", "duplicate"))
        return (
            f"{self.processed} entries processed ({verdicts} of which {counts['duplicate/kept']} kept), "
            f"{self.dead_lettered} moved to dead letters"
        )

    async def process_batch(self, block_ms: int | None = None) -> int:
        """Process one batch of own pending, idle or new entries, in this order; returns its size."""
        entries = (
            await self._group.read_own_pending()
            or await self._group.claim_idle()
            or await self._group.read_new(block_ms)
        )
        if entries:
            await self._process(entries)
            if self._trim_source:
                await self._group.trim()
        return len(entries)

    async def _process(self, entries: Sequence[StreamEntry]) -> None:
        decoded = [_parse_article(fields) for _, fields in entries]
        answers = iter(
            await self._decide([article for article in decoded if isinstance(article, dict)], entries)
        )
        for entry, parsed in zip(entries, decoded, strict=True):
            decision = next(answers) if isinstance(parsed, dict) else Decision("refused", problem=parsed)
            if decision.answer is None:
                kept = {} if decision.kind == TAKEN_DOWN else entry[1]
                await self._dead_letter((entry[0], kept), decision.problem)
            else:
                verdict = msgspec.json.encode(decision.answer)
                if await self._group.settle(
                    entry[0], self._streams.verdicts, {b"entry": entry[0], b"verdict": verdict}
                ):
                    self.processed += 1

    async def _decide(
        self, articles: Sequence[dict[str, Any]], entries: Sequence[StreamEntry]
    ) -> list[Decision]:
        """One Decision per article, with an answer or refused; waits until the service is ready."""
        for _ in range(2):
            try:
                return await self._client.submit_many(articles)
            except Unavailable as error:
                await self._wait_until_ready(error, entries)
        return [await self._decide_alone(article, entries) for article in articles]

    async def _decide_alone(self, article: dict[str, Any], entries: Sequence[StreamEntry]) -> Decision:
        """Decide on an article of a batch at which a ready service failed."""
        failures = 0
        while True:
            try:
                return (await self._client.submit_many([article]))[0]
            except Unavailable as error:
                failures += error.kind in _ARTICLE_FAILURES
                if failures == MAX_FAILURES:
                    problem = (
                        f"The service failed {failures} times at this article alone; the last error: {error}"
                    )
                    return Decision("refused", problem=problem, kind=error.kind)
                await self._wait_until_ready(error, entries)

    async def _wait_until_ready(self, error: Unavailable, entries: Sequence[StreamEntry]) -> None:
        """Return when the service is ready; keeps the claims of other workers off the entries."""
        self._wait_for(f"the service ({error})")
        while True:
            await asyncio.sleep(self._retry_delay_s)
            await self._group.keep([id_ for id_, _ in entries])
            if not await self._client.readiness_problem():
                self._resumed()
                return

    async def _dead_letter(self, entry: StreamEntry, reason: str) -> None:
        fields = letter_fields(entry, reason)
        if await self._group.settle(entry[0], self._streams.dead_letters, fields):
            name, said = self._streams.dead_letters, fields[b"reason"].decode()
            log.warning("entry %s moved to %s: %s", entry[0].decode(), name, said)
            self.dead_lettered += 1


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
