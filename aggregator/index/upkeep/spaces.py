"""Spaces in the store: their registry, and the readiness check for stored articles that nobody reads.

One key maps the name of each space to a ``StoredSpace``; a service adds its spaces before it stores an
article. With another model or recipe it reads other spaces, and ids of the former ones would be
unknown, their copies new. So it is not ready while a space with articles is not **covered**: read, or copied
completely to covered spaces (``covered_spaces``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from aggregator.analysis.analyzer import group_of
from aggregator.analysis.shingles import distinct
from aggregator.domain import arrival_ms_of
from aggregator.index import keys
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import NUMBER_BYTES, decode_numbers
from aggregator.index.segments import Segments, scan_block
from aggregator.store.base import Put, Store
from aggregator.store.decoding import PLAIN
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import MINUTE_MS, format_minute

FOREIGN_INDEX_CHECK = "unread_index"
RECOUNT_INTERVAL_MS = USE_TTL_MS = MINUTE_MS
SAMPLING_STEP = 64
MIN_SAMPLED_ARTICLES = 200  # with fewer, all buckets are read
STREAM_READ = "; within 8 days of the switch this makes /sources and audit lose the days before for good"
OTHER_SETTINGS = "{} is used by a service with other settings; if it has ended since, repeat this in a minute"
PROBED_RECORDS = 2_000  # with no more articles the count is exact


class StoredSpace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a space; empty fields are unknown.

    ``models_dir``: an absolute path ("": the bundled models). ``program``: the version that wrote it.
    ``copied_to``: spaces with all its articles, while it has ``copied_version`` (b"": while each write goes
    to both). ``written``: by every service that has recorded its writes since it was set.
    """

    model: str = ""
    recipe: str = ""
    models_dir: str = ""
    program: str = ""
    copied_to: tuple[str, ...] = ()
    copied_version: bytes = b""
    written: bool = False


Registry = dict[str, StoredSpace]
_FORMAT = ValueFormat[Registry](msgspec.msgpack.Decoder(Registry), "The list of indexes", dict, PLAIN)


def registry_of(store: Store) -> StoredValue[Registry]:
    """The registry of a store."""
    return StoredValue(store, keys.SPACE_REGISTRY, _FORMAT)


async def set_copied(store: Store, versions: Mapping[str, bytes], targets: Iterable[str]) -> None:
    """Record that ``targets`` contain all articles of the spaces ``versions``, as of these versions."""

    def edit(registry: Registry) -> Registry:
        return registry | {
            space: msgspec.structs.replace(
                registry.get(space, StoredSpace()), copied_to=tuple(targets), copied_version=version
            )
            for space, version in versions.items()
        }

    await registry_of(store).edit(edit)


async def covered_spaces(store: Store, registry: Registry, read_spaces: Iterable[str]) -> set[str]:
    """``read_spaces``, and the spaces whose articles are all in covered ones."""
    covered = set(read_spaces)
    copied = {
        space: entry.copied_to
        for space, entry in registry.items()
        if entry.copied_to and entry.copied_version in (b"", await space_version(store, space))
    }
    while found := {s for s, to in copied.items() if s not in covered and covered.issuperset(to)}:
        covered |= found
    return covered


async def leftovers(store: Store, read_spaces: Sequence[str]) -> list[str]:
    """The spaces that are not in ``read_spaces``, which have all their articles. Raises StoreUnavailable."""
    registry = await registry_of(store).read()
    return sorted(await covered_spaces(store, registry, read_spaces) - set(read_spaces))


async def space_version(store: Store, space: str) -> bytes:
    """The version of the writable segment: equal values mean that nothing was written in between."""
    last = (await Segments(store).head(space)).last
    return (await store.read([keys.tag(space, last) + keys.VERSION]))[0] or b"none"


@dataclass(frozen=True, slots=True)
class ForeignSpace:
    """A space that is not read: about how many articles it has, and when the first and last arrived.

    ``sample``: numbers of articles, in ascending order.
    """

    space: str
    entry: StoredSpace
    articles: int
    oldest_ms: int = 0
    newest_ms: int = 0
    sample: Sequence[int] = ()

    def below(self, number: int) -> int:
        """About how many articles have a lower number."""
        return round(self.articles * bisect_left(self.sample, number) / max(1, len(self.sample)))


class ForeignIndex:
    """The spaces that the service does not read, and the readiness check that reports them.

    ``own``: the serving and shadow spaces. ``read``: those that must contain every article.
    """

    def __init__(
        self,
        store: Store,
        own: Mapping[str, StoredSpace],
        serving: Sequence[str],
        read: Sequence[str],
        clock: Callable[[], int],
    ) -> None:
        self._store, self._clock = store, clock
        self._own = dict(own)
        self._serving, self._read = tuple(serving), tuple(read)
        self._counted: dict[str, tuple[int, ForeignSpace]] = {}
        self.articles, self._has_recorded = 0, False

    async def check(self) -> str | None:
        """The readiness check; ``articles`` then counts the unread articles. Raises StoreUnavailable."""
        return " ".join([self.sentence(unread) for unread in await self.find()]) or None

    async def register(self) -> None:
        """Add the own spaces to the registry."""

        def edit(registry: Registry) -> Registry:
            own = {}
            for space, entry in self._own.items():
                is_shadow = space in self._read and space not in self._serving  # which has copies only
                old = registry.get(space, StoredSpace(copied_to=self._serving if is_shadow else ()))
                own[space] = msgspec.structs.replace(
                    entry, copied_to=old.copied_to, copied_version=old.copied_version, written=old.written
                )
            return registry | own

        await registry_of(self._store).edit(edit)

    async def record_use(self) -> None:
        """For each process that serves, ready or not, more often than every ``USE_TTL_MS``."""
        await self._store.put([Put(keys.SPACE_USE_PREFIX + s.encode(), b"", USE_TTL_MS) for s in self._own])

    async def record_writes(self) -> None:
        """For processes that store articles: copies of the serving spaces elsewhere become incomplete."""
        is_first, self._has_recorded = not self._has_recorded, True  # then what others recorded stays

        def edit(registry: Registry) -> Registry:
            written = {
                s: msgspec.structs.replace(e, written=s in self._own and (e.written or is_first))
                for s, e in registry.items()
            }
            return written | {
                space: msgspec.structs.replace(entry, copied_to=(), copied_version=b"")
                for space, entry in written.items()
                if space in self._serving and not self._own.keys() >= set(entry.copied_to)
            }

        await registry_of(self._store).edit(edit)

    async def find(self) -> list[ForeignSpace]:
        """The unread spaces that hold articles. Raises StoreUnavailable."""
        registry = await registry_of(self._store).read()
        if not registry.keys() >= self._own.keys():  # the store was emptied, or a write failed
            await self.register()
            registry = await registry_of(self._store).read()
        covered = await covered_spaces(self._store, registry, self._read)
        unread = [
            await self._count(space, entry) for space, entry in registry.items() if space not in covered
        ]
        self._counted = {found.space: self._counted[found.space] for found in unread}
        self.articles = sum(found.articles for found in unread)
        return [found for found in unread if found.articles]

    async def leftovers(self) -> list[str]:
        """The spaces that no service reads or needs: another space contains all their articles."""
        used = {*self._own, *await self.used_elsewhere()}
        return [space for space in await leftovers(self._store, self._read) if space not in used]

    async def used_elsewhere(self) -> list[str]:
        """Other spaces that a running service uses, or the last one wrote to (migration, full store)."""
        entries = sorted((await registry_of(self._store).read()).items())
        uses = await self._store.read([keys.SPACE_USE_PREFIX + space.encode() for space, _ in entries])
        is_full = not (await self._store.info()).ready
        return [
            space
            for (space, e), use in zip(entries, uses, strict=True)
            if space not in self._own
            and (use is not None or (e.written and (is_full or (e.copied_to and not e.copied_version))))
        ]

    def sentence(self, foreign: ForeignSpace) -> str:
        """What is stored, which setting reads it, and what to do; no path, since every client may read it."""
        oldest, newest = format_minute(foreign.oldest_ms), format_minute(foreign.newest_ms)
        reader = self._how_to_read(foreign.entry, foreign.space)
        return (
            f"The store holds about {foreign.articles} articles (arrived {oldest} UTC to {newest} UTC) "
            f"of the index {foreign.space}, which these settings do not read: {reader}; `aggregator migrate` "
            "copies them into the present index (with `--leave-out` except those whose text is not stored), "
            f"and with `--delete {foreign.space}` deletes them."
        )

    def _how_to_read(self, entry: StoredSpace, space: str) -> str:
        group = group_of(space)
        own = next((self._own[name] for name in self._serving if group_of(name) == group), StoredSpace())
        if space in self._own:
            return "it is the former index of a migration that `aggregator migrate` has not completed"
        if own.recipe and entry.recipe != own.recipe:
            return f"version {entry.program or 'unknown'} wrote it with another recipe of text analysis"
        if entry.model == own.model:
            return "an earlier version of these settings reads it"
        where = "another models_dir, which a note of `aggregator doctor` names"
        where = where if entry.models_dir else "an unset models_dir"
        migrating = "if a migration is under way, restart this service with migration_models_dir set"
        return f"{where} (model {entry.model}, version {entry.program or 'unknown'}) reads it ({migrating})"

    async def _count(self, space: str, entry: StoredSpace) -> ForeignSpace:
        now_ms = self._clock()
        counted_ms, counted = self._counted.get(space, (-RECOUNT_INTERVAL_MS, None))
        if counted is None or counted.entry != entry or now_ms - counted_ms >= RECOUNT_INTERVAL_MS:
            counted = await count_articles(self._store, space, entry)
            self._counted[space] = now_ms, counted
        return counted


async def count_articles(store: Store, space: str, entry: StoredSpace) -> ForeignSpace:
    """The articles of a space, above ``PROBED_RECORDS`` estimated from a sample.

    Exact copies that share entries are not counted.
    """
    step = SAMPLING_STEP
    numbers = await _posted_numbers(store, space, step)
    if len(numbers) < MIN_SAMPLED_ARTICLES:
        step = 1
        numbers = await _posted_numbers(store, space, step)
    # Entries of articles that have left or expired remain: those that have a record are stored.
    probed = numbers[np.linspace(0, len(numbers) - 1, min(PROBED_RECORDS, len(numbers))).astype(int)]
    records = await store.read([keys.record(space, number) for number in probed.tolist()])
    stored = [number for number, record in zip(probed.tolist(), records, strict=True) if record]
    if not stored:
        return ForeignSpace(space, entry, 0)
    articles = max(1, round(step * len(numbers) * len(stored) / len(probed)))
    return ForeignSpace(space, entry, articles, arrival_ms_of(stored[0]), arrival_ms_of(stored[-1]), stored)


async def _posted_numbers(store: Store, space: str, step: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    head = await Segments(store).head(space)
    entry_bytes = PLAN.remainder_bytes + NUMBER_BYTES
    found = [np.empty(0, np.uint64)]
    tags = [keys.tag(space, segment) for segment in range(head.first, head.last + 1)]
    versions = await store.read([tag + keys.VERSION for tag in tags])  # None: never written to
    for tag in (tag for tag, version in zip(tags, versions, strict=True) if version):
        async for bucket in scan_block(store, tag, step):
            whole = bucket[: len(bucket) // entry_bytes * entry_bytes]
            found.append(decode_numbers(whole, PLAN.remainder_bytes))
    return distinct(np.concatenate(found))


async def delete_space(store: Store, space: str) -> int:
    """Delete a space that no service reads; the number of keys. Scans the store; may be repeated."""
    others = sorted((await registry_of(store).read()).keys() - {space})
    deleted = 0
    prefix = keys.record_prefix(space)
    async for found in store.scan_batches(prefix):
        numbers = [int(key[len(prefix) :], 16) for key in found]
        shared = await store.read([keys.record(other, number) for number in numbers for other in others])
        texts = [
            keys.text(number)
            for i, number in enumerate(numbers)
            if not any(shared[i * len(others) : (i + 1) * len(others)])
        ]
        await store.delete([*texts, *found])
        deleted += len(found)
    async for found in store.scan_batches(keys.space_prefix(space)):
        await store.delete(found)
        deleted += len(found)
    await store.delete([keys.space_head(space), keys.compaction_cursor(space)])

    def edit(registry: Registry) -> Registry:
        return {
            name: msgspec.structs.replace(entry, copied_to=()) if space in entry.copied_to else entry
            for name, entry in registry.items()
            if name != space
        }

    await registry_of(store).edit(edit)
    return deleted
