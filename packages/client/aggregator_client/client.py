"""Asyncio client: one call before a database insert, with a deadline.

Every call with an article is idempotent by the article's id (given, or derived from its URL or content), so
the client retries within its deadline. Without a verdict after that it **fails open** (the default: verdict
"unknown", and the crawler continues) or **fails closed** (raises ConfigurationError if the key is refused,
else Unavailable). An article that the service rejects is "refused" in both, to be kept unless its text was
taken down.

One article and a batch follow one rule. Articles that were rejected, or got no verdict while failing open,
are counted and logged; ``ready`` checks the service and the key before a crawl.

An article with the verdict "new" is reserved: later copies are duplicates of it. When the crawler's own
insert fails, it submits the article again later (the same id gets "new" again) or removes the reservation
with ``undo``; ``reservation`` does that automatically.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence, Sized
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal
from urllib.parse import quote

from aggregator_client.batches import submit_lines
from aggregator_client.connection import Connection
from aggregator_client.dates import time_zone
from aggregator_client.decision import (
    FORGOTTEN,
    NOT_AN_AGGREGATOR,
    TAKEN_DOWN,
    Decision,
    decode_decision,
    encode_article,
    rejection,
)
from aggregator_client.errors import ClientError, ConfigurationError, InvalidInput, NotFound, Unavailable
from aggregator_client.outcomes import Outcomes
from aggregator_client.reading import Reader, check_is_list, path_of

DEADLINE_S = 2.0
BATCH_DEADLINE_S = 60.0
BATCH_LINES = 256
CONCURRENCY = 8

log = logging.getLogger(__name__)


class Client(Reader, AbstractAsyncContextManager["Client"]):
    """A connection pool to one service. Use as ``async with Client(url) as client``.

    The methods that read are those of ``Reader``.

    Args:
        url: Base URL of the service.
        key: API key, if the service requires one.
        deadline_s: Time limit in seconds for one article from when it is sent, retries included. Answers by
            which a busy service asks for a later attempt extend it, by 10 s in total.
        batch_deadline_s: Time limit in seconds for each batch of 256 articles; ``deadline_s`` for one that
            cannot be sent, since nothing answers at ``url`` or TLS fails.
        on_failure: "open" (the verdict is "unknown") or "closed" (an exception) without an answer.
        concurrency: Maximum number of requests in flight; further calls wait for a slot.
        outcomes: Counts the articles; by default a new one.
        backfill: All articles are an archive or a backlog: they get verdicts and fire no events.
        timezone: Where dates without an offset are local, such as "Europe/Berlin"; without it they are not
            read. ``published_at`` may be RFC 3339, RFC 2822 or Unix time; what cannot be read for certain is
            left out and counted as "unread_date".

    Raises ConfigurationError for an invalid argument.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: str = "",
        deadline_s: float = DEADLINE_S,
        batch_deadline_s: float = BATCH_DEADLINE_S,
        on_failure: Literal["open", "closed"] = "open",
        concurrency: int = CONCURRENCY,
        outcomes: Outcomes | None = None,
        backfill: bool = False,
        timezone: str = "",
    ) -> None:
        types = {"url": str, "key": str, "concurrency": int, "backfill": bool, "timezone": str}
        given = url, key, concurrency, backfill, timezone
        for (name, type_), value in zip(types.items(), given, strict=True):
            if not isinstance(value, type_):  # not shown, as it may be the key
                raise ConfigurationError(f"{name}: expected {type_.__name__}, found {type(value).__name__}.")
        if on_failure not in ("open", "closed"):
            raise ConfigurationError(f"on_failure: expected 'open' or 'closed', found {on_failure!r}.")
        if concurrency < 1:
            raise ConfigurationError(f"concurrency: expected 1 or more, found {concurrency}.")
        for name, limit_s in (("deadline_s", deadline_s), ("batch_deadline_s", batch_deadline_s)):
            if not isinstance(limit_s, int | float) or not limit_s > 0:
                raise ConfigurationError(f"{name}: expected a number above 0, found {limit_s!r}.")
        try:
            self._zone = time_zone(timezone) if timezone else None
        except ValueError as error:
            raise ConfigurationError(f"timezone: {error}") from None
        super().__init__(Connection(url, key, concurrency), deadline_s)
        self._batch_deadline_s = batch_deadline_s
        self._fails_open = on_failure == "open"
        self._query = "?backfill=true" if backfill else ""
        # Failing closed, the caller gets an exception for each article, so there is nothing to log.
        self._outcomes = outcomes or Outcomes(effect="passed unchecked" if self._fails_open else "")

    async def __aexit__(self, *details: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, and log how many articles passed unchecked. Idempotent.

        A later call raises RuntimeError.
        """
        await self._connection.close()
        self._outcomes.close()

    @property
    def counts(self) -> Counter[str]:
        """Number of articles by outcome, such as "duplicate" or "unchecked/timeout"."""
        return self._outcomes.counts

    # -- before an insert ----------------------------------------------------------------------

    async def submit(self, article: Mapping[str, Any]) -> Decision:
        """Check and store one article, a mapping of ``decision.ARTICLE_FIELDS``: at least a title or a text.

        Raises, failing closed, Unavailable and ConfigurationError.
        """
        return await self._decide(article, "/v1/articles" + self._query)

    async def check(self, article: Mapping[str, Any]) -> Decision:
        """As ``submit``, without storing: of two copies that are both not stored, both are new."""
        return await self._decide(article, "/v1/articles?dry_run=true")

    async def submit_many(
        self, articles: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[Decision]:
        """One Decision per article, in order. Errors: as of ``submit``, with the ``decisions`` so far."""
        check_is_list("articles", articles, (Mapping, str, bytes))
        decisions: list[Decision] = []
        batch: list[bytes | Decision] = []
        try:
            for article in articles:
                try:
                    batch.append(self._encode(article))
                except InvalidInput as error:
                    batch.append(rejection(error))
                if len(batch) == BATCH_LINES:
                    await self._submit_batch(batch, dry_run, decisions)
                    batch = []
            if batch:
                await self._submit_batch(batch, dry_run, decisions)
        except (Unavailable, ConfigurationError) as error:
            for _ in range(len(articles) - len(decisions) if isinstance(articles, Sized) else 0):
                self._count(_without_verdict(error))  # not sent
            raise
        return decisions

    async def undo(self, decision: Decision) -> bool:
        """Remove what the call stored that made this decision; False if the decision is not ``stored``.

        After a failed insert, copies by other outlets are then not duplicates of an article that the crawler
        does not have; those that were answered "duplicate" meanwhile leave, too: submit them again. What was
        stored before stays, as the call updated it: submit your version again. Raises, failing open as well,
        Unavailable and ConfigurationError; then the article is still reserved.
        """
        if not decision.stored or decision.id is None:
            return False
        return await self._delete(decision.id, "?undo=true")

    @asynccontextmanager
    async def reservation(self, article: Mapping[str, Any]) -> AsyncIterator[Decision]:
        """``submit`` the article, run the block, and ``release`` it if the block raises.

        async with client.reservation(article) as decision:
            if decision.keep:
                await database.insert(article)
        """
        decision = await self.submit(article)
        try:
            yield decision
        except BaseException:
            await asyncio.shield(self.release(decision))
            raise

    async def release(self, decision: Decision) -> bool:
        """``undo`` that raises no ClientError: one is logged and counted as "undo_failed"."""
        try:
            return await self.undo(decision)
        except ClientError as error:
            self._outcomes.add_undo_failure(decision.id, error)
            return False

    async def delete(self, id: str, *, undo: bool = False, take_down: bool | None = None) -> bool:
        """Delete an article; False if it is not stored. Later copies are duplicates of its first copy.

        ``undo``: for one that your database does not have; copies not to ``keep`` leave, too (see ``undo``).
        ``take_down``, for editors: True refuses its text from now on, False lifts that and deletes nothing.
        """
        options = {"undo": undo or None, "take_down": take_down}
        given = [f"{name}={str(value).lower()}" for name, value in options.items() if value is not None]
        return await self._delete(id, "?" + "&".join(given))

    async def ready(self) -> bool:
        """Whether the service is ready and accepts the key; if not, logs the reason in one line."""
        problem = await self.readiness_problem()
        if problem:
            log.error("%s", problem)
        return not problem

    async def readiness_problem(self, deadline_s: float | None = None, *, policy: str = "") -> str:
        """Why articles would get no verdict now, in one sentence; empty if they would.

        ``deadline_s``: time limit in seconds, by default that of an article. Raises ConfigurationError if the
        service has no profile ``policy``.
        """
        limit_s = self._deadline_s if deadline_s is None else deadline_s
        try:
            try:
                await self._connection.request("GET", "/readyz", None, limit_s)
            except (Unavailable, ConfigurationError) as error:  # a proxy may hide it with 404 or 403
                if isinstance(error, Unavailable) and error.kind != "not_an_aggregator":
                    raise
            # An empty batch: needs the key and permission of a crawler, and has no effect.
            path = "/v1/articles/batch?dry_run=true" + (policy and f"&policy={quote(policy, safe='')}")
            answer = await self._connection.request("POST", path, b"", limit_s, ndjson=True)
            problem = NOT_AN_AGGREGATOR if answer.body else ""
        except (Unavailable, ConfigurationError) as error:
            problem = str(error)
        except (NotFound, InvalidInput) as error:
            if policy and isinstance(error, InvalidInput):
                raise ConfigurationError(str(error)) from None
            problem = NOT_AN_AGGREGATOR
        return f"The service is not ready: {problem}" if problem else ""

    # -- internals -----------------------------------------------------------------------------

    async def _delete(self, id: str, query: str) -> bool:
        try:
            await self._connection.request("DELETE", path_of("articles", id) + query, None, self._deadline_s)
        except NotFound:
            return False
        return True

    def _encode(self, article: Mapping[str, Any]) -> bytes:
        return encode_article(article, self._zone, self._outcomes.add_unread_date)

    async def _decide(self, article: Mapping[str, Any], path: str) -> Decision:
        try:
            answer = await self._connection.request("POST", path, self._encode(article), self._deadline_s)
            decision = decode_decision(answer.body)
        except (InvalidInput, NotFound) as error:
            decision = rejection(error)
        except (Unavailable, ConfigurationError) as error:
            decision = _without_verdict(error)
            if not self._fails_open:
                self._count(decision)
                raise
        self._count(decision)
        return decision

    def _count(self, decision: Decision) -> None:
        if decision.answer is not None and decision.answer.unchecked:
            self._outcomes.add_unchecked("forgotten", FORGOTTEN)
        elif decision.answer is not None or decision.kind == TAKEN_DOWN:
            problems = decision.answer.problems if decision.answer else ()
            self._outcomes.add_checked(decision.kind or decision.verdict, problems, keep=decision.keep)
        elif decision.verdict == "refused":
            self._outcomes.add_rejected(decision.problem)
        else:
            self._outcomes.add_unchecked(decision.kind, decision.problem)

    async def _submit_batch(
        self, rows: Sequence[bytes | Decision], dry_run: bool, decisions: list[Decision]
    ) -> None:
        """Append the decisions on a batch. Raises, failing closed, the first reason why one is missing."""
        lines = [row for row in rows if isinstance(row, bytes)]
        query = "?dry_run=true" if dry_run else self._query
        limits_s = self._batch_deadline_s, self._deadline_s
        results = iter(await submit_lines(self._connection, lines, query, *limits_s))
        error: Unavailable | ConfigurationError | None = None
        for row in rows:
            result = row if isinstance(row, Decision) else next(results)
            if not isinstance(result, Decision):
                error, result = error or result, _without_verdict(result)
            self._count(result)
            decisions.append(result)
        if error is not None and not self._fails_open:
            error.decisions = decisions
            raise error


def _without_verdict(error: Unavailable | ConfigurationError) -> Decision:
    kind = error.kind if isinstance(error, Unavailable) else "access_denied"
    return Decision("unknown", problem=str(error), kind=kind)
