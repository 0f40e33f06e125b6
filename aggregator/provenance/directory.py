"""The stored report on outlets, written by the background process and read by all; selection from it.

{provenance}version    number of the report, which readers compare with the one they have decoded
{provenance}sources    format byte, then the compressed ``SourcesReport``
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from aggregator.errors import DamagedValue, NotFound
from aggregator.provenance.statistics import Family, SourcesReport, SourceStatistics
from aggregator.store.base import Put, Store, Transaction
from aggregator.store.decoding import corrupt_error, decode_value

VERSION_KEY = b"{provenance}version"
SOURCES_KEY = b"{provenance}sources"
FORMAT_BYTE = b"\x01"
EMPTY = SourcesReport(0, None, 0, 0, (), ())

_decoder = msgspec.msgpack.Decoder(SourcesReport)
SourceOrder = Literal["articles", "originals", "copies", "copied", "lag"]
# Ties stay in the order of the report, by number of articles.
_SORT_KEYS: Mapping[SourceOrder, Callable[[SourceStatistics], Any]] = {
    "articles": lambda source: -source.articles,
    "originals": lambda source: -source.originals / source.articles,
    "copies": lambda source: -source.copies / source.articles,
    "copied": lambda source: -source.copied,
    "lag": lambda source: (source.median_lag_ms is None, source.median_lag_ms),
}


class SourceDirectory:
    """Reads and writes the report; a reader decodes each version once. All methods raise StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: bytes | None = None
        self._report = EMPTY
        self._by_name: dict[str, SourceStatistics] = {}

    async def report(self) -> SourcesReport:
        """The newest report; an empty one, with ``computed_ms`` 0, before the first."""
        version = (await self._store.read([VERSION_KEY]))[0]
        if version != self._version:
            version, data = await self._store.read([VERSION_KEY, SOURCES_KEY])
            self._report = _decode(data)
            self._by_name = {source.name: source for source in self._report.sources}
            self._version = version
        return self._report

    async def get(self, name: str) -> tuple[SourceStatistics, Family | None]:
        """An outlet and its family. Raises NotFound."""
        report = await self.report()
        found = self._by_name.get(name)
        if found is None:
            raise NotFound(
                f"No statistics are known of the source {name[:200]!r}: names are exact, and a new source "
                "is counted within some minutes."
            )
        return found, report.families[found.family] if found.family is not None else None

    async def write(self, report: SourcesReport) -> None:
        """Replace the report; two writers at once are harmless."""
        data = FORMAT_BYTE + zlib.compress(msgspec.msgpack.encode(report), 6)
        writes = (Put(SOURCES_KEY, data), Put(VERSION_KEY, b"%d-%d" % (report.computed_ms, zlib.crc32(data))))
        await self._store.commit(Transaction((), writes))


def _decode(data: bytes | None) -> SourcesReport:
    """A damaged report, or one of another format, is an empty one: the next run replaces it."""
    if data is None or data[:1] != FORMAT_BYTE:
        return EMPTY
    try:
        return decode_value(_decoder, zlib.decompress(data[1:]), "The report on sources")
    except zlib.error as error:
        corrupt_error("The report on sources", error)
    except DamagedValue:
        pass
    return EMPTY


@dataclass(frozen=True, slots=True)
class Selection:
    """One page of outlets; ``total``: outlets that match, ``next_offset``: None on the last page."""

    sources: tuple[SourceStatistics, ...]
    total: int
    next_offset: int | None


def select(report: SourcesReport, text: str, order: SourceOrder, offset: int, limit: int) -> Selection:
    """The outlets whose name contains ``text``, ignoring case; "originals" and "copies" by their share."""
    wanted = text.strip().casefold()
    found = [source for source in report.sources if wanted in source.name.casefold()]
    found.sort(key=_SORT_KEYS[order])
    end = offset + limit
    return Selection(tuple(found[offset:end]), len(found), end if end < len(found) else None)


def families_among(report: SourcesReport, outlets: Collection[str]) -> list[tuple[str, ...]]:
    """The members among ``outlets`` of each family that has two or more of them."""
    present = [tuple(name for name in family.members if name in outlets) for family in report.families]
    return [members for members in present if len(members) > 1]
