"""Which articles came, in the order of their commits, over all segments?

Each segment has its own stream, and a segment is written to only after the one before it was closed. So
reading them one after another is commit order, if a stream counts as finished only when its segment was
known to be closed *before* the end of the stream was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from aggregator.domain import StreamItem
from aggregator.index import keys
from aggregator.index.bindings import Bindings
from aggregator.index.codec.stream_entries import StreamEntry, decode_stream_entry, to_stream_item


class ArticleStream(Bindings):
    """The journal that the event detector follows.

    An article is announced in the space that decided it, so before, while and after another space takes
    over, the streams of both are read.
    """

    async def recent(self, limit: int) -> list[StreamItem]:
        """The newest articles of all spaces, newest first."""
        rows = await self._read_tails(limit)
        rows.sort(key=_entry_number, reverse=True)
        return await self._load_items(rows[:limit])

    async def recent_entries(self, limit: int) -> list[StreamItem]:
        """As ``recent`` without reading records: times and verdicts alone."""
        items = [to_stream_item(row, space, None) for space, row in await self._read_tails(limit)]
        return sorted(items, key=lambda item: item.number, reverse=True)[:limit]

    async def stream_length(self) -> int:
        """Entries of the streams of all live segments: every version that came, and every deletion, is one."""
        layers = [await self.segments.stack(space) for space in self.all_spaces]
        return sum(
            await self.store.stream_lengths([keys.stream(tag) for each in layers for tag in each.tags])
        )

    async def read_stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """Up to ``count`` articles per space behind ``positions``, in commit order per space, and the new positions.

        Per space one stream has a position: the one that is being read. {} is the beginning.
        """
        spaces = self.all_spaces
        places = [await self._resume_position(space, positions) for space in spaces]
        payloads: list[list[bytes]] = [[] for _ in spaces]
        reading = list(range(len(places)))
        while reading:
            tags = [keys.tag(spaces[i], places[i][0]) for i in reading]
            left = [count - len(payloads[i]) for i in reading]
            closed, read = await self._read_with_sealed(tags, [places[i][1] for i in reading], max(left))
            following = []
            for i, entries, room, ended in zip(reading, read, left, closed, strict=True):
                number, position = places[i]
                taken = entries[:room]
                payloads[i] += [payload for _, payload in taken]
                places[i] = number, taken[-1][0] if taken else position
                if ended is not None and len(taken) == len(entries) < max(left):
                    places[i] = number + 1, b""
                    following.append(i)
            reading = [i for i in following if len(payloads[i]) < count]
        prefixes = tuple(map(keys.space_prefix, spaces))
        moved = {key: at for key, at in positions.items() if not key.startswith(prefixes)}
        for space, (number, position) in zip(spaces, places, strict=True):
            if position or number:
                moved[keys.stream(keys.tag(space, number))] = position
        rows = [
            (space, decode_stream_entry(p))
            for space, part in zip(spaces, payloads, strict=True)
            for p in part
        ]
        return await self._load_items(sorted(rows, key=_entry_number)), moved

    async def _read_with_sealed(
        self, tags: Sequence[bytes], positions: Sequence[bytes], count: int
    ) -> tuple[list[bytes | None], list[list[tuple[bytes, bytes]]]]:
        """Whether segments are closed, and then what is behind a position in their streams: in this order."""
        closed = await self.store.read([keys.sealed(tag) for tag in tags])
        return closed, await self.store.stream_read([keys.stream(tag) for tag in tags], positions, count)

    async def _resume_position(self, space: str, positions: Mapping[bytes, bytes]) -> tuple[int, bytes]:
        """Segment and position to read on from; what was dropped meanwhile is skipped."""
        layers = await self.segments.stack(space)
        prefix = keys.space_prefix(space)
        mine = [(keys.segment_of(key), at) for key, at in positions.items() if key.startswith(prefix)]
        number, position = max(mine, default=(0, b""))
        return (number, position) if number >= layers.first else (layers.first, b"")

    async def _read_tails(self, limit: int) -> list[tuple[str, StreamEntry]]:
        tails = await asyncio.gather(*(self._read_tail(space, limit) for space in self.all_spaces))
        return [
            (space, decode_stream_entry(p))
            for space, tail in zip(self.all_spaces, tails, strict=True)
            for p in tail
        ]

    async def _read_tail(self, space: str, limit: int) -> list[bytes]:
        found: list[bytes] = []
        layers = (await self.segments.read({space: ()})).stacks[space]
        for tag in reversed(layers.tags):
            if len(found) < limit:
                tail = await self.store.stream_tail(keys.stream(tag), limit - len(found))
                found += [payload for _, payload in tail]
        return found

    async def _load_items(self, rows: Sequence[tuple[str, StreamEntry]]) -> list[StreamItem]:
        found = await self.store.read([keys.record(space, row.number) for space, row in rows])
        return [to_stream_item(row, space, data) for (space, row), data in zip(rows, found, strict=True)]


def _entry_number(row: tuple[str, StreamEntry]) -> int:
    return row[1].number
