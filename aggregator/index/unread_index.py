"""Readiness check: the store must not hold articles of a space that the service does not read.

With another model, recipe or block plan the service reads other spaces. Articles of the former ones would be
unknown: their ids not found, their copies new. The check finds such spaces by the registry
(``space_registry.py``), one small read; a space that it does not know yet is sampled, about 0.1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from aggregator.analysis.analyzer import group_of
from aggregator.domain import arrival_ms_of
from aggregator.index import keys, space_registry
from aggregator.index.blocks import PLANS
from aggregator.index.bucket_scan import scan_block
from aggregator.index.codec.distinct import distinct
from aggregator.index.codec.postings import NUMBER_BYTES, decode_numbers
from aggregator.index.segments import Segments
from aggregator.index.space_registry import Registry, StoredSpace
from aggregator.store.base import Store
from aggregator.time_units import MINUTE_MS, format_minute

CHECK_NAME = "unread_index"
RECOUNT_INTERVAL_MS = MINUTE_MS
SAMPLING_STEP = 64
MIN_SAMPLED_ARTICLES = 200  # with fewer, all buckets are read
PROBED_RECORDS = 256


@dataclass(frozen=True, slots=True)
class UnreadSpace:
    """A space that is not read: about how many articles it has, and when the first and last arrived."""

    space: str
    entry: StoredSpace
    articles: int
    oldest_ms: int = 0
    newest_ms: int = 0


class UnreadIndex:
    """The spaces in ``store`` that the service does not read, and the readiness check that reports them.

    ``own``: the serving and shadow spaces with what they depend on. ``read``: those that must contain every
    article for the service to be complete.
    """

    def __init__(
        self,
        store: Store,
        own: Mapping[str, StoredSpace],
        serving: Sequence[str],
        read: Sequence[str],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._own = dict(own)
        self._serving = tuple(serving)
        self._read = tuple(read)
        self._clock = clock
        self._counted: dict[str, tuple[int, UnreadSpace]] = {}
        self.articles = 0

    async def check(self) -> str | None:
        """The readiness check; ``articles`` then counts the unread articles. Raises StoreUnavailable."""
        sentences = [self.sentence(unread) for unread in await self.find()]
        return " ".join(sentences) or None

    async def register(self) -> None:
        """Add the own spaces to the registry."""

        def edit(registry: Registry) -> Registry:
            for space, entry in self._own.items():
                before = registry.get(space)
                copied_to = before.copied_to if before else self._serving_if_shadow(space)
                version = before.copied_version if before else b""
                registry[space] = msgspec.structs.replace(entry, copied_to=copied_to, copied_version=version)
            return registry

        await space_registry.change(self._store, edit)

    async def record_exclusive_writes(self) -> None:
        """For processes that store articles: what they write to a serving space is copied to own spaces only.

        Copies of the serving spaces in other spaces are no longer complete.
        """

        def edit(registry: Registry) -> Registry:
            for space in self._serving:
                entry = registry.get(space)
                if entry is not None and not set(entry.copied_to) <= set(self._own):
                    registry[space] = msgspec.structs.replace(entry, copied_to=(), copied_version=b"")
            return registry

        await space_registry.change(self._store, edit)

    async def find(self) -> list[UnreadSpace]:
        """The unread spaces that hold articles. Raises StoreUnavailable."""
        registry = await space_registry.read(self._store)
        if not registry.keys() >= self._own.keys():  # the store was emptied, or a write failed
            await self.register()
            registry = await space_registry.read(self._store)
        covered = await space_registry.covered_spaces(self._store, registry, self._read)
        unread = [
            await self._count(space, entry) for space, entry in registry.items() if space not in covered
        ]
        self._counted = {found.space: self._counted[found.space] for found in unread}
        self.articles = sum(found.articles for found in unread)
        return [found for found in unread if found.articles]

    async def leftovers(self) -> list[str]:
        """The spaces that are neither read nor needed: another space contains all their articles."""
        registry = await space_registry.read(self._store)
        covered = await space_registry.covered_spaces(self._store, registry, self._read)
        return sorted(covered & registry.keys() - self._own.keys())

    def sentence(self, unread: UnreadSpace) -> str:
        """What is stored, which setting reads it, and what to do; no path, since every client may read it."""
        oldest, newest = format_minute(unread.oldest_ms), format_minute(unread.newest_ms)
        reader = self._how_to_read(unread.entry, unread.space)
        return (
            f"The store holds about {unread.articles} articles (arrived {oldest} UTC to {newest} UTC) "
            f"of the index {unread.space}, which these settings do not read: {reader}; `aggregator reindex` "
            f"copies them into the present index, `aggregator delete-index {unread.space}` deletes them."
        )

    def _how_to_read(self, entry: StoredSpace, space: str) -> str:
        group = group_of(space)
        own = next((self._own[name] for name in self._serving if group_of(name) == group), StoredSpace())
        if space in self._own:
            return "it is the former index of a migration that `aggregator reindex` has not completed"
        if own.recipe and entry.recipe != own.recipe:
            return f"version {entry.program or 'unknown'} wrote it with another recipe of text analysis"
        settings = []
        if entry.model != own.model:
            where = (
                "another models_dir, which `aggregator doctor` shows"
                if entry.models_dir
                else "an unset models_dir"
            )
            settings.append(f"{where} (model {entry.model}, version {entry.program or 'unknown'})")
        if entry.plan != own.plan:
            settings.append(f"block_plan={entry.plan}")
        return f"{' with '.join(settings) or 'an earlier version of these settings'} reads it"

    def _serving_if_shadow(self, space: str) -> tuple[str, ...]:
        """A shadow space that is new contains only copies of the serving spaces' articles."""
        return () if space in self._serving or space not in self._read else self._serving

    async def _count(self, space: str, entry: StoredSpace) -> UnreadSpace:
        now_ms = self._clock()
        counted_ms, counted = self._counted.get(space, (-RECOUNT_INTERVAL_MS, None))
        if counted is None or counted.entry != entry or now_ms - counted_ms >= RECOUNT_INTERVAL_MS:
            counted = await count_articles(self._store, space, entry)
            self._counted[space] = now_ms, counted
        return counted


async def count_articles(store: Store, space: str, entry: StoredSpace) -> UnreadSpace:
    """The articles of a space, estimated from a sample of its buckets and records.

    Exact copies that share the index entries of another article are not counted.
    """
    step = SAMPLING_STEP
    numbers = await _posted_numbers(store, space, entry.plan, step)
    if len(numbers) < MIN_SAMPLED_ARTICLES:
        step = 1
        numbers = await _posted_numbers(store, space, entry.plan, step)
    if not len(numbers):
        return UnreadSpace(space, entry, 0)
    # Entries of articles that have left or expired remain: those that have a record are stored.
    probed = numbers[np.linspace(0, len(numbers) - 1, min(PROBED_RECORDS, len(numbers))).astype(int)]
    records = await store.read([keys.record(space, number) for number in probed.tolist()])
    stored = [number for number, record in zip(probed.tolist(), records, strict=True) if record]
    if not stored:
        return UnreadSpace(space, entry, 0)
    articles = max(1, round(step * len(numbers) * len(stored) / len(probed)))
    return UnreadSpace(space, entry, articles, arrival_ms_of(stored[0]), arrival_ms_of(stored[-1]))


async def _posted_numbers(
    store: Store, space: str, plan_name: str, step: int
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The article numbers in every ``step``-th bucket of the first block, ascending."""
    plan = PLANS.get(plan_name, PLANS["4x16"])
    head = await Segments(store).head(space)
    entry_bytes = plan.remainder_bytes + NUMBER_BYTES
    found = [np.empty(0, np.uint64)]
    for segment in range(head.first, head.last + 1):
        async for _, bucket in scan_block(store, keys.tag(space, segment), 0, plan.widths[0], step):
            if bucket:
                whole = bucket[: len(bucket) // entry_bytes * entry_bytes]
                found.append(decode_numbers(whole, plan.remainder_bytes))
    return distinct(np.concatenate(found))
