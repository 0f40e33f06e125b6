"""Dual writes: during a migration every commit to the serving spaces is copied to the shadow spaces.

The decision is copied, with index entries of the shadow space's own fingerprint. It may be interrupted and
run by several processes at once (docs/design/index-migration.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from aggregator.domain import Analysis, AnalyzeMany, Article, ArticleRecord, build_record, copy_metadata
from aggregator.errors import RateLimited
from aggregator.index import Index, Snapshot, keys
from aggregator.index.bindings import Binding, BindingSnapshot, bindings_under
from aggregator.store.base import Transaction
from aggregator.store.optimistic import commit_attempts


@dataclass(frozen=True, slots=True)
class PostedArticle:
    """An article as posted (None: without its text) and its record; a stored text need not be compared."""

    article: Article | None
    record: ArticleRecord
    is_stored_text: bool = False


class DualWriter:
    """Keeps ``index.shadow_spaces`` equal to ``index.spaces``.

    ``space_of`` names the new space of a language: that of the serving record if its model stays, so that
    there is nothing to copy. ``newer_stays``: the shadow spaces take articles directly; newer versions and
    ids that the serving spaces lack stay. ``other_recipe``: text hashes are not comparable.
    """

    def __init__(
        self,
        index: Index,
        analyze_many: AnalyzeMany,
        space_of: Callable[[str], str],
        *,
        newer_stays: bool = False,
        other_recipe: bool = False,
    ) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self._space_of = space_of
        self._newer_stays = newer_stays
        self._other_recipe = other_recipe

    async def replicate(
        self, posted: Sequence[PostedArticle], moved: Sequence[bytes] = ()
    ) -> list[PostedArticle]:
        """Copy these articles; returns those whose text is missing or not the stored one. Idempotent.

        ``moved``: id hashes of others whose group has changed.
        """
        posted_by_hash = {keys.id_hash(item.record.id): item for item in posted}
        missing = await self.find_missing(posted)
        records = await self._shadow_records(missing)
        await self._index.records.insert(list(records.values()), {})
        await self._reconcile(list(dict.fromkeys((*posted_by_hash, *moved))), records, {})
        inserted = [item for item in missing if item.record.number in records]
        for item in await self.find_missing(inserted) if inserted else ():  # it left the serving spaces
            await self.drop_records([item.record.number])
        return [item for item in missing if item.record.number not in records]

    async def find_missing(self, posted: Sequence[PostedArticle]) -> list[PostedArticle]:
        """Those of the articles whose version is not in the shadow spaces, nor a newer one that stays."""
        posted_by_hash = {keys.id_hash(item.record.id): item for item in posted}
        shadow = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, posted_by_hash))
        return [
            item
            for hashed, item in posted_by_hash.items()
            if self._space_of(item.record.lang) != item.record.space
            and not any(
                known.binding.number == item.record.number
                or (self._newer_stays and known.binding.number > item.record.number)
                for known in bindings_under(shadow, keys.BINDING + hashed)
            )
        ]

    async def remove_deleted(self, deleted: Mapping[str, int]) -> None:
        """Remove the versions (ids and numbers) that were deleted in the serving spaces, if they are here."""
        numbers = {keys.id_hash(id_): number for id_, number in deleted.items()}
        shadow = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, numbers))
        await self.replicate_removal(
            [
                known
                for hashed, number in numbers.items()
                for known in bindings_under(shadow, keys.BINDING + hashed)
                if known.binding.number == number
            ]
        )

    async def replicate_removal(self, removed: Sequence[BindingSnapshot]) -> None:
        """Copy the removal of these serving bindings; their duplicates are repointed as well."""
        removed_by_hash = {keys.id_hash(known.binding.id): known.binding for known in removed}
        wanted = [keys.duplicate_ids(binding.group) for binding in removed_by_hash.values()]
        lists = await self._index.segments.read(dict.fromkeys(self._index.shadow_spaces, wanted))
        rows = b"".join(
            v for space in self._index.shadow_spaces for v in lists.values_in_all_segments(space, wanted) if v
        )
        members = [rows[i : i + 16] for i in range(0, len(rows), 16)]
        await self._reconcile(list(dict.fromkeys([*removed_by_hash, *members])), {}, removed_by_hash)
        await self.drop_records([binding.number for binding in removed_by_hash.values()])

    async def ensure_absent(self, id_: str) -> None:
        """Remove the shadow bindings of an id that the serving spaces do not contain."""
        await self._reconcile([keys.id_hash(id_)], {}, {})

    async def drop_records(self, numbers: Sequence[int]) -> None:
        """Delete the shadow records of versions that were removed or replaced."""
        for space in self._index.shadow_spaces:
            await self._index.records.delete(dict.fromkeys(numbers, space))

    async def update_metadata(self, record: ArticleRecord) -> None:
        """Copy the metadata of a serving record whose version is in the shadow spaces."""
        hashed = keys.id_hash(record.id)
        shadow = await self._index.segments.read(_binding_keys(self._index.shadow_spaces, [hashed]))
        for known in bindings_under(shadow, keys.BINDING + hashed):
            number = known.binding.number
            shadow_record = (await self._index.records.read({number: known.space})).get(number)
            if shadow_record is not None and number == record.number:
                await self._index.articles.update_metadata(known, copy_metadata(record, shadow_record))

    async def _shadow_records(self, missing: Sequence[PostedArticle]) -> dict[int, ArticleRecord]:
        records = dict[int, ArticleRecord]()
        texts = [(item, item.article) for item in missing if item.article]
        analyses = await self._analyze_many([article for _, article in texts]) if texts else []
        for (item, article), analysis in zip(texts, analyses, strict=True):
            if isinstance(analysis, RateLimited):  # not analyzed yet, so not to be skipped
                raise analysis
            if isinstance(analysis, Analysis) and self._is_text_of_record(item, analysis):
                number, first_version = item.record.number, item.record.first_version
                built = build_record(article, analysis, number, first_version)
                records[number] = copy_metadata(item.record, built)
        return records

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
        index, shadow_spaces = self._index, self._index.shadow_spaces
        shadow = await index.segments.read(_binding_keys(shadow_spaces, id_hashes))
        read = await index.segments.read(_binding_keys(index.spaces, id_hashes))
        serving = {
            hashed: found[0].binding
            for hashed in id_hashes
            if (found := bindings_under(read, keys.BINDING + hashed))
        }
        copies = {hashed: bindings_under(shadow, keys.BINDING + hashed) for hashed in id_hashes}
        states = [keys.state(version.number) for version in (*serving.values(), *removed.values())]
        for space in shadow_spaces:
            shadow.values.update((await index.segments.read_more(shadow, space, states)).values)
        promoted = {  # duplicates that have become canonical
            copy.binding.number: copy.space
            for hashed, version in serving.items()
            for copy in copies[hashed]
            if copy.binding.number == version.number
            and version.outcome.match is None
            and copy.binding.outcome.match is not None
        }
        records = {**new_records, **await index.records.read(promoted)}
        changed: list[bytes] = []
        transactions: list[Transaction] = []
        for hashed, found_copies in copies.items():
            latest, gone = serving.get(hashed), removed.get(hashed)
            known = latest or gone
            if self._newer_stays and (
                known is None or any(copy.binding.number > known.number for copy in found_copies)
            ):
                continue
            for space in shadow_spaces:
                copy = next((found.binding for found in found_copies if found.space == space), None)
                transaction = self._plan_transaction(shadow, space, hashed, copy, latest, gone, records)
                if transaction is not None:
                    changed.append(hashed)
                    transactions.append(transaction)
        await index.store.commit_many(transactions)
        return list(dict.fromkeys(changed))

    def _plan_transaction(
        self,
        shadow: Snapshot,
        space: str,
        hashed: bytes,
        copy: Binding | None,
        serving: Binding | None,
        removed: Binding | None,
        records: Mapping[int, ArticleRecord],
    ) -> Transaction | None:
        """The transaction that makes ``copy`` in ``space`` match the serving binding; None if it does."""
        segment = self._index.transactions(shadow.stacks[space])
        unchanged = shadow.unchanged_check(space, keys.BINDING + hashed)
        if serving is not None:
            record = records.get(serving.number)
            is_copied = copy is not None and copy.number == serving.number
            if is_copied or (record is not None and record.space == space):
                binding = msgspec.structs.replace(serving, text_hash=(record or copy or serving).text_hash)
                if copy == binding:
                    return None
                state = keys.state(serving.number)
                if shadow.newest_value(space, state) != keys.DEAD:
                    checks = [unchanged, shadow.unchanged_check(space, state)]
                    return segment.copy_in(binding, copy, record, checks)
                # It was removed by another writer: what that left is read again.
        if copy is not None:
            return segment.remove_copy(copy, [unchanged])
        if removed is not None and shadow.newest_value(space, keys.state(removed.number)) != keys.DEAD:
            writes = segment.tombstone_writes(removed)
            return Transaction((shadow.unchanged_check(space, keys.SEALED),), tuple(writes))
        return None


def _binding_keys(spaces: Sequence[str], id_hashes: Collection[bytes]) -> dict[str, list[bytes]]:
    return {space: [keys.BINDING + hashed for hashed in id_hashes] for space in spaces}
