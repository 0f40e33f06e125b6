"""The asyncio client: one call before an insert, bounded by a deadline.

Every call that takes an article is idempotent by the article's id (given, or derived from its address or
content), so the client repeats what failed as long as its deadline allows. What happens when the deadline
passes is the caller's choice: **fail open** (the default) answers "unknown" and the crawler goes on as if
it had never asked; **fail closed** raises Unavailable.

An article that was answered "new" is reserved: later copies are duplicates of it. When the crawler's own
insert fails, it either sends the article again later (the same id answers "new" again) or takes the
reservation back with ``undo``; ``reserving`` does that by itself.
"""

from __future__ import annotations

import asyncio
import time
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
INITIAL_BACKOFF_S, MAX_BACKOFF_S = 0.02, 2.0
RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})

T = TypeVar("T")


class Client:
    """A connection pool to one service. Use as ``async with Client(url) as client``.

    ``deadline_s``: for one article, retries included. ``batch_deadline_s``: for each batch of 256.
    ``on_failure``: "open" or "closed" (above). ``key``: an access key, where the service asks for one.
    Raises ConfigurationError for an address that is none.
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
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"{url!r} is not an http:// or https:// address.")
        if on_failure not in ("open", "closed"):
            raise ConfigurationError(f"on_failure: expected 'open' or 'closed', found {on_failure!r}.")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
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
        """Give the connections back. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    # -- before an insert ----------------------------------------------------------------------

    async def submit(self, article: Mapping[str, Any]) -> Decision:
        """Check one article and reserve it. Raises BadInput when it is refused; Unavailable if failing closed."""
        return await self._decide(article, "/v1/articles")

    async def check(self, article: Mapping[str, Any]) -> Decision:
        """As ``submit``, and store nothing."""
        return await self._decide(article, "/v1/articles?dry_run=true")

    async def submit_many(
        self, articles: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[Decision]:
        """One Decision per article, in order; a refused one costs the others nothing ("refused")."""
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
        """Take back the reservation that ``submit`` made; False when it made none (a repeat, a duplicate's copy).

        So an insert that failed does not make other outlets' copies duplicates of nothing. Only what this
        very call stored is taken back: an article that was there before stays.
        """
        if not decision.stored or decision.id is None:
            return False
        return await self.delete(decision.id)

    @asynccontextmanager
    async def reservation(self, article: Mapping[str, Any]) -> AsyncIterator[Decision]:
        """``submit``, then your insert inside the block; when that raises, the reservation is taken back.

        async with client.reserving(article) as decision:
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
        """Take an article down; False when there is none."""
        try:
            await self._request("DELETE", f"/v1/articles/{quote(id, safe='')}", None, self._deadline_s)
        except NotFound:
            return False
        return True

    async def copies(self, id: str) -> CopiesOut:
        """All articles of its group, the first one in front. Raises NotFound."""
        return await self._request_as(CopiesOut, "GET", f"/v1/articles/{quote(id, safe='')}/copies")

    async def related(self, id: str, *, limit: int = 10) -> Sequence[RelatedOut]:
        """What else is about this. Raises NotFound."""
        path = f"/v1/articles/{quote(id, safe='')}/related?limit={limit}"
        return (await self._request_as(RelatedListOut, "GET", path)).related

    async def related_to(self, article: Mapping[str, Any], *, limit: int = 10) -> Sequence[RelatedOut]:
        """What is about the same as an article that need not be stored."""
        path = f"/v1/related?limit={limit}"
        return (await self._request_as(RelatedListOut, "POST", path, encode_article(article))).related

    async def explain(self, a: str, b: str) -> ExplainOut:
        """Why two stored articles are copies, or not. Raises NotFound."""
        return await self._request_as(
            ExplainOut, "POST", "/v1/explain", msgspec.json.encode({"a": a, "b": b})
        )

    async def events(self, query: str = "") -> EventsOut:
        """Events, with the query string of /v1/events, e.g. ``"status=breaking&min_size=20"``."""
        return await self._request_as(EventsOut, "GET", "/v1/events" + ("?" + query if query else ""))

    async def event(self, id: str) -> EventDetailOut:
        """One event's special report. Raises NotFound."""
        return await self._request_as(EventDetailOut, "GET", f"/v1/events/{quote(id, safe='')}")

    async def ready(self) -> bool:
        """Whether the service can answer now."""
        try:
            await self._request("GET", "/readyz", None, self._deadline_s)
        except (Unavailable, NotFound, InvalidInput):
            return False
        return True

    # -- inside --------------------------------------------------------------------------------

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
        """Each line's Decision; lines that were told "later" are sent again until the deadline."""
        deadline = time.monotonic() + self._batch_deadline_s
        path = "/v1/articles/batch" + ("?dry_run=true" if dry_run else "")
        pause_s = INITIAL_BACKOFF_S
        while True:
            left_s = max(0.001, deadline - time.monotonic())
            try:
                _, data = await self._request("POST", path, b"\n".join(lines) + b"\n", left_s, ndjson=True)
                return _line_decisions(data, len(lines))
            except Unavailable as error:
                if time.monotonic() + pause_s < deadline:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, MAX_BACKOFF_S)
                    continue
                if not self._fails_open:
                    raise
                return [Decision("unknown", problem=str(error))] * len(lines)

    async def _request_as(self, kind: type[T], method: str, path: str, body: bytes | None = None) -> T:
        _, data = await self._request(method, path, body, self._deadline_s)
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{self._url}{path} answered something else than expected ({error}).") from None

    async def _request(
        self, method: str, path: str, body: bytes | None, deadline_s: float, *, ndjson: bool = False
    ) -> tuple[int, bytes]:
        """Status and body of a success. Raises BadInput, NotFound, ConfigurationError, Unavailable."""
        deadline = time.monotonic() + deadline_s
        pause_s, why = INITIAL_BACKOFF_S, ""
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left_s):
                    status, data, after_s = await self._request_once(method, path, body, ndjson)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why, after_s = str(error) or type(error).__name__, 0.0
            else:
                if status not in RETRYABLE_STATUSES:
                    return _check_status(status, data)
                why = problem_detail(data, status)
            wait_s = max(pause_s, after_s)
            if time.monotonic() + wait_s >= deadline:
                break
            await asyncio.sleep(wait_s)
            pause_s = min(2 * pause_s, MAX_BACKOFF_S)
        raise Unavailable(f"{self._url} gave no answer within {deadline_s:g} s ({why or 'time is over'}).")

    async def _request_once(
        self, method: str, path: str, body: bytes | None, ndjson: bool
    ) -> tuple[int, bytes, float]:
        """One attempt: status, body, and how many seconds the service wants us to wait."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        headers = {} if body is None else {"Content-Type": NDJSON if ndjson else JSON}
        async with self._session.request(method, self._url + path, data=body, headers=headers) as response:
            after = response.headers.get("Retry-After", "")
            return response.status, await response.read(), float(after) if after.isdigit() else 0.0


JSON, NDJSON = "application/json", "application/x-ndjson"


def _check_status(status: int, data: bytes) -> tuple[int, bytes]:
    """The answer when it is a success. Raises what it says otherwise."""
    if status < 300:
        return status, data
    detail = problem_detail(data, status)
    if status in (404, 410):
        raise NotFound(detail)
    if status in (401, 403):
        raise ConfigurationError(f"The service does not let us in: {detail}")
    if status < 500:
        raise InvalidInput(detail)
    raise Unavailable(detail)


def _line_decisions(data: bytes, count: int) -> list[Decision]:
    """One per line. Raises Unavailable when the answer was cut off or a line says "later"."""
    lines = data.splitlines()
    if len(lines) != count:
        raise Unavailable(f"The service answered {len(lines)} of {count} lines.")
    return [decode_line_decision(line) for line in lines]
