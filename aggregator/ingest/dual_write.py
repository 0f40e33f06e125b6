"""Dual writes: during a migration every commit to the serving spaces is copied to the shadow spaces.

The serving space decides and its decision is copied: same article number, first version and verdict, index
entries of the shadow space's own fingerprint. Nothing is decided or announced twice.

Reconciliation of one id reads the shadow binding, then the serving binding, and makes them equal in one
commit that succeeds only if the shadow binding is unchanged; it repeats until nothing differs. It may be
interrupted and run by several processes at once: a number that left is marked dead in the shadow space even
if it never was there, and the last read follows the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from aggregator.domain import Analysis, AnalyzeMany, Article, ArticleRecord, copy_metadata
from aggregator.errors import RateLimited
from aggregator.index import Index, Snapshot, keys
from aggregator.index.bindings import BindingSnapshot
from aggregator.index.codec.binding_codec import Binding
from aggregator.store.base import Check, Transaction, ValueEquals
from aggregator.store.optimistic import commit_attempts

ConvertRecord = Callable[[ArticleRecord], ArticleRecord | None]


@dataclass(frozen=True, slots=True)
class PostedArticle:
    """An article as posted (None: without its text) and its record; a stored text need not be compared."""

    article: Article | None
    record: ArticleRecord
    is_stored_text: bool = False


class DualWriter:
    """Keeps ``index.shadow_spaces`` equal to ``index.spaces``.

    ``convert_record`` turns a serving record into a shadow record without the text, or returns None.
    ``newer_stays``: the shadow spaces take articles directly; newer versions and ids that the serving spaces
    lack stay. ``other_recipe``: text hashes are not comparable.
    """

    def __init__(
        self,
        index: Index,
        analyze_many: AnalyzeMany,
        convert_record: ConvertRecord,
        *,
        newer_stays: bool = False,
        other_recipe: bool = False,
    ) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self._convert_record = convert_record
        self._newer_stays = newer_stays
        self._other_recipe = other_recipe

    async def replicate(self, posted: Sequence[PostedArticle]) -> list[PostedArticle]:
        """Copy these articles; returns those whose text is missing or not the stored one. Idempotent."""
        posted_by_hash = {keys.id_hash(item.record.id): item for item in posted}
        missing = await self.find_missing(posted)
        records = await self._shadow_records(missing)
        await self._index.records.insert(
            [r for r in records.values() if r.space in self._index.shadow_spaces], {}
        )
        await self._reconcile(list(posted_by_hash), records, {})
        return [item for item in missing if item.record.number not in records]

    async def find_missing(self, posted: Sequence[PostedArticle]) -> list[PostedArticle]:
        """Those of the articles whose version is not in the shadow spaces, nor a newer one that stays."""
        posted_by_hash = {keys.id_hash(item.record.id): item for item in posted}
        shadow = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, posted_by_hash))
        return [
            item
            for hashed, item in posted_by_hash.items()
            if not any(
                known.binding.number == item.record.number
                or (self._newer_stays and known.binding.number > item.record.number)
                for known in self._index.bindings.of_hash(shadow, hashed)
            )
        ]

    def can_convert(self, record: ArticleRecord) -> bool:
        """Whether a shadow record follows from the serving record, without the text."""
        return self._convert_record(record) is not None

    async def remove_deleted(self, deleted: Mapping[str, int]) -> None:
        """Remove the versions (ids and numbers) that were deleted in the serving spaces, if they are here."""
        numbers = {keys.id_hash(id_): number for id_, number in deleted.items()}
        shadow = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, numbers))
        await self.replicate_removal(
            [
                known
                for hashed, number in numbers.items()
                for known in self._index.bindings.of_hash(shadow, hashed)
                if known.binding.number == number
            ]
        )

    async def replicate_removal(self, removed: Sequence[BindingSnapshot]) -> None:
        """Copy the removal of these serving bindings; their duplicates are repointed as well."""
        removed_by_hash = {keys.id_hash(known.binding.id): known.binding for known in removed}
        wanted = [keys.duplicate_ids(b"", binding.group) for binding in removed_by_hash.values()]
        lists = await self._index.segments.read(dict.fromkeys(self._index.shadow_spaces, wanted))
        rows = b"".join(
            v for space in self._index.shadow_spaces for v in lists.values_in_all_segments(space, wanted) if v
        )
        members = [rows[i : i + 16] for i in range(0, len(rows), 16)]
        await self._reconcile(list(dict.fromkeys([*removed_by_hash, *members])), {}, removed_by_hash)
        for space in self._index.shadow_spaces:
            await self._index.records.delete({b.number: space for b in removed_by_hash.values()})

    async def ensure_absent(self, id_: str) -> None:
        """Remove the shadow bindings of an id that the serving spaces do not contain."""
        await self._reconcile([keys.id_hash(id_)], {}, {})

    async def drop_record(self, number: int) -> None:
        """Delete the shadow record of a version that was replaced."""
        for space in self._index.shadow_spaces:
            await self._index.records.delete({number: space})

    async def update_metadata(self, record: ArticleRecord) -> None:
        """Copy the metadata of a serving record whose version is in the shadow spaces."""
        hashed = keys.id_hash(record.id)
        shadow = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, [hashed]))
        for known in self._index.bindings.of_hash(shadow, hashed):
            number = known.binding.number
            shadow_record = (await self._index.records.read({number: known.space})).get(number)
            if shadow_record is not None and number == record.number:
                await self._index.articles.update_metadata(known, copy_metadata(record, shadow_record))

    async def _shadow_records(self, missing: Sequence[PostedArticle]) -> dict[int, ArticleRecord]:
        records = {item.record.number: self._convert_record(item.record) for item in missing}
        texts = [item for item in missing if records[item.record.number] is None and item.article is not None]
        analyses = await self._analyze_many([item.article for item in texts if item.article]) if texts else []
        for item, analysis in zip(texts, analyses, strict=True):
            if isinstance(analysis, RateLimited):  # not analyzed yet, so not to be skipped
                raise analysis
            if isinstance(analysis, Analysis) and self._is_text_of_record(item, analysis):
                records[item.record.number] = _with_analysis(item.record, analysis)
        return {number: record for number, record in records.items() if record is not None}

    def _is_text_of_record(self, item: PostedArticle, analysis: Analysis) -> bool:
        """With another recipe the hashes of equal texts differ: then the headlines are compared."""
        if item.is_stored_text or analysis.text_hash == item.record.text_hash:
            return True
        return self._other_recipe and bool(analysis.title) and analysis.title == item.record.title

    async def _reconcile(
        self,
        id_hashes: Sequence[bytes],
        new_records: Mapping[int, ArticleRecord],
        removed: Mapping[bytes, Binding],
    ) -> None:
        """Make the shadow bindings of these ids equal to the serving ones. Raises CommitConflict."""
        waiting = list(id_hashes)
        for _ in commit_attempts("An article kept changing while the shadow index followed; send it again."):
            if not waiting:
                return
            waiting = await self._reconcile_once(waiting, new_records, removed)

    async def _reconcile_once(
        self,
        id_hashes: Sequence[bytes],
        new_records: Mapping[int, ArticleRecord],
        removed: Mapping[bytes, Binding],
    ) -> list[bytes]:
        """Read and commit each id once; returns those that differed."""
        index = self._index
        shadow = await index.segments.read(_binding_keys(index.shadow_spaces, id_hashes))
        serving = await index.segments.read(_binding_keys(index.spaces, id_hashes))
        shadow_bindings = {hashed: index.bindings.of_hash(shadow, hashed) for hashed in id_hashes}
        serving_bindings = {
            hashed: next(iter(index.bindings.of_hash(serving, hashed)), None) for hashed in id_hashes
        }
        states = await self._read_states(
            shadow, [known for known in serving_bindings.values() if known], removed.values()
        )
        records = await self._with_promoted_records(shadow_bindings, serving_bindings, new_records)
        changed: list[bytes] = []
        transactions: list[Transaction] = []
        for hashed in id_hashes:
            if self._newer_stays and _is_outdated(
                serving_bindings[hashed], removed.get(hashed), shadow_bindings[hashed]
            ):
                continue
            for space in index.shadow_spaces:
                transaction = self._plan_transaction(
                    shadow,
                    states,
                    space,
                    next((known for known in shadow_bindings[hashed] if known.space == space), None),
                    serving_bindings[hashed],
                    removed.get(hashed),
                    records,
                )
                if transaction is not None:
                    changed.append(hashed)
                    transactions.append(transaction)
        await index.store.commit_many(transactions)
        return list(dict.fromkeys(changed))

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
        """The transaction that makes ``space`` match the serving space for one id; None if it does."""
        segment = self._index.transactions(shadow, space)
        if serving_binding is not None and _belongs_in_space(
            serving_binding.binding, space, shadow_binding, records
        ):
            record = records.get(serving_binding.binding.number)
            binding = _with_text_hash(serving_binding.binding, record, shadow_binding)
            if shadow_binding is not None and shadow_binding.binding == binding:
                return None
            state = keys.state(b"", serving_binding.binding.number)
            if states.newest_value(space, state) == keys.DEAD:  # removed by another writer: read again
                return (
                    None
                    if shadow_binding is None
                    else segment.remove_copy(shadow_binding.binding, [_unchanged_check(shadow_binding)])
                )
            key = keys.binding_by_id(b"", serving_binding.binding.id)
            checks = [shadow.unchanged_check(space, key), states.unchanged_check(space, state)]
            return segment.copy_in(
                binding, shadow_binding.binding if shadow_binding else None, record, checks
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
        """``new_records``, and the shadow records of duplicates that have become canonical."""
        promoted = {
            known.binding.number: known.space
            for hashed, bindings in shadow_bindings.items()
            for known in bindings
            if (serving := serving_bindings[hashed]) is not None
            and serving.binding.number == known.binding.number
            and serving.binding.outcome.match is None
            and known.binding.outcome.match is not None
        }
        return {**new_records, **(await self._index.records.read(promoted) if promoted else {})}


def _belongs_in_space(
    binding: Binding, space: str, shadow_binding: BindingSnapshot | None, records: Mapping[int, ArticleRecord]
) -> bool:
    if shadow_binding is not None and shadow_binding.binding.number == binding.number:
        return True
    record = records.get(binding.number)
    return record is not None and record.space == space


def _is_outdated(
    serving_binding: BindingSnapshot | None,
    removed: Binding | None,
    shadow_bindings: Sequence[BindingSnapshot],
) -> bool:
    known = serving_binding.binding if serving_binding is not None else removed
    return known is None or any(shadow.binding.number > known.number for shadow in shadow_bindings)


def _with_text_hash(
    binding: Binding, record: ArticleRecord | None, shadow_binding: BindingSnapshot | None
) -> Binding:
    if record is not None:
        return msgspec.structs.replace(binding, text_hash=record.text_hash)
    if shadow_binding is not None and shadow_binding.binding.number == binding.number:
        return msgspec.structs.replace(binding, text_hash=shadow_binding.binding.text_hash)
    return binding


def _unchanged_check(binding: BindingSnapshot) -> Check:
    return ValueEquals(binding.key, binding.raw)


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
        minor_terms=analysis.minor_terms,
        opening_mask=analysis.opening_mask,
    )
