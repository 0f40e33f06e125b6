"""Article records and texts, stored under their article numbers outside the segments."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from aggregator.domain import ArticleRecord, StreamItem
from aggregator.index import keys
from aggregator.index.article_stream import record_fields
from aggregator.index.bindings import binding_in_space
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import ArticleNumbers, decode_numbers, distinct
from aggregator.index.codec.record_codec import decode_record, decode_record_summary_uncached, encode_record
from aggregator.index.segments import Segments, scan_block
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
        return (await self._store.read([keys.text(number)]))[0]

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


class StoredArticles:
    """Lists and loads stored articles. ``plans``: the block plan of each space."""

    def __init__(self, store: Store, segments: Segments, plans: Mapping[str, BlockPlan]) -> None:
        self._store = store
        self._segments = segments
        self._plans = plans

    async def numbers(self, space: str) -> ArticleNumbers:
        """Article numbers of all versions with postings that have not expired, ascending; (n,).

        Versions that left are included. They are sorted in a thread: 10^7 of them take 0.2 s.
        """
        stack, plan = await self._segments.stack(space), self._plans[space]
        found = [np.empty(0, np.uint64)]
        for tag in stack.tags:
            async for _, bucket in scan_block(self._store, tag, 0, plan.widths[0]):
                if bucket:
                    found.append(decode_numbers(bucket, plan.remainder_bytes))
        return await asyncio.to_thread(_not_expired, found, stack.floor)

    async def load(self, space: str, numbers: Sequence[int]) -> list[StreamItem]:
        """Those of the versions that are current, with their verdicts: two round trips."""
        values = await self._store.read([keys.record(space, number) for number in numbers])
        records = [
            decode_record_summary_uncached(data, space, number)
            for number, data in zip(numbers, values, strict=True)
            if data is not None
        ]
        binding_keys = [keys.binding(record.id) for record in records]
        snapshot = await self._segments.read({space: binding_keys})
        items = []
        for record, key in zip(records, binding_keys, strict=True):
            known = binding_in_space(snapshot, space, key)
            if known is not None and known.binding.number == record.number:
                items.append(
                    StreamItem(
                        number=record.number,
                        first_version=record.first_version,
                        id=record.id,
                        verdict=known.binding.outcome.verdict,
                        arrived_ms=record.arrived_ms,
                        **record_fields(record),
                    )
                )
        return items


def _not_expired(parts: Sequence[ArticleNumbers], floor: int) -> ArticleNumbers:
    numbers = distinct(np.concatenate(parts))
    return numbers[numbers.searchsorted(np.uint64(floor)) :]
