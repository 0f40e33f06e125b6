"""Protocols that are known to be wrong. The simulation must catch every one of them, or it proves nothing.

Each mutant changes production code through ``monkeypatch`` and names the small program that betrays it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from aggregator.domain import arrival_ms_of
from aggregator.index import Index, bindings, keys
from aggregator.index.compaction import Upkeep
from aggregator.index.lookup import Lookup
from aggregator.index.segments import Segments
from aggregator.index.snapshot import Snapshot
from aggregator.index.transactions import Segment
from aggregator.ingest import pipeline
from aggregator.ingest.commit import Recording
from aggregator.ingest.decide import Deciding
from aggregator.store import commit_batching
from aggregator.store.base import Appends, Check, Delete, Equals, Length, Lengths, Transaction
from tests.simulation.transport import Transport

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, tuple[str, Callable[[Patch], None]]] = {}


def mutant(name: str, program: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def register(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[name] = program, patch
        return patch

    return register


def _without(patch: Patch, method: str, dropped: Callable[[Check], bool]) -> None:
    """``Segment.method`` with some of its checks left out."""
    whole = getattr(Segment, method)

    def lacking(self: Segment, *arguments: Any) -> Transaction:
        made = whole(self, *arguments)
        return replace(made, checks=tuple(c for c in made.checks if not dropped(c)))

    patch.setattr(Segment, method, lacking)


def _is(check: Check, kind: bytes) -> bool:
    return check.key[check.key.index(b"}") + 1 :][:1] == kind


@mutant("buckets may have grown", "two near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: isinstance(c, Lengths))


@mutant("commits are joined whatever came between", "two near-copies")
def _(patch: Patch) -> None:
    whole = commit_batching.runs

    def unguarded(transactions: Any) -> Any:
        return [replace(r, whole=replace(r.whole, checks=())) if r.joined else r for r in whole(transactions)]

    patch.setattr(commit_batching, "runs", unguarded)


@mutant("bands may have grown", "a copy only bands find")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: isinstance(c, Lengths) and _is(c, b"s"))


@mutant("the id may be bound by now", "a retry of an exact copy")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: _is(c, b"i"))


@mutant("the version may have been replaced", "two updates of one id")
def _(patch: Patch) -> None:
    _without(patch, "update", lambda c: _is(c, b"i"))


@mutant("the match may have left", "delete races a copy")
def _(patch: Patch) -> None:
    patch.setattr(Lookup, "alive", lambda self, snapshot, space, match: [])


@mutant("entries are written after the commit", "two near-copies")
def _(patch: Patch) -> None:
    whole = Transport.commit_many

    async def in_two_steps(self: Transport, transactions: list[Transaction]) -> list[tuple[int, ...]]:
        results = []
        for made in transactions:
            first = replace(made, writes=tuple(w for w in made.writes if not _is_entry(w)))
            results += await whole(self, [first])
            if not results[-1]:
                await whole(self, [Transaction((), tuple(w for w in made.writes if _is_entry(w)))])
        return results

    patch.setattr(Transport, "commit_many", in_two_steps)


def _is_entry(write: Any) -> bool:
    return isinstance(write, Appends) and (_is(write, b"b") or _is(write, b"s"))  # type: ignore[arg-type]


@mutant("the group may have changed", "delete races a copy")
def _(patch: Patch) -> None:
    _group_with(patch, lambda checks: ())


@mutant("the list of copies is checked by its length", "a copy joins while another leaves")
def _(patch: Patch) -> None:
    def by_length(checks: tuple[Equals, ...]) -> tuple[Check, ...]:
        return (Length(checks[0].key, len(checks[0].value or b"")), *(c for c in checks[1:] if c.value))

    _group_with(patch, by_length)


@mutant("the canonical text may have changed", "the canonical text changes")
def _(patch: Patch) -> None:
    _group_with(patch, lambda checks: (checks[0], *checks[2:]))


def _group_with(patch: Patch, checks: Callable[[Any], tuple[Check, ...]]) -> None:
    whole = Index._group

    async def lacking(self: Index, *read: Any) -> Any:
        group, canonical = await whole(self, *read)
        return replace(group, unchanged=checks(group.unchanged)), canonical

    patch.setattr(Index, "_group", lacking)


@mutant("a lost batch neighbour goes unnoticed", "a stranger in a neighbour's place")
def _(patch: Patch) -> None:
    _without_relied_on(patch)


def _without_relied_on(patch: Patch) -> None:
    whole = Index.seen

    def lacking(self: Index, snapshot: Any, *rest: Any) -> list[Check]:
        return whole(self, dataclasses.replace(snapshot, changed={}), *rest)

    patch.setattr(Index, "seen", lacking)


@mutant("a group is committed whatever became of the one before it", "overlapping groups")
def _(patch: Patch) -> None:
    _without_relied_on(patch)
    whole = pipeline._Overlap.settle

    async def heedless(self: Any) -> bool:
        if self._recording is not None:
            begun, self._recording, self._before = self._recording, None, None
            self.lost = [*getattr(self, "lost", ()), *await begun]
        return True

    async def settle(self: Any, groups: Any) -> None:
        await whole(self, bindings)
        await self._rounds.settle(getattr(self, "lost", []))

    patch.setattr(pipeline._Overlap, "_finish", heedless)
    patch.setattr(pipeline._Overlap, "settle", settle)


@mutant("nobody looks for the id in other languages", "one id in two languages at once")
def _(patch: Patch) -> None:
    async def heedless(self: Recording, changed: Any) -> None:
        return None

    patch.setattr(Recording, "_meet", heedless)


@mutant("nobody carries a text that leaves", "update leaves an exact copy")
def _(patch: Patch) -> None:
    patch.setattr(bindings, "carriers_of", lambda *a: [])


@mutant("a carrier leaves without an heir", "carriers in a row")
def _(patch: Patch) -> None:
    whole = bindings.carriers_of

    def forgetful(gone: Any, *rest: Any) -> Any:
        exact = gone.outcome.match is not None and gone.outcome.match.rule == "exact"
        return [] if exact else whole(gone, *rest)

    patch.setattr(bindings, "carriers_of", forgetful)


@mutant("a record keeps the first version it was written for", "two updates of one id")
def _(patch: Patch) -> None:
    whole = Deciding._numbered

    async def stubborn(self: Deciding, one: Any, now_ms: int, newest: int, first: int = 0) -> Any:
        if one.written:
            return await whole(self, one, arrival_ms_of(one.number), 0, one.first)
        return await whole(self, one, now_ms, newest, first)

    patch.setattr(Deciding, "_numbered", stubborn)


@mutant("a sealed segment still takes articles", "a seal between near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: c.key.endswith(b"}closed"))


@mutant("a sealed segment still takes deletes", "a delete over a seal")
def _(patch: Patch) -> None:
    _without(patch, "delete", lambda c: c.key.endswith(b"}closed"))


@mutant("the head moves on before the old segment is closed", "a seal between near-copies")
def _(patch: Patch) -> None:
    async def interrupted(self: Segments, space: str, number: int, now_ms: int) -> None:
        await self._move(space, number + 1)  # and here its writer dies

    patch.setattr(Segments, "seal", interrupted)


@mutant("look-ups trust the head they know", "a look-up over a seal")
def _(patch: Patch) -> None:
    whole = Segments.read_under

    async def trusting(self: Segments, under: Any) -> Snapshot:
        wanted = {space: keys_of(b"") for space, keys_of in under.items()}
        if any(key.startswith(b"b") for keys_ in wanted.values() for key in keys_):
            await self._learn(wanted)
            made = [await self.read_at(Snapshot(dict(self._known)), space, wanted[space]) for space in wanted]
            layers = {k: v for one in made for k, v in one.layers.items()}
            values = {k: v for one in made for k, v in one.values.items()}
            named = {tag: [tag + k for k in wanted[s]] for s, each in layers.items() for tag in each.tags}
            answers = {tag: [values[k] for k in some] for tag, some in named.items()}
            return Snapshot(layers, values, named=named, answers=answers)
        return await whole(self, under)

    patch.setattr(Segments, "read_under", trusting)


@mutant("what is removed above uncovers what lies below", "a frozen article is deleted")
def _(patch: Patch) -> None:
    patch.setattr(Segment, "_remove", lambda self, key: Delete(key))


@mutant("frozen buckets are not read", "a seal between near-copies")
def _(patch: Patch) -> None:
    patch.setattr(
        Snapshot,
        "looked_up",
        lambda self, space, whose: [[self.values[key] for key in self.tops(space, whose)]],
    )


@mutant("the oldest segment is right", "a frozen article is updated")
def _(patch: Patch) -> None:
    def oldest(self: Snapshot, space: str, key: bytes) -> bytes | None:
        return next((v for tag in self.layers[space].tags if (v := self.values.get(tag + key))), None)

    patch.setattr(Snapshot, "newest", oldest)


@mutant("a stream is left at its end, closed or not", "the stream over a seal")
def _(patch: Patch) -> None:
    async def hasty(self: Index, tags: Any, after: Any, count: int) -> Any:
        read = await self.store.stream_read([keys.stream(tag) for tag in tags], after, count)
        return await self.store.read([keys.closed(tag) for tag in tags]), read

    patch.setattr(Index, "_ends", hasty)


@mutant("compaction rewrites the writable segment", "a length that comes back")
def _(patch: Patch) -> None:
    whole = Upkeep._sweep

    async def greedy(self: Upkeep, layers: Any, number: int, cursor: int, dead: Any) -> Any:
        for each in (number, layers.last):
            async for moved in whole(self, layers, each, 0, dead):
                yield moved

    patch.setattr(Upkeep, "_sweep", greedy)


@mutant("marks of the dead go before their entries", "the dead below")
def _(patch: Patch) -> None:
    async def idle(self: Upkeep, *arguments: Any) -> Any:
        for moved in ():
            yield moved

    patch.setattr(Upkeep, "_sweep", idle)


@mutant("marks of the dead in the writable segment go", "the dead on top")
def _(patch: Patch) -> None:
    whole = Upkeep._bury

    async def greedy(self: Upkeep, tag: bytes, numbers: Any) -> Any:
        top = keys.tag(keys.space_of(tag), keys.segment_of(tag) + 1)
        for each, some in ((tag, numbers), (top, (await self._graves(top)).tolist())):
            async for step in whole(self, each, some):
                yield step

    patch.setattr(Upkeep, "_bury", greedy)


@mutant("a segment is dropped whatever lives in it", "a segment with life in it")
def _(patch: Patch) -> None:
    async def at_once(self: Upkeep, *arguments: Any) -> bool:
        return True

    patch.setattr(Upkeep, "_is_forgotten", at_once)


@mutant("an exact copy leans for ever", "an exact copy long after")
def _(patch: Patch) -> None:
    patch.setattr(Segment, "_may_lean", lambda self, record, match: bool(match and match.rule == "exact"))


@mutant("an original that comes back is a copy of its copies", "an original comes back")
def _(patch: Patch) -> None:
    whole = Deciding._insert

    async def alone(self: Deciding, one: Any, *rest: Any) -> Any:
        strangers = [
            dataclasses.replace(c, canonical=(c.canonical[0] + "?", c.canonical[1])) for c in rest[3]
        ]
        return await whole(self, one, *rest[:3], strangers, *rest[4:])

    patch.setattr(Deciding, "_insert", alone)
