"""Asyncio client: one call before a database insert, with a deadline.

Every call with an article is idempotent by the article's id (given, or derived from its URL or content), so
the client retries within its deadline. After the deadline it **fails open** (the default: verdict "unknown",
and the crawler continues) or **fails closed** (raises Unavailable).

An article with the verdict "new" is reserved: later copies are duplicates of it. When the crawler's own
insert fails, it submits the article again later (the same id gets "new" again) or removes the reservation
with ``undo``; ``reservation`` does that automatically.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from aggregator.clients.decision import (
    Decision,
    Unavailable,
    decode_decision,
    decode_line_decision,
    encode_article,
    problem_detail,
)
from aggregator.clients.transport import (
    JSON_TYPE,
    NDJSON_TYPE,
    authorization_headers,
    check_http_url,
    connection_error_reason,
    retry,
)
from aggregator.contract.responses import (
    ArticleOut,
    CopiesOut,
    EventDetailOut,
    EventsOut,
    ExplainOut,
    RelatedListOut,
    RelatedOut,
)
from aggregator.errors import ConfigurationError, InvalidInput, NotFound

DEADLINE_S = 0.3
BATCH_DEADLINE_S = 60.0
BATCH_LINES = 256
BACKOFF = {"initial_backoff_s": 0.02, "max_backoff_s": 2.0}
RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})

T = TypeVar("T")


class Client:
    """A connection pool to one service. Use as ``async with Client(url) as client``.

    Args:
        url: Base URL of the service.
        key: API key, if the service requires one.
        deadline_s: Time limit for one article, retries included.
        batch_deadline_s: Time limit for each batch of ``BATCH_LINES`` articles.
        on_failure: "open" or "closed", see the module.
        connections: Maximum number of open connections.

    Raises ConfigurationError for an invalid ``url`` or ``on_failure``.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: str = "",
        deadline_s: float = DEADLINE_S,
        batch_deadline_s: float = BATCH_DEADLINE_S,
        on_failure: Literal["open", "closed"] = "open",
        connections: int = 32,
    ) -> None:
        self._url = check_http_url(url)
        if on_failure not in ("open", "closed"):
            raise ConfigurationError(f"on_failure: expected 'open' or 'closed', found {on_failure!r}.")
        self._headers = authorization_headers(key)
        self._deadline_s, self._batch_deadline_s = deadline_s, batch_deadline_s
        self._fails_open = on_failure == "open"
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    # -- before an insert ----------------------------------------------------------------------

    async def submit(self, article: Mapping[str, Any]) -> Decision:
        """Check and store one article. Raises InvalidInput if rejected, Unavailable if failing closed."""
        return await self._decide(article, "/v1/articles")

    async def check(self, article: Mapping[str, Any]) -> Decision:
        """As ``submit``, without storing."""
        return await self._decide(article, "/v1/articles?dry_run=true")

    async def submit_many(
        self, articles: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[Decision]:
        """One Decision per article, in order; a rejected article gets the verdict "refused"."""
        decisions: list[Decision] = []
        batch: list[bytes | Decision] = []
        for article in articles:
            try:
                batch.append(encode_article(article))
            except InvalidInput as error:
                batch.append(Decision("refused", problem=str(error)))
            if len(batch) == BATCH_LINES:
                decisions += await self._submit_batch(batch, dry_run)
                batch = []
        return decisions + (await self._submit_batch(batch, dry_run) if batch else [])

    async def undo(self, decision: Decision) -> bool:
        """Remove the reservation that ``submit`` made; False if it made none (a repeated or dry-run call).

        After a failed insert, copies by other outlets are then not duplicates of an article that the crawler
        does not have. An article that was stored before that call stays.
        """
        if not decision.stored or decision.id is None:
            return False
        return await self.delete(decision.id)

    @asynccontextmanager
    async def reservation(self, article: Mapping[str, Any]) -> AsyncIterator[Decision]:
        """``submit`` the article, run the block, and ``undo`` if the block raises.

        async with client.reservation(article) as decision:
            if decision.keep:
                await database.insert(article)
        """
        decision = await self.submit(article)
        try:
            yield decision
        except BaseException:
            await asyncio.shield(self.undo(decision))
            raise

    # -- reading -------------------------------------------------------------------------------

    async def get(self, id: str) -> ArticleOut:
        """A stored article. Raises NotFound."""
        return await self._request_as(ArticleOut, "GET", f"/v1/articles/{quote(id, safe='')}")

    async def delete(self, id: str) -> bool:
        """Delete an article; False if it is not stored."""
        try:
            await self._request("DELETE", f"/v1/articles/{quote(id, safe='')}", None, self._deadline_s)
        except NotFound:
            return False
        return True

    async def copies(self, id: str) -> CopiesOut:
        """All articles of its duplicate group, the canonical one first. Raises NotFound."""
        return await self._request_as(CopiesOut, "GET", f"/v1/articles/{quote(id, safe='')}/copies")

    async def related(self, id: str, *, limit: int = 10) -> Sequence[RelatedOut]:
        """Articles related to a stored one. Raises NotFound."""
        path = f"/v1/articles/{quote(id, safe='')}/related?limit={limit}"
        return (await self._request_as(RelatedListOut, "GET", path)).related

    async def related_to(self, article: Mapping[str, Any], *, limit: int = 10) -> Sequence[RelatedOut]:
        """Articles related to one that need not be stored."""
        path = f"/v1/related?limit={limit}"
        return (await self._request_as(RelatedListOut, "POST", path, encode_article(article))).related

    async def explain(self, a: str, b: str) -> ExplainOut:
        """Why two stored articles are duplicates, or not. Raises NotFound."""
        return await self._request_as(
            ExplainOut, "POST", "/v1/explain", msgspec.json.encode({"a": a, "b": b})
        )

    async def events(self, query: str = "") -> EventsOut:
        """Events; ``query``: query string of /v1/events, e.g. ``"status=breaking&min_size=20"``."""
        return await self._request_as(EventsOut, "GET", "/v1/events" + ("?" + query if query else ""))

    async def event(self, id: str) -> EventDetailOut:
        """One event with its timeline and items. Raises NotFound."""
        return await self._request_as(EventDetailOut, "GET", f"/v1/events/{quote(id, safe='')}")

    async def ready(self) -> bool:
        """Whether the service is ready (GET /readyz)."""
        try:
            await self._request("GET", "/readyz", None, self._deadline_s)
        except (Unavailable, NotFound, InvalidInput):
            return False
        return True

    # -- internals -----------------------------------------------------------------------------

    async def _decide(self, article: Mapping[str, Any], path: str) -> Decision:
        try:
            status, data = await self._request("POST", path, encode_article(article), self._deadline_s)
            return decode_decision(data, stored=status == 201)
        except Unavailable as error:
            if not self._fails_open:
                raise
            return Decision("unknown", problem=str(error))

    async def _submit_batch(self, rows: Sequence[bytes | Decision], dry_run: bool) -> list[Decision]:
        lines = [row for row in rows if isinstance(row, bytes)]
        answers = iter(await self._post_lines(lines, dry_run)) if lines else iter(())
        return [row if isinstance(row, Decision) else next(answers) for row in rows]

    async def _post_lines(self, lines: Sequence[bytes], dry_run: bool) -> list[Decision]:
        """Each line's Decision; a batch of which a line must be retried is sent again until the deadline."""
        path = "/v1/articles/batch" + ("?dry_run=true" if dry_run else "")
        body = b"\n".join(lines) + b"\n"

        async def attempt(left_s: float) -> list[Decision]:
            _, data = await self._request("POST", path, body, left_s, ndjson=True)
            return _line_decisions(data, len(lines))

        try:
            return await retry(attempt, self._batch_deadline_s, retry_on=Unavailable, **BACKOFF)
        except Unavailable as error:
            if not self._fails_open:
                raise
            return [Decision("unknown", problem=str(error))] * len(lines)

    async def _request_as(self, kind: type[T], method: str, path: str, body: bytes | None = None) -> T:
        _, data = await self._request(method, path, body, self._deadline_s)
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{self._url}{path} sent an unexpected answer ({error}).") from None

    async def _request(
        self, method: str, path: str, body: bytes | None, deadline_s: float, *, ndjson: bool = False
    ) -> tuple[int, bytes]:
        """Status and body of a success. Raises InvalidInput, NotFound, ConfigurationError, Unavailable."""

        async def attempt(left_s: float) -> tuple[int, bytes]:
            try:
                async with asyncio.timeout(left_s):
                    status, data, after_s = await self._request_once(method, path, body, ndjson)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _RetryableError(connection_error_reason(error)) from None
            if status in RETRYABLE_STATUSES:
                raise _RetryableError(problem_detail(data, status), after_s)
            return status, data

        try:
            status, data = await retry(attempt, deadline_s, retry_on=_RetryableError, **BACKOFF)
        except _RetryableError as error:
            reason = str(error).rstrip(".")
            raise Unavailable(f"{self._url} gave no answer within {deadline_s:g} s ({reason}).") from None
        return _check_status(status, data)

    async def _request_once(
        self, method: str, path: str, body: bytes | None, ndjson: bool
    ) -> tuple[int, bytes, float]:
        """One attempt: status, body, and Retry-After in seconds (0 if absent)."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        headers = {} if body is None else {"Content-Type": NDJSON_TYPE if ndjson else JSON_TYPE}
        async with self._session.request(method, self._url + path, data=body, headers=headers) as response:
            after = response.headers.get("Retry-After", "")
            return response.status, await response.read(), float(after) if after.isdigit() else 0.0


class _RetryableError(Exception):
    """An attempt without an answer that counts; the next one may follow after ``min_pause_s``."""

    def __init__(self, reason: str, min_pause_s: float = 0.0) -> None:
        super().__init__(reason)
        self.min_pause_s = min_pause_s


def _check_status(status: int, data: bytes) -> tuple[int, bytes]:
    """The arguments, for a success. Raises the error that matches the status otherwise."""
    if status < 300:
        return status, data
    detail = problem_detail(data, status)
    if status in (404, 410):
        raise NotFound(detail)
    if status in (401, 403):
        raise ConfigurationError(f"The service denies access: {detail}")
    if status < 500:
        raise InvalidInput(detail)
    raise Unavailable(detail)


def _line_decisions(data: bytes, count: int) -> list[Decision]:
    """One per line. Raises Unavailable if the answer is incomplete or a line must be retried."""
    lines = data.splitlines()
    if len(lines) != count:
        raise Unavailable(f"The service answered {len(lines)} of {count} lines.")
    return [decode_line_decision(line) for line in lines]
