"""Article records and texts, stored under their article numbers outside the segments."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import distinct
from aggregator.domain import ArticleRecord
from aggregator.index import keys
from aggregator.index.codec.record_codec import decode_record, encode_record
from aggregator.store.base import Put, Store


class Records:
    """Reads, writes and deletes records and compressed texts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, spaces_by_number: Mapping[int, str]) -> dict[int, ArticleRecord]:
        """The records of article numbers, given with their spaces; absent records are left out."""
        if not spaces_by_number:
            return {}
        values = await self._store.read([keys.record(space, n) for n, space in spaces_by_number.items()])
        return {
            number: decode_record(data, space, number)
            for (number, space), data in zip(spaces_by_number.items(), values, strict=True)
            if data is not None
        }

    async def stored_numbers(self, space: str) -> npt.NDArray[np.uint64]:
        """The article numbers of all records of a space, ascending. Scans the whole store."""
        prefix, numbers = keys.record_prefix(space), array("Q")
        async for found in self._store.scan_batches(prefix):
            numbers.extend(int(key[len(prefix) :], 16) for key in found)
        return distinct(np.frombuffer(numbers, np.uint64))

    async def read_text(self, number: int) -> bytes | None:
        """The compressed text of a version; None if texts are not stored."""
        return (await self.read_texts([number])).get(number)

    async def read_texts(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """The compressed texts of those of these versions whose text is stored, by number."""
        values = await self._store.read([keys.text(number) for number in numbers]) if numbers else []
        return {number: value for number, value in zip(numbers, values, strict=True) if value is not None}

    async def insert(self, records: Sequence[ArticleRecord], texts: Mapping[int, bytes]) -> set[int]:
        """Write records and compressed texts under fresh numbers; returns the numbers already taken."""
        puts = [Put(keys.record(r.space, r.number), encode_record(r)) for r in records]
        written = await self._store.put(puts, only_if_absent=True)
        taken = {r.number for r, ok in zip(records, written, strict=True) if not ok}
        text_puts = [Put(keys.text(n), t) for n, t in texts.items() if n not in taken]
        if text_puts:
            await self._store.put(text_puts)
        return taken

    async def replace(self, record: ArticleRecord) -> None:
        """Overwrite the record of a version."""
        await self._store.put([Put(keys.record(record.space, record.number), encode_record(record))])

    async def delete(self, spaces_by_number: Mapping[int, str]) -> None:
        """Delete records and texts of versions that left the index or never entered it."""
        await self._store.delete(
            [key for n, space in spaces_by_number.items() for key in (keys.record(space, n), keys.text(n))]
        )
