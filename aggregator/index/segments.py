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
from aggregator.index.segment_sampling import rate_of, tally
from aggregator.index.snapshot import Layers, Snapshot
from aggregator.store.base import Chain, Equals, Put, Store, Transaction
from aggregator.store.decoding import value_of

SEGMENT_ARTICLES = 10_000_000
KeysUnder = Callable[[bytes], list[bytes]]  # the keys that are wanted, of a tag


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The live segments, ``first`` to ``last``, the floor, and up to which number (exclusive) all keys are gone."""

    first: int = 0
    last: int = 0
    floor: int = 0
    cleared: int = 0


FORMAT = b"\x01"
_head = msgspec.msgpack.Decoder(Head)


class Segments:
    """The segments of all spaces over one store, as far as this process knows."""

    def __init__(self, store: Store, size: int = SEGMENT_ARTICLES) -> None:
        self._store = store
        self.size = size
        self.rate = rate_of(size)
        self._known: dict[str, Layers] = {}

    async def layers(self, space: str) -> Layers:
        """As last heard of."""
        await self._learn([space])
        return self._known[space]

    async def read(self, wanted: Mapping[str, Sequence[bytes]]) -> Snapshot:
        """Keys (without tags) per space from all their live segments, in one round trip."""
        return await self.read_under({space: partial(_tagged, some) for space, some in wanted.items()})

    async def read_under(self, wanted: Mapping[str, KeysUnder]) -> Snapshot:
        """``read`` of what stands under a tag, spelt out once for each.

        Once more when the writable segment turns out to be sealed.
        """
        await self._learn(wanted)
        while True:
            layers = {space: self._known[space] for space in wanted}
            closed = {space: keys.closed(each.top) for space, each in layers.items()}
            everything = [*closed.values(), *(keys.version(each.top) for each in layers.values())]
            named: dict[bytes, list[bytes]] = {}
            for space, each in layers.items():
                for tag in each.tags:
                    named[tag] = wanted[space](tag)
                    everything += named[tag]
            found = await self._store.read(everything)
            values = dict(zip(everything, found, strict=True))
            sealed = [space for space, key in closed.items() if values[key] is not None]
            if not sealed:
                return Snapshot(layers, values, named=named, answers=_parted(named, found))
            for space in sealed:
                await self._move(space, layers[space].last + 1)

    async def everywhere(self, space: str, keys_under: KeysUnder) -> tuple[Layers, list[bytes | None]]:
        """What stands under the tag of each live segment: for keys that only grow, when nothing is to be committed.

        ``read`` keeps every value under its key, which takes longer than all else of a look-up.
        """
        while True:
            layers = self._known.get(space) or await self.layers(space)
            everything = [keys.closed(layers.top)]
            for tag in layers.tags:
                everything += keys_under(tag)
            closed, *values = await self._store.read(everything)
            if closed is None:
                return layers, values
            await self._move(space, layers.last + 1)

    async def read_at(self, snapshot: Snapshot, space: str, wanted: Iterable[bytes]) -> Snapshot:
        """More keys of the layers that ``snapshot`` was read from; a commit checks that they still are."""
        layers = snapshot.layers[space]
        everything = list(dict.fromkeys(tag + key for tag in layers.tags for key in wanted))
        values = await self._store.read(everything) if everything else []
        return Snapshot({space: layers}, dict(zip(everything, values, strict=True)))

    async def seal(self, space: str, number: int, now_ms: int) -> None:
        """Close the segment with this number, if nobody has; the next one is writable then."""
        closed = keys.closed(keys.tag(space, number))
        version = Chain(keys.version(keys.tag(space, number)), b"closed")
        await self._store.commit(Transaction((Equals(closed, None),), (Put(closed, b"%d" % now_ms), version)))
        await self._move(space, number + 1)

    async def seal_if_full(self, space: str, now_ms: int) -> None:
        """For who left a mark. Not at once when the store is away: the next mark comes."""
        layers = await self.layers(space)
        try:
            marks = (await self._store.read([keys.marks(layers.top)]))[0]
            if tally(marks)[1].sum() >= self.size:
                await self.seal(space, layers.last, now_ms)
        except StoreUnavailable:
            return

    async def refresh(self, space: str) -> Layers:
        """As the head says now: dropped segments and the floor are learnt this way only."""
        _, head = await self._read_head(space)
        return self._adopt(space, head)

    async def change_head(self, space: str, **fields: int) -> bool:
        """Write fields of the head, only ever upwards; False when somebody else wrote it meanwhile."""
        raw, head = await self._read_head(space)
        now = {name: max(value, getattr(head, name)) for name, value in fields.items()}
        moved = msgspec.structs.replace(head, **now)
        if moved == head:
            self._adopt(space, head)
            return True
        put = Put(keys.head(space), FORMAT + msgspec.msgpack.encode(moved))
        if await self._store.commit(Transaction((Equals(put.key, raw),), (put,))):
            return False
        self._adopt(space, moved)
        return True

    async def head(self, space: str) -> Head:
        """The head as it is stored."""
        return (await self._read_head(space))[1]

    async def _move(self, space: str, last: int) -> None:
        """Go on in segment ``last``: the one before it is closed. Who loses the race to the head lost nothing."""
        known = self._known.get(space, Layers(space))
        if known.last < last:
            self._known[space] = Layers(space, known.first, last, known.floor)
        await self.change_head(space, last=last)

    async def _learn(self, spaces: Iterable[str]) -> None:
        if missing := [space for space in spaces if space not in self._known]:
            heads = await self._store.read([keys.head(space) for space in missing])
            for space, raw in zip(missing, heads, strict=True):
                self._adopt(space, _decoded(raw))

    def _adopt(self, space: str, head: Head) -> Layers:
        known = self._known.get(space, Layers(space))
        last = max(head.last, known.last)
        self._known[space] = Layers(space, max(head.first, known.first), last, max(head.floor, known.floor))
        return self._known[space]

    async def _read_head(self, space: str) -> tuple[bytes | None, Head]:
        raw = (await self._store.read([keys.head(space)]))[0]
        return raw, _decoded(raw)


def _tagged(wanted: Sequence[bytes], tag: bytes) -> list[bytes]:
    return [tag + key for key in wanted]


def _parted(
    named: Mapping[bytes, Sequence[bytes]], found: Sequence[bytes | None]
) -> dict[bytes, list[bytes | None]]:
    """What was read, of which the last stands under the tags in that order, by tag."""
    parts, at = {}, len(found) - sum(map(len, named.values()))
    for tag, under in named.items():
        parts[tag] = list(found[at : at + len(under)])
        at += len(under)
    return parts


def _decoded(raw: bytes | None) -> Head:
    if raw is None:
        return Head()
    if raw[:1] != FORMAT:
        raise StoreUnavailable(
            f"The store holds a list of segments of format {raw[:1].hex()}, this version reads "
            f"{FORMAT.hex()}: run the version that wrote it, or reindex."
        )
    return value_of(_head, raw[1:], "The list of segments")
