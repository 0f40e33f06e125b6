"""Which other spaces are written along, and how do they stay in step with those that serve?

Another model or block plan means other spaces. While they are filled, every write goes to both: the serving
space decides, and what it decided is **copied** into the space beside it: the same number, the same first
number, the same verdict, entries of its own fingerprint. Nothing is decided or announced a second time.

Bringing an id in step is one loop: read what is bound beside, then what serves; make the former equal to the
latter in one commit that holds only if the former is as it was read; again, until there is nothing left to do.
It can be repeated, interrupted and done by several at once, and ends the same. Two things make it so: a number
that left is marked dead beside, also if it never stood there, so whoever is late cannot bring it back; and
the last look comes after the commit, so a change that was missed is seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from aggregator.domain import Analysis, Article, Record
from aggregator.errors import AggregatorError, Contention
from aggregator.index import ATTEMPTS, Index, Snapshot, keys
from aggregator.index.codec.records import Binding
from aggregator.index.duplicate_groups import Known
from aggregator.store.base import Check, Equals, Transaction

AnalyseMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]
Carry = Callable[[Record], Record | None]


@dataclass(frozen=True, slots=True)
class Posted:
    """An article as it was posted (None: its text is not at hand), and its record in the serving space."""

    article: Article | None
    record: Record


class Beside:
    """Keeps the spaces ``index.beside`` in step with ``index.spaces``.

    ``analyse_many`` gives analyses of the models beside. ``carry`` turns a serving record into the one beside
    without its text, where only the block plan differs; None where it cannot.
    """

    def __init__(self, index: Index, analyse_many: AnalyseMany, carry: Carry) -> None:
        self._index = index
        self._analyse_many = analyse_many
        self._carry = carry

    async def follow(self, stored: Sequence[Posted]) -> list[Posted]:
        """Bring these articles in step. Returns those that cannot be: without a text, or with another one.

        Raises StoreUnavailable, Contention; repeating it is harmless.
        """
        hashes = {keys.id_hash(one.record.id): one for one in stored}
        there = await self._index.segments.read(_wanted(self._index.beside, hashes))
        behind = [
            one
            for hashed, one in hashes.items()
            if not any(k.binding.number == one.record.number for k in self._index.bound(there, hashed))
        ]
        fresh = await self._records(behind)
        await self._index.put_records([r for r in fresh.values() if r.space in self._index.beside], {})
        await self._bring(list(hashes), fresh, {})
        return [one for one in behind if one.record.number not in fresh]

    async def left(self, gone: Sequence[Known]) -> None:
        """Articles were taken down or replaced where it is decided: here too, and their copies follow."""
        numbers = {keys.id_hash(known.binding.id): known.binding for known in gone}
        wanted = [keys.copies(b"", binding.group) for binding in numbers.values()]
        lists = await self._index.segments.read(dict.fromkeys(self._index.beside, wanted))
        rows = b"".join(v for space in self._index.beside for v in lists.everywhere(space, wanted) if v)
        members = [rows[i : i + 16] for i in range(0, len(rows), 16)]
        await self._bring(list(dict.fromkeys([*numbers, *members])), {}, numbers)
        for space in self._index.beside:
            await self._index.forget_records({b.number: space for b in numbers.values()})

    async def absent(self, id_: str) -> None:
        """Nothing is bound to this id where it is decided: nor is it here, afterwards."""
        await self._bring([keys.id_hash(id_)], {}, {})

    async def forget(self, number: int) -> None:
        """The record of a version that was replaced goes."""
        for space in self._index.beside:
            await self._index.forget_records({number: space})

    async def rewrite(self, record: Record) -> None:
        """The metadata of a stored version changed."""
        found = await self._index.segments.read(_wanted(self._index.beside, [keys.id_hash(record.id)]))
        for known in self._index.bound(found, keys.id_hash(record.id)):
            number = known.binding.number
            there = (await self._index.records({number: known.space})).get(number)
            if there is not None and number == record.number:
                names = ("title", "url", "source", "published_at_ms")
                fresh = replace(there, **{name: getattr(record, name) for name in names})
                await self._index.rewrite_record(known, fresh)

    async def _records(self, behind: Sequence[Posted]) -> dict[int, Record]:
        """The records beside, by number."""
        found = {one.record.number: self._carry(one.record) for one in behind}
        texts = [one for one in behind if found[one.record.number] is None and one.article is not None]
        analysed = await self._analyse_many([one.article for one in texts if one.article]) if texts else []
        for one, analysis in zip(texts, analysed, strict=True):
            if isinstance(analysis, Analysis) and analysis.text_hash == one.record.text_hash:
                found[one.record.number] = _as_analysed(one.record, analysis)
        return {number: record for number, record in found.items() if record is not None}

    async def _bring(
        self, hashes: Sequence[bytes], fresh: Mapping[int, Record], gone: Mapping[bytes, Binding]
    ) -> None:
        waiting = list(hashes)
        for _ in range(ATTEMPTS):
            if not waiting:
                return
            waiting = await self._attempt(waiting, fresh, gone)
        raise Contention("An article kept changing while the space beside followed; send it again.")

    async def _attempt(
        self, waiting: Sequence[bytes], fresh: Mapping[int, Record], gone: Mapping[bytes, Binding]
    ) -> list[bytes]:
        """One look and one commit each; returns those that had something to change, to be looked at again."""
        index = self._index
        there = await index.segments.read(_wanted(index.beside, waiting))
        serving = await index.segments.read(_wanted(index.spaces, waiting))
        found = {hashed: index.bound(there, hashed) for hashed in waiting}
        now = {hashed: next(iter(index.bound(serving, hashed)), None) for hashed in waiting}
        states = await self._states(there, [*(k for k in now.values() if k)], gone.values())
        records = await self._heirs(found, now, fresh)
        owners: list[bytes] = []
        transactions: list[Transaction] = []
        for hashed in waiting:
            for space in index.beside:
                before = next((k for k in found[hashed] if k.space == space), None)
                step = self._step(there, states, space, before, now[hashed], gone.get(hashed), records)
                if step is not None:
                    owners.append(hashed)
                    transactions.append(step)
        await index.store.commit_many(transactions)
        return list(dict.fromkeys(owners))

    def _step(
        self,
        there: Snapshot,
        states: Snapshot,
        space: str,
        before: Known | None,
        now: Known | None,
        gone: Binding | None,
        records: Mapping[int, Record],
    ) -> Transaction | None:
        """What makes one space say of one id what the serving one says; None: it does."""
        segment = self._index.segment(there, space)
        if now is not None and _belongs(now.binding, space, before, records):
            if before is not None and before.binding == now.binding:
                return None
            state = keys.state(b"", now.binding.number)
            if states.newest(space, state) == keys.DEAD:  # it left since: look again
                return None if before is None else segment.retire(before.binding, [_same(before)])
            key = keys.binding_of(b"", now.binding.id)
            seen = [there.unchanged(space, key), states.unchanged(space, state)]
            record = records.get(now.binding.number)
            return segment.adopt(now.binding, before.binding if before else None, record, seen)
        if before is not None:
            return segment.retire(before.binding, [_same(before)])
        if gone is not None and states.newest(space, keys.state(b"", gone.number)) != keys.DEAD:
            return Transaction((there.unchanged(space, keys.closed(b"")),), tuple(segment.bar(gone)))
        return None

    async def _states(self, there: Snapshot, now: Sequence[Known], gone: Iterable[Binding]) -> Snapshot:
        numbers = [*(known.binding.number for known in now), *(binding.number for binding in gone)]
        merged = Snapshot(there.layers)
        for space in self._index.beside:
            wanted = [keys.state(b"", number) for number in numbers]
            merged.values.update((await self._index.segments.read_at(there, space, wanted)).values)
        return merged

    async def _heirs(
        self,
        found: Mapping[bytes, Sequence[Known]],
        now: Mapping[bytes, Known | None],
        fresh: Mapping[int, Record],
    ) -> dict[int, Record]:
        """``fresh``, and the records beside of copies that are canonical now."""
        heirs = {
            known.binding.number: known.space
            for hashed, there in found.items()
            for known in there
            if (serving := now[hashed]) is not None
            and serving.binding.number == known.binding.number
            and serving.binding.outcome.match is None
            and known.binding.outcome.match is not None
        }
        return {**fresh, **(await self._index.records(heirs) if heirs else {})}


def _belongs(binding: Binding, space: str, before: Known | None, records: Mapping[int, Record]) -> bool:
    """Whether this version stands in ``space``: it does already, or its record was made for it."""
    if before is not None and before.binding.number == binding.number:
        return True
    record = records.get(binding.number)
    return record is not None and record.space == space


def _same(known: Known) -> Check:
    return Equals(known.key, known.raw)


def _wanted(spaces: Sequence[str], hashes: Iterable[bytes]) -> dict[str, list[bytes]]:
    wanted = [keys.binding(b"", hashed) for hashed in hashes]
    return dict.fromkeys(spaces, wanted)


def _as_analysed(record: Record, analysis: Analysis) -> Record:
    return replace(
        record,
        space=analysis.space,
        lang=analysis.lang,
        fingerprint=analysis.fingerprint,
        text_hash=analysis.text_hash,
        short=analysis.short,
        sketch=analysis.sketch,
        terms=analysis.terms,
        figures=analysis.figures,
    )
