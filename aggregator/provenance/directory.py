"""The stored report on outlets, written by the background process and read by all.

{provenance}version    number of the report, which readers compare with the one they have decoded
{provenance}sources    format byte, then the compressed ``SourcesReport``
"""

from __future__ import annotations

import zlib

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
        """Replace the report. Two writers at once are harmless: each report is complete."""
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
