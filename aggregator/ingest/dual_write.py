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

from aggregator.domain import Analysis, Article, ArticleRecord
from aggregator.errors import AggregatorError, CommitConflict
from aggregator.index import MAX_COMMIT_ATTEMPTS, Index, Snapshot, keys
from aggregator.index.codec.records import Binding
from aggregator.index.duplicate_groups import BindingSnapshot
from aggregator.store.base import Check, Transaction, ValueEquals

AnalyzeMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]
ConvertRecord = Callable[[ArticleRecord], ArticleRecord | None]


@dataclass(frozen=True, slots=True)
class PostedArticle:
    """An article as it was posted (None: its text is not at hand), and its record in the serving space."""

    article: Article | None
    record: ArticleRecord


class DualWriter:
    """Keeps the spaces ``index.beside`` in step with ``index.spaces``.

    ``analyse_many`` gives analyses of the models beside. ``carry`` turns a serving record into the one beside
    without its text, where only the block plan differs; None where it cannot.
    """

    def __init__(self, index: Index, analyze_many: AnalyzeMany, convert_record: ConvertRecord) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self._convert_record = convert_record

    async def replicate(self, posted: Sequence[PostedArticle]) -> list[PostedArticle]:
        """Bring these articles in step. Returns those that cannot be: without a text, or with another one.

        Raises StoreUnavailable, Contention; repeating it is harmless.
        """
        hashes = {keys.id_hash(one.record.id): one for one in posted}
        there = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, hashes))
        behind = [
            one
            for hashed, one in hashes.items()
            if not any(
                k.binding.number == one.record.number for k in self._index.bindings_of_hash(there, hashed)
            )
        ]
        fresh = await self._shadow_records(behind)
        await self._index.put_records([r for r in fresh.values() if r.space in self._index.shadow_spaces], {})
        await self._reconcile(list(hashes), fresh, {})
        return [one for one in behind if one.record.number not in fresh]

    async def replicate_removal(self, removed: Sequence[BindingSnapshot]) -> None:
        """Articles were taken down or replaced where it is decided: here too, and their copies follow."""
        numbers = {keys.id_hash(known.binding.id): known.binding for known in removed}
        wanted = [keys.duplicate_ids(b"", binding.group) for binding in numbers.values()]
        lists = await self._index.segments.read(dict.fromkeys(self._index.shadow_spaces, wanted))
        rows = b"".join(
            v for space in self._index.shadow_spaces for v in lists.values_in_all_segments(space, wanted) if v
        )
        members = [rows[i : i + 16] for i in range(0, len(rows), 16)]
        await self._reconcile(list(dict.fromkeys([*numbers, *members])), {}, numbers)
        for space in self._index.shadow_spaces:
            await self._index.delete_records({b.number: space for b in numbers.values()})

    async def ensure_absent(self, id_: str) -> None:
        """Nothing is bound to this id where it is decided: nor is it here, afterwards."""
        await self._reconcile([keys.id_hash(id_)], {}, {})

    async def drop_record(self, number: int) -> None:
        """The record of a version that was replaced goes."""
        for space in self._index.shadow_spaces:
            await self._index.delete_records({number: space})

    async def update_metadata(self, record: ArticleRecord) -> None:
        """The metadata of a stored version changed."""
        found = await self._index.segments.read(
            _binding_keys(self._index.shadow_spaces, [keys.id_hash(record.id)])
        )
        for known in self._index.bindings_of_hash(found, keys.id_hash(record.id)):
            number = known.binding.number
            there = (await self._index.read_records({number: known.space})).get(number)
            if there is not None and number == record.number:
                names = ("title", "url", "source", "published_at_ms")
                fresh = replace(there, **{name: getattr(record, name) for name in names})
                await self._index.update_record_metadata(known, fresh)

    async def _shadow_records(self, missing: Sequence[PostedArticle]) -> dict[int, ArticleRecord]:
        """The records beside, by number."""
        found = {one.record.number: self._convert_record(one.record) for one in missing}
        texts = [one for one in missing if found[one.record.number] is None and one.article is not None]
        analysed = await self._analyze_many([one.article for one in texts if one.article]) if texts else []
        for one, analysis in zip(texts, analysed, strict=True):
            if isinstance(analysis, Analysis) and analysis.text_hash == one.record.text_hash:
                found[one.record.number] = _with_analysis(one.record, analysis)
        return {number: record for number, record in found.items() if record is not None}

    async def _reconcile(
        self,
        id_hashes: Sequence[bytes],
        new_records: Mapping[int, ArticleRecord],
        removed: Mapping[bytes, Binding],
    ) -> None:
        waiting = list(id_hashes)
        for _ in range(MAX_COMMIT_ATTEMPTS):
            if not waiting:
                return
            waiting = await self._reconcile_once(waiting, new_records, removed)
        raise CommitConflict("An article kept changing while the space beside followed; send it again.")

    async def _reconcile_once(
        self,
        id_hashes: Sequence[bytes],
        new_records: Mapping[int, ArticleRecord],
        removed: Mapping[bytes, Binding],
    ) -> list[bytes]:
        """One look and one commit each; returns those that had something to change, to be looked at again."""
        index = self._index
        there = await index.segments.read(_binding_keys(index.shadow_spaces, id_hashes))
        serving = await index.segments.read(_binding_keys(index.spaces, id_hashes))
        found = {hashed: index.bindings_of_hash(there, hashed) for hashed in id_hashes}
        now = {hashed: next(iter(index.bindings_of_hash(serving, hashed)), None) for hashed in id_hashes}
        states = await self._read_states(there, [*(k for k in now.values() if k)], removed.values())
        records = await self._with_promoted_records(found, now, new_records)
        owners: list[bytes] = []
        transactions: list[Transaction] = []
        for hashed in id_hashes:
            for space in index.shadow_spaces:
                before = next((k for k in found[hashed] if k.space == space), None)
                step = self._plan_transaction(
                    there, states, space, before, now[hashed], removed.get(hashed), records
                )
                if step is not None:
                    owners.append(hashed)
                    transactions.append(step)
        await index.store.commit_many(transactions)
        return list(dict.fromkeys(owners))

    def _plan_transaction(
        self,
        shadow: Snapshot,
        states: Snapshot,
        space: str,
        shadow_binding: BindingSnapshot | None,
        serving_binding: BindingSnapshot | None,
        removed: Binding | None,
        records: Mapping[int, ArticleRecord],
    ) -> Transaction | None:
        """What makes one space say of one id what the serving one says; None: it does."""
        segment = self._index.transactions(shadow, space)
        if serving_binding is not None and _belongs_in_space(
            serving_binding.binding, space, shadow_binding, records
        ):
            if shadow_binding is not None and shadow_binding.binding == serving_binding.binding:
                return None
            state = keys.state(b"", serving_binding.binding.number)
            if states.newest_value(space, state) == keys.DEAD:  # it left since: look again
                return (
                    None
                    if shadow_binding is None
                    else segment.remove_copy(shadow_binding.binding, [_unchanged_check(shadow_binding)])
                )
            key = keys.binding_by_id(b"", serving_binding.binding.id)
            seen = [shadow.unchanged_check(space, key), states.unchanged_check(space, state)]
            record = records.get(serving_binding.binding.number)
            return segment.copy_in(
                serving_binding.binding, shadow_binding.binding if shadow_binding else None, record, seen
            )
        if shadow_binding is not None:
            return segment.remove_copy(shadow_binding.binding, [_unchanged_check(shadow_binding)])
        if removed is not None and states.newest_value(space, keys.state(b"", removed.number)) != keys.DEAD:
            return Transaction(
                (shadow.unchanged_check(space, keys.sealed(b"")),), tuple(segment.tombstone_writes(removed))
            )
        return None

    async def _read_states(
        self, shadow: Snapshot, serving_bindings: Sequence[BindingSnapshot], removed: Iterable[Binding]
    ) -> Snapshot:
        numbers = [
            *(known.binding.number for known in serving_bindings),
            *(binding.number for binding in removed),
        ]
        merged = Snapshot(shadow.stacks)
        for space in self._index.shadow_spaces:
            wanted = [keys.state(b"", number) for number in numbers]
            merged.values.update((await self._index.segments.read_more(shadow, space, wanted)).values)
        return merged

    async def _with_promoted_records(
        self,
        shadow_bindings: Mapping[bytes, Sequence[BindingSnapshot]],
        serving_bindings: Mapping[bytes, BindingSnapshot | None],
        new_records: Mapping[int, ArticleRecord],
    ) -> dict[int, ArticleRecord]:
        """``fresh``, and the records beside of copies that are canonical now."""
        heirs = {
            known.binding.number: known.space
            for hashed, there in shadow_bindings.items()
            for known in there
            if (serving := serving_bindings[hashed]) is not None
            and serving.binding.number == known.binding.number
            and serving.binding.outcome.match is None
            and known.binding.outcome.match is not None
        }
        return {**new_records, **(await self._index.read_records(heirs) if heirs else {})}


def _belongs_in_space(
    binding: Binding, space: str, shadow_binding: BindingSnapshot | None, records: Mapping[int, ArticleRecord]
) -> bool:
    """Whether this version stands in ``space``: it does already, or its record was made for it."""
    if shadow_binding is not None and shadow_binding.binding.number == binding.number:
        return True
    record = records.get(binding.number)
    return record is not None and record.space == space


def _unchanged_check(bound: BindingSnapshot) -> Check:
    return ValueEquals(bound.key, bound.raw)


def _binding_keys(spaces: Sequence[str], id_hashes: Iterable[bytes]) -> dict[str, list[bytes]]:
    wanted = [keys.binding_by_hash(b"", hashed) for hashed in id_hashes]
    return dict.fromkeys(spaces, wanted)


def _with_analysis(record: ArticleRecord, analysis: Analysis) -> ArticleRecord:
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
