"""Reading methods of the asyncio client: stored articles, related articles, search, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from aggregator_client.connection import Connection
from aggregator_client.decision import encode_article
from aggregator_client.errors import InvalidInput, Unavailable
from aggregator_client.wire import (
    ArticleOut,
    CopiesOut,
    EventDetailOut,
    EventsOut,
    ExplainOut,
    RelatedBatchOut,
    RelatedListOut,
    RelatedOut,
    RelatedToManyOut,
    SearchOut,
)

RELATED_IDS = 20  # lists of one request: 0.3 s of processor time of the service
T = TypeVar("T")


class Reader:
    """Queries over ``connection`` that change nothing.

    ``deadline_s``: time limit in seconds for each call from sending, retries included. Every method raises
    Unavailable without a usable answer in that time, ConfigurationError if the key is refused and
    InvalidInput for values that the service rejects.
    """

    def __init__(self, connection: Connection, deadline_s: float) -> None:
        self._connection, self._deadline_s = connection, deadline_s

    async def get(self, id: str) -> ArticleOut:
        """A stored article. Raises NotFound."""
        return await self._request_as(ArticleOut, "GET", path_of("articles", id))

    async def copies(self, id: str) -> CopiesOut:
        """All articles of its duplicate group, the canonical one first. Raises NotFound."""
        return await self._request_as(CopiesOut, "GET", path_of("articles", id) + "/copies")

    async def related(self, id: str = "", **parameters: Any) -> Sequence[RelatedOut]:
        """Articles related to a stored one; without an id, of top stories, then recent. Raises NotFound.

        ``parameters`` of all related articles, as in the HTTP API: limit, half_life, diversity, min_score,
        since, until, lang, and the lists source, exclude_source and exclude_ids. Empty: none that passes them
        reaches min_score, by default .78 and more with days apart (not with half_life).
        """
        path = path_of("articles", id) + "/related" if id else "/v1/related"
        return (await self._request_as(RelatedListOut, "GET", path + _query(parameters))).related

    async def related_to(self, article: Mapping[str, Any], **parameters: Any) -> Sequence[RelatedOut]:
        """Articles related to one that need not be stored."""
        path = "/v1/related" + _query(parameters)
        return (await self._request_as(RelatedListOut, "POST", path, encode_article(article))).related

    async def related_to_ids(
        self, ids: Sequence[str | Mapping[str, Any]] | Mapping[str, datetime], **parameters: Any
    ) -> RelatedToManyOut:
        """Articles for a reader of up to 50 stored ones; ``not_found``: the ids that are unknown or expired.

        ``ids`` with the times when they were read, or mappings of ``id`` and ``read_at``: the latest count
        most.
        """
        check_is_list("ids", ids)
        read = [{"id": id, "read_at": ids[id]} for id in ids] if isinstance(ids, Mapping) else ids
        body = msgspec.json.encode({"ids": list(read), **parameters})
        return await self._request_as(RelatedToManyOut, "POST", "/v1/related", body)

    async def related_to_each(self, ids: Sequence[str], **parameters: Any) -> RelatedBatchOut:
        """A list for each of any number of stored articles, ``RELATED_IDS`` per request and deadline."""
        check_is_list("ids", ids)
        distinct, found = list(dict.fromkeys(ids)), RelatedBatchOut([], [])
        for start in range(0, max(1, len(distinct)), RELATED_IDS):
            body = msgspec.json.encode({"ids": distinct[start : start + RELATED_IDS], **parameters})
            part = await self._request_as(RelatedBatchOut, "POST", "/v1/related/batch", body)
            found = RelatedBatchOut([*found.lists, *part.lists], [*found.not_found, *part.not_found])
        return found

    async def explain(self, a: str, b: str, *, policy: str = "") -> ExplainOut:
        """Why two stored articles are duplicates or related under a policy profile. Raises NotFound."""
        body = {"a": a, "b": b} | ({"policy": policy} if policy else {})
        return await self._request_as(ExplainOut, "POST", "/v1/explain", msgspec.json.encode(body))

    async def events(self, query: str = "") -> EventsOut:
        """Events; ``query``: query string of /v1/events, e.g. ``"status=breaking&min_size=20"``."""
        return await self._request_as(EventsOut, "GET", "/v1/events" + ("?" + query if query else ""))

    async def event(self, id: str) -> EventDetailOut:
        """One event with its timeline and items. Raises NotFound."""
        return await self._request_as(EventDetailOut, "GET", path_of("events", id))

    async def search(self, query: str, *, limit: int = 20) -> SearchOut:
        """Articles and events with these words, or the article with this id or URL."""
        path = "/v1/search?" + urlencode({"q": query, "limit": limit})
        return await self._request_as(SearchOut, "GET", path)

    async def _request_as(self, kind: type[T], method: str, path: str, body: bytes | None = None) -> T:
        answer = await self._connection.request(method, path, body, self._deadline_s)
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.MsgspecError as error:
            raise Unavailable(
                f"{self._connection.url}{path} sent an unexpected answer ({error}).", "not_an_aggregator"
            ) from None


def path_of(kind: str, id: str) -> str:
    """Path of a stored article or event. Raises InvalidInput for an empty id, which is no path of its own."""
    if not id:
        raise InvalidInput("id: expected an id, found an empty one.", field="id")
    return f"/v1/{kind}/{quote(id, safe='')}"


def check_is_list(name: str, values: object, single: tuple[type, ...] = (str, bytes)) -> None:
    """Raise TypeError for a single value, whose characters or keys would be taken for the values."""
    if isinstance(values, single):
        raise TypeError(f"{name}: expected a list, found one {type(values).__name__}; put it in a list.")


def _query(parameters: Mapping[str, Any]) -> str:
    return "?" + urlencode(parameters, doseq=True) if parameters else ""
