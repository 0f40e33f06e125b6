"""Refused articles by outlet and reason, newest first, until accepted or 7 days after the last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

import msgspec

from aggregator.analysis.article_id import derive_id
from aggregator.analysis.text.normalization import source_key
from aggregator.domain import ArticleRecord
from aggregator.errors import CommitConflict, Forbidden, InvalidInput, StoreUnavailable
from aggregator.index import Index
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS

MAX_ROWS, MAX_CHARS, MAX_NAMED = 50, 200, 50


class Refused(msgspec.Struct, frozen=True):
    """``count`` articles of an outlet. ``newest``: ids ("" if unknown) and titles; ``at_ms``: the last."""

    source: str
    reason: str
    at_ms: int
    newest: tuple[tuple[str, str], ...] = (("", ""),)
    count: int = 1


Rows = tuple[Refused, ...]
_FORMAT: ValueFormat[Rows] = ValueFormat(msgspec.msgpack.Decoder(Rows), "The list of refused articles", tuple)


class RefusedArticles:
    """The list in the store, the same for all processes."""

    def __init__(self, index: Index, clock: Callable[[], int]) -> None:
        self._rows = StoredValue(index.store, b"refused", _FORMAT, lambda _: 7 * DAY_MS)
        self._articles, self._clock = index.articles, clock

    async def read(self) -> Rows:
        """One row per outlet and reason, without articles accepted since. Raises StoreUnavailable."""
        rows = await self._rows.read()
        ids = {id_ for row in rows for id_, _ in row.newest}
        stored = [each.record for each in (await self._articles.get_many(list(ids))).values()]
        return tuple(filter(None, (_without_accepted(row, stored) for row in rows)))

    async def add(self, refused: Iterable[tuple[bytes, object]]) -> None:
        """Add articles as they were sent, readable or not, if their errors are the sender's to correct."""
        wrong = [(sent, error) for sent, error in refused if isinstance(error, InvalidInput | Forbidden)]
        new = [_row(sent, str(error)[:MAX_CHARS], self._clock()) for sent, error in wrong]
        if new:
            with suppress(StoreUnavailable, CommitConflict):  # the answer to the sender matters more
                await self._rows.edit(lambda rows: merged(rows, new))


def _without_accepted(row: Refused, stored: Collection[ArticleRecord]) -> Refused | None:
    """None without any: those beyond ``newest`` are like them. Another outlet's article may have an id."""
    outlet = source_key(row.source)
    accepted = {r.id for r in stored if r.arrived_ms >= row.at_ms or source_key(r.source) == outlet}
    left = tuple(named for named in row.newest if named[0] not in accepted)
    count = row.count - len(row.newest) + len(left)
    return msgspec.structs.replace(row, newest=left, count=count) if left else None


def _row(sent: bytes, reason: str, now_ms: int) -> Refused:
    id_, of = "", {}
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError, InvalidInput):
        of = {name: str(value) for name, value in msgspec.json.decode(sent).items() if value}
        id_ = derive_id(of.get("id"), of.get("url", ""), of.get("title", ""), of.get("text", ""))
    title = of.get("title") or of.get("url") or of.get("id") or ""
    return Refused(of.get("source", "")[:MAX_CHARS], reason, now_ms, ((id_, title[:MAX_CHARS]),))


def merged(rows: Rows, new: Iterable[Refused]) -> Rows:
    """``rows`` with new ones, oldest first, which are counted with those of their outlet and reason."""
    found = {(row.source, row.reason): row for row in reversed(rows)}
    for row in new:
        known = found.pop((row.source, row.reason), msgspec.structs.replace(row, newest=(), count=0))
        newest, total = (*row.newest, *known.newest)[:MAX_NAMED], row.count + known.count
        found[row.source, row.reason] = msgspec.structs.replace(row, newest=newest, count=total)
    return tuple(reversed(found.values()))[:MAX_ROWS]
