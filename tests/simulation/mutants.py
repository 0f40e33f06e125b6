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
from aggregator.index.compaction import Compactor
from aggregator.index.lookup import Lookup
from aggregator.index.segments import Segments
from aggregator.index.snapshot import Snapshot
from aggregator.index.transactions import SegmentTransactions
from aggregator.ingest import pipeline
from aggregator.ingest.commit import Committer
from aggregator.ingest.decide import Decider
from aggregator.store import commit_batching
from aggregator.store.base import (
    AppendMany,
    Check,
    Delete,
    LengthEquals,
    LengthsUnchanged,
    Transaction,
    ValueEquals,
)
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
    whole = getattr(SegmentTransactions, method)

    def lacking(self: SegmentTransactions, *arguments: Any) -> Transaction:
        made = whole(self, *arguments)
        return replace(made, checks=tuple(c for c in made.checks if not dropped(c)))

    patch.setattr(SegmentTransactions, method, lacking)


def _is(check: Check, kind: bytes) -> bool:
    return check.key[check.key.index(b"}") + 1 :][:1] == kind


@mutant("buckets may have grown", "two near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: isinstance(c, LengthsUnchanged))


@mutant("commits are joined whatever came between", "two near-copies")
def _(patch: Patch) -> None:
    whole = commit_batching.split_into_runs

    def unguarded(transactions: Any) -> Any:
        return [
            replace(r, whole=replace(r.transaction, checks=())) if r.is_merged else r
            for r in whole(transactions)
        ]

    patch.setattr(commit_batching, "split_into_runs", unguarded)


@mutant("bands may have grown", "a copy only bands find")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: isinstance(c, LengthsUnchanged) and _is(c, b"s"))


@mutant("the id may be bound by now", "a retry of an exact copy")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: _is(c, b"i"))


@mutant("the version may have been replaced", "two updates of one id")
def _(patch: Patch) -> None:
    _without(patch, "update", lambda c: _is(c, b"i"))


@mutant("the match may have left", "delete races a copy")
def _(patch: Patch) -> None:
    patch.setattr(Lookup, "match_checks", lambda self, snapshot, space, match: [])


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
    return isinstance(write, AppendMany) and (_is(write, b"b") or _is(write, b"s"))  # type: ignore[arg-type]


@mutant("the group may have changed", "delete races a copy")
def _(patch: Patch) -> None:
    _group_with(patch, lambda checks: ())


@mutant("the list of copies is checked by its length", "a copy joins while another leaves")
def _(patch: Patch) -> None:
    def by_length(checks: tuple[ValueEquals, ...]) -> tuple[Check, ...]:
        return (LengthEquals(checks[0].key, len(checks[0].value or b"")), *(c for c in checks[1:] if c.value))

    _group_with(patch, by_length)


@mutant("the canonical text may have changed", "the canonical text changes")
def _(patch: Patch) -> None:
    _group_with(patch, lambda checks: (checks[0], *checks[2:]))


def _group_with(patch: Patch, checks: Callable[[Any], tuple[Check, ...]]) -> None:
    whole = Index._read_group

    async def lacking(self: Index, *read: Any) -> Any:
        group, canonical = await whole(self, *read)
        return replace(group, unchanged_checks=checks(group.unchanged_checks)), canonical

    patch.setattr(Index, "_read_group", lacking)


@mutant("a lost batch neighbour goes unnoticed", "a stranger in a neighbour's place")
def _(patch: Patch) -> None:
    _without_relied_on(patch)


def _without_relied_on(patch: Patch) -> None:
    whole = Index.commit_checks

    def lacking(self: Index, snapshot: Any, *rest: Any) -> list[Check]:
        return whole(self, dataclasses.replace(snapshot, changed={}), *rest)

    patch.setattr(Index, "commit_checks", lacking)


@mutant("a group is committed whatever became of the one before it", "overlapping groups")
def _(patch: Patch) -> None:
    _without_relied_on(patch)
    whole = pipeline._PipelinedRun.process

    async def heedless(self: Any) -> bool:
        if self._commit_task is not None:
            begun, self._commit_task, self._committing = self._commit_task, None, None
            self.lost = [*getattr(self, "lost", ()), *await begun]
        return True

    async def settle(self: Any, groups: Any) -> None:
        await whole(self, groups)
        await self._pipeline.process(getattr(self, "lost", []))

    patch.setattr(pipeline._PipelinedRun, "_finish_commit", heedless)
    patch.setattr(pipeline._PipelinedRun, "process", settle)


@mutant("nobody looks for the id in other languages", "one id in two languages at once")
def _(patch: Patch) -> None:
    async def heedless(self: Committer, changed: Any) -> None:
        return None

    patch.setattr(Committer, "_resolve_language_race", heedless)


@mutant("nobody carries a text that leaves", "update leaves an exact copy")
def _(patch: Patch) -> None:
    patch.setattr(bindings, "bindings_to_index", lambda *a: [])


@mutant("a carrier leaves without an heir", "carriers in a row")
def _(patch: Patch) -> None:
    whole = bindings.bindings_to_index

    def forgetful(gone: Any, *rest: Any) -> Any:
        exact = gone.outcome.match is not None and gone.outcome.match.rule == "exact"
        return [] if exact else whole(gone, *rest)

    patch.setattr(bindings, "bindings_to_index", forgetful)


@mutant("a record keeps the first version it was written for", "two updates of one id")
def _(patch: Patch) -> None:
    whole = Decider._assign_number

    async def stubborn(self: Decider, one: Any, now_ms: int, newest: int, first: int = 0) -> Any:
        if one.written:
            return await whole(self, one, arrival_ms_of(one.number), 0, one.first)
        return await whole(self, one, now_ms, newest, first)

    patch.setattr(Decider, "_assign_number", stubborn)


@mutant("a sealed segment still takes articles", "a seal between near-copies")
def _(patch: Patch) -> None:
    _without(patch, "insert", lambda c: c.key.endswith(b"}closed"))


@mutant("a sealed segment still takes deletes", "a delete over a seal")
def _(patch: Patch) -> None:
    _without(patch, "delete", lambda c: c.key.endswith(b"}closed"))


@mutant("the head moves on before the old segment is closed", "a seal between near-copies")
def _(patch: Patch) -> None:
    async def interrupted(self: Segments, space: str, number: int, now_ms: int) -> None:
        await self._advance_writable(space, number + 1)  # and here its writer dies

    patch.setattr(Segments, "seal", interrupted)


@mutant("look-ups trust the head they know", "a look-up over a seal")
def _(patch: Patch) -> None:
    whole = Segments.read_built_keys

    async def trusting(self: Segments, under: Any) -> Snapshot:
        wanted = {space: keys_of(b"") for space, keys_of in under.items()}
        if any(key.startswith(b"b") for keys_ in wanted.values() for key in keys_):
            await self._load_heads(wanted)
            made = [
                await self.read_more(Snapshot(dict(self._stacks)), space, wanted[space]) for space in wanted
            ]
            layers = {k: v for one in made for k, v in one.stacks.items()}
            values = {k: v for one in made for k, v in one.values.items()}
            named = {tag: [tag + k for k in wanted[s]] for s, each in layers.items() for tag in each.tags}
            answers = {tag: [values[k] for k in some] for tag, some in named.items()}
            return Snapshot(layers, values, keys_by_tag=named, values_by_tag=answers)
        return await whole(self, under)

    patch.setattr(Segments, "read_built_keys", trusting)


@mutant("what is removed above uncovers what lies below", "a frozen article is deleted")
def _(patch: Patch) -> None:
    patch.setattr(SegmentTransactions, "_removal_write", lambda self, key: Delete(key))


@mutant("frozen buckets are not read", "a seal between near-copies")
def _(patch: Patch) -> None:
    patch.setattr(
        Snapshot,
        "lookup_values",
        lambda self, space, whose: [[self.values[key] for key in self.tops(space, whose)]],
    )


@mutant("the oldest segment is right", "a frozen article is updated")
def _(patch: Patch) -> None:
    def oldest(self: Snapshot, space: str, key: bytes) -> bytes | None:
        return next((v for tag in self.stacks[space].tags if (v := self.values.get(tag + key))), None)

    patch.setattr(Snapshot, "newest_value", oldest)


@mutant("a stream is left at its end, closed or not", "the stream over a seal")
def _(patch: Patch) -> None:
    async def hasty(self: Index, tags: Any, after: Any, count: int) -> Any:
        read = await self.store.stream_read([keys.stream(tag) for tag in tags], after, count)
        return await self.store.read([keys.sealed(tag) for tag in tags]), read

    patch.setattr(Index, "_read_with_sealed", hasty)


@mutant("compaction rewrites the writable segment", "a length that comes back")
def _(patch: Patch) -> None:
    whole = Compactor._compact_segment

    async def greedy(self: Compactor, layers: Any, number: int, cursor: int, dead: Any) -> Any:
        for each in (number, layers.last):
            async for moved in whole(self, layers, each, 0, dead):
                yield moved

    patch.setattr(Compactor, "_compact_segment", greedy)


@mutant("marks of the dead go before their entries", "the dead below")
def _(patch: Patch) -> None:
    async def idle(self: Compactor, *arguments: Any) -> Any:
        for moved in ():
            yield moved

    patch.setattr(Compactor, "_compact_segment", idle)


@mutant("marks of the dead in the writable segment go", "the dead on top")
def _(patch: Patch) -> None:
    whole = Compactor._delete_dead_versions

    async def greedy(self: Compactor, tag: bytes, numbers: Any) -> Any:
        top = keys.tag(keys.space_of(tag), keys.segment_of(tag) + 1)
        for each, some in ((tag, numbers), (top, (await self._read_dead_numbers(top)).tolist())):
            async for step in whole(self, each, some):
                yield step

    patch.setattr(Compactor, "_delete_dead_versions", greedy)


@mutant("a segment is dropped whatever lives in it", "a segment with life in it")
def _(patch: Patch) -> None:
    async def at_once(self: Compactor, *arguments: Any) -> bool:
        return True

    patch.setattr(Compactor, "_is_expired", at_once)


@mutant("an exact copy leans for ever", "an exact copy long after")
def _(patch: Patch) -> None:
    patch.setattr(
        SegmentTransactions,
        "_may_share_entries",
        lambda self, record, match: bool(match and match.rule == "exact"),
    )


@mutant("an original that comes back is a copy of its copies", "an original comes back")
def _(patch: Patch) -> None:
    whole = Decider._plan_insert

    async def alone(self: Decider, one: Any, *rest: Any) -> Any:
        strangers = [
            dataclasses.replace(c, canonical=(c.canonical[0] + "?", c.canonical[1])) for c in rest[3]
        ]
        return await whole(self, one, *rest[:3], strangers, *rest[4:])

    patch.setattr(Decider, "_plan_insert", alone)
