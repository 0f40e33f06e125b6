"""Which segments does a space have, which one is written to, and when is it full?

A segment holds some ten million articles under one tag, so on one node; each has its own tag, so they
spread over a cluster. The **head** of a space, a key of its own, names the live ones and the floor.

**Sealing** is one commit: the key ``closed`` of the writable segment, which every commit checks. From
then on the next number is the writable one; there is nothing to create. Moving the head is mere news:
whoever reads a segment reads its ``closed`` in the same instant, so a process with an old head, or one
that died between the two steps, costs one more read and never a wrong answer. Who meets it moves the head.

    open --seal: closed=now, if absent--> frozen --retention, everything below the floor--> dropped

**Counting** costs no round trip: some articles leave a mark with their commit (``store/marks.py``). Who
left one looks whether the segment is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.index.segment_sampling import decode_samples, sampling_exponent_for
from aggregator.index.snapshot import SegmentStack, Snapshot
from aggregator.store.base import AdvanceVersion, Put, Store, Transaction, ValueEquals
from aggregator.store.decoding import decode_value

SEGMENT_MAX_ARTICLES = 10_000_000
KeyBuilder = Callable[[bytes], list[bytes]]  # the keys that are wanted, of a tag


class SpaceHead(msgspec.Struct, frozen=True, array_like=True):
    """The live segments, ``first`` to ``last``, the floor, and up to which number (exclusive) all keys are gone."""

    first: int = 0
    last: int = 0
    floor: int = 0
    cleared_below: int = 0


FORMAT = b"\x01"
_head_decoder = msgspec.msgpack.Decoder(SpaceHead)


class Segments:
    """The segments of all spaces over one store, as far as this process knows."""

    def __init__(self, store: Store, max_articles: int = SEGMENT_MAX_ARTICLES) -> None:
        self._store = store
        self.max_articles = max_articles
        self.sampling_exponent = sampling_exponent_for(max_articles)
        self._stacks: dict[str, SegmentStack] = {}

    async def stack(self, space: str) -> SegmentStack:
        """As last heard of."""
        await self._load_heads([space])
        return self._stacks[space]

    async def read(self, suffixes_by_space: Mapping[str, Sequence[bytes]]) -> Snapshot:
        """Keys (without tags) per space from all their live segments, in one round trip."""
        return await self.read_built_keys(
            {space: partial(_with_tag, some) for space, some in suffixes_by_space.items()}
        )

    async def read_built_keys(self, builders: Mapping[str, KeyBuilder]) -> Snapshot:
        """``read`` of what stands under a tag, spelt out once for each.

        Once more when the writable segment turns out to be sealed.
        """
        await self._load_heads(builders)
        while True:
            layers = {space: self._stacks[space] for space in builders}
            closed = {space: keys.sealed(each.writable_tag) for space, each in layers.items()}
            everything = [*closed.values(), *(keys.version(each.writable_tag) for each in layers.values())]
            named: dict[bytes, list[bytes]] = {}
            for space, each in layers.items():
                for tag in each.tags:
                    named[tag] = builders[space](tag)
                    everything += named[tag]
            found = await self._store.read(everything)
            values = dict(zip(everything, found, strict=True))
            sealed = [space for space, key in closed.items() if values[key] is not None]
            if not sealed:
                return Snapshot(layers, values, keys_by_tag=named, values_by_tag=_split_by_tag(named, found))
            for space in sealed:
                await self._advance_writable(space, layers[space].last + 1)

    async def read_all_segments(
        self, space: str, key_builder: KeyBuilder
    ) -> tuple[SegmentStack, list[bytes | None]]:
        """What stands under the tag of each live segment: for keys that only grow, when nothing is to be committed.

        ``read`` keeps every value under its key, which takes longer than all else of a look-up.
        """
        while True:
            layers = self._stacks.get(space) or await self.stack(space)
            everything = [keys.sealed(layers.writable_tag)]
            for tag in layers.tags:
                everything += key_builder(tag)
            closed, *values = await self._store.read(everything)
            if closed is None:
                return layers, values
            await self._advance_writable(space, layers.last + 1)

    async def read_more(self, snapshot: Snapshot, space: str, suffixes: Iterable[bytes]) -> Snapshot:
        """More keys of the layers that ``snapshot`` was read from; a commit checks that they still are."""
        layers = snapshot.stacks[space]
        everything = list(dict.fromkeys(tag + key for tag in layers.tags for key in suffixes))
        values = await self._store.read(everything) if everything else []
        return Snapshot({space: layers}, dict(zip(everything, values, strict=True)))

    async def seal(self, space: str, number: int, now_ms: int) -> None:
        """Close the segment with this number, if nobody has; the next one is writable then."""
        closed = keys.sealed(keys.tag(space, number))
        version = AdvanceVersion(keys.version(keys.tag(space, number)), b"closed")
        await self._store.commit(
            Transaction((ValueEquals(closed, None),), (Put(closed, b"%d" % now_ms), version))
        )
        await self._advance_writable(space, number + 1)

    async def seal_if_full(self, space: str, now_ms: int) -> None:
        """For who left a mark. Not at once when the store is away: the next mark comes."""
        layers = await self.stack(space)
        try:
            marks = (await self._store.read([keys.sampled_numbers(layers.writable_tag)]))[0]
            if decode_samples(marks)[1].sum() >= self.max_articles:
                await self.seal(space, layers.last, now_ms)
        except StoreUnavailable:
            return

    async def refresh(self, space: str) -> SegmentStack:
        """As the head says now: dropped segments and the floor are learnt this way only."""
        _, head = await self._read_head(space)
        return self._merge_head(space, head)

    async def advance_head(self, space: str, **fields: int) -> bool:
        """Write fields of the head, only ever upwards; False when somebody else wrote it meanwhile."""
        raw, head = await self._read_head(space)
        now = {name: max(value, getattr(head, name)) for name, value in fields.items()}
        moved = msgspec.structs.replace(head, **now)
        if moved == head:
            self._merge_head(space, head)
            return True
        put = Put(keys.space_head(space), FORMAT + msgspec.msgpack.encode(moved))
        if await self._store.commit(Transaction((ValueEquals(put.key, raw),), (put,))):
            return False
        self._merge_head(space, moved)
        return True

    async def head(self, space: str) -> SpaceHead:
        """The head as it is stored."""
        return (await self._read_head(space))[1]

    async def _advance_writable(self, space: str, last: int) -> None:
        """Go on in segment ``last``: the one before it is closed. Who loses the race to the head lost nothing."""
        known = self._stacks.get(space, SegmentStack(space))
        if known.last < last:
            self._stacks[space] = SegmentStack(space, known.first, last, known.floor)
        await self.advance_head(space, last=last)

    async def _load_heads(self, spaces: Iterable[str]) -> None:
        if missing := [space for space in spaces if space not in self._stacks]:
            heads = await self._store.read([keys.space_head(space) for space in missing])
            for space, raw in zip(missing, heads, strict=True):
                self._merge_head(space, _decode_head(raw))

    def _merge_head(self, space: str, head: SpaceHead) -> SegmentStack:
        known = self._stacks.get(space, SegmentStack(space))
        last = max(head.last, known.last)
        self._stacks[space] = SegmentStack(
            space, max(head.first, known.first), last, max(head.floor, known.floor)
        )
        return self._stacks[space]

    async def _read_head(self, space: str) -> tuple[bytes | None, SpaceHead]:
        raw = (await self._store.read([keys.space_head(space)]))[0]
        return raw, _decode_head(raw)


def _with_tag(suffixes: Sequence[bytes], tag: bytes) -> list[bytes]:
    return [tag + key for key in suffixes]


def _split_by_tag(
    keys_by_tag: Mapping[bytes, Sequence[bytes]], values: Sequence[bytes | None]
) -> dict[bytes, list[bytes | None]]:
    """What was read, of which the last stands under the tags in that order, by tag."""
    parts, at = {}, len(values) - sum(map(len, keys_by_tag.values()))
    for tag, under in keys_by_tag.items():
        parts[tag] = list(values[at : at + len(under)])
        at += len(under)
    return parts


def _decode_head(raw: bytes | None) -> SpaceHead:
    if raw is None:
        return SpaceHead()
    if raw[:1] != FORMAT:
        raise StoreUnavailable(
            f"The store holds a list of segments of format {raw[:1].hex()}, this version reads "
            f"{FORMAT.hex()}: run the version that wrote it, or reindex."
        )
    return decode_value(_head_decoder, raw[1:], "The list of segments")
