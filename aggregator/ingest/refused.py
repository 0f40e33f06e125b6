"""Refused articles by outlet and reason, newest first, until 7 days after the last: for who corrects it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from aggregator.errors import CommitConflict, Forbidden, InvalidInput, StoreUnavailable
from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS

MAX_ROWS, MAX_CHARS = 50, 200
RETENTION_MS = 7 * DAY_MS


class Refused(msgspec.Struct, frozen=True):
    """``count`` articles of an outlet; ``title`` (else URL or id) and ``at_ms``: of the newest."""

    source: str
    title: str
    reason: str
    at_ms: int
    count: int = 1


Rows = tuple[Refused, ...]
_FORMAT: ValueFormat[Rows] = ValueFormat(msgspec.msgpack.Decoder(Rows), "The list of refused articles", tuple)


class RefusedArticles:
    """The list in the store, the same for all processes."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._rows, self._clock = StoredValue(store, b"refused", _FORMAT, lambda _: RETENTION_MS), clock

    async def read(self) -> Rows:
        """One row per outlet and reason. Raises StoreUnavailable."""
        return await self._rows.read()

    async def add(self, refused: Iterable[tuple[bytes, object]]) -> None:
        """Add articles as they were sent, readable or not, if their errors are the sender's to correct."""
        wrong = [(sent, error) for sent, error in refused if isinstance(error, InvalidInput | Forbidden)]
        new = [Refused(*_names(sent), str(error)[:MAX_CHARS], self._clock()) for sent, error in wrong]
        if new:
            with suppress(StoreUnavailable, CommitConflict):  # the answer to the sender matters more
                await self._rows.edit(lambda rows: merged(rows, new))


def _names(sent: bytes) -> tuple[str, str]:
    found: object = None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = msgspec.json.decode(sent)
    of = found if isinstance(found, dict) else {}
    title = of.get("title") or of.get("url") or of.get("id") or ""
    return str(of.get("source") or "")[:MAX_CHARS], str(title)[:MAX_CHARS]


def merged(rows: Rows, new: Iterable[Refused]) -> Rows:
    """``rows`` with new ones, oldest first, which are counted with those of their outlet and reason."""
    found = {(row.source, row.reason): row for row in reversed(rows)}
    for row in new:
        known = found.pop((row.source, row.reason), None)
        total = row.count + (known.count if known else 0)
        found[row.source, row.reason] = msgspec.structs.replace(row, count=total)
    return tuple(reversed(found.values()))[:MAX_ROWS]
