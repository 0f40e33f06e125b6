"""Registry of the spaces in the store: which there are, and what is needed to read each of them.

One key maps the name of each space to a ``StoredSpace``. A service adds its spaces before it stores an
article, so a space that its settings do not read is known at the next start. A store that was written before
the registry existed is searched once (``find_spaces``): the names of spaces are few enough to try them all.

**A space is covered** if the service reads it, or if all its articles have been copied to spaces that are
covered (``covered_spaces``): what a completed migration leaves behind is not
a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from aggregator import __version__
from aggregator.analysis.analyzer import SpaceParts
from aggregator.analysis.text.language import LANGUAGE_GROUPS
from aggregator.index import keys
from aggregator.index.codec.format_byte import FORMAT_1, decode_formatted
from aggregator.index.segments import Segments
from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.store.optimistic import commit_attempts

KEYS_PER_READ = 1024
SPACE_HASHES = range(1 << 16)


class StoredSpace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a space; empty fields are unknown.

    ``models_dir``: the setting of the service that wrote it, an absolute path ("": the bundled models).
    ``program``: the version that wrote it. ``copied_to``: spaces that contain all its articles; this holds
    while the space has the version ``copied_version`` (b"": while each write goes to both).
    """

    model: str = ""
    recipe: str = ""
    plan: str = ""
    models_dir: str = ""
    program: str = ""
    copied_to: tuple[str, ...] = ()
    copied_version: bytes = b""


Registry = dict[str, StoredSpace]
_decoder = msgspec.msgpack.Decoder(Registry)


def describe(parts: SpaceParts, models_dir: str) -> StoredSpace:
    """The entry of a space that this version of the program writes."""
    return StoredSpace(parts.model, parts.recipe, parts.plan, models_dir, __version__)


async def read(store: Store) -> Registry:
    """The registry; spaces that were stored before it existed are found first."""
    return (await _read_with_raw(store))[0]


async def change(store: Store, edit: Callable[[Registry], Registry]) -> Registry:
    """Replace the registry by ``edit`` of it; the result. Raises StoreUnavailable, CommitConflict."""
    for _ in commit_attempts("The list of indexes kept changing; try again."):
        registry, raw = await _read_with_raw(store)
        edited = edit(dict(registry))
        if raw and edited == registry:
            return edited
        put = Put(keys.SPACE_REGISTRY, FORMAT_1 + msgspec.msgpack.encode(edited))
        if not await store.commit(Transaction((ValueEquals(put.key, raw),), (put,))):
            return edited
    raise AssertionError("unreachable")


async def _read_with_raw(store: Store) -> tuple[Registry, bytes | None]:
    """The registry and its stored value, None if it has to be stored."""
    raw = (await store.read([keys.SPACE_REGISTRY]))[0]
    registry = decode_formatted(_decoder, raw, "The list of indexes") if raw else await find_spaces(store)
    return registry, raw


async def set_copied(store: Store, versions: Mapping[str, bytes], targets: Iterable[str]) -> None:
    """Record that ``targets`` contain all articles of the spaces ``versions``, as of these versions."""

    def edit(registry: Registry) -> Registry:
        for space, version in versions.items():
            entry = registry.get(space, StoredSpace())
            registry[space] = msgspec.structs.replace(entry, copied_to=tuple(targets), copied_version=version)
        return registry

    await change(store, edit)


async def forget(store: Store, space: str) -> None:
    """Remove a space; copies in it no longer count."""

    def edit(registry: Registry) -> Registry:
        registry.pop(space, None)
        return {
            name: msgspec.structs.replace(entry, copied_to=()) if space in entry.copied_to else entry
            for name, entry in registry.items()
        }

    await change(store, edit)


async def covered_spaces(store: Store, registry: Registry, read_spaces: Iterable[str]) -> set[str]:
    """``read_spaces``, and the spaces whose articles are all in covered ones."""
    covered = set(read_spaces)
    candidates = {space: entry for space, entry in registry.items() if entry.copied_to}
    while found := {
        space
        for space, entry in candidates.items()
        if space not in covered and covered.issuperset(entry.copied_to)
    }:
        unchanged = {
            space
            for space in found
            if candidates[space].copied_version in (b"", await space_version(store, space))
        }
        covered |= unchanged
        candidates = {space: entry for space, entry in candidates.items() if space not in found}
    return covered


async def space_version(store: Store, space: str) -> bytes:
    """The version of the writable segment: equal values mean that nothing was written in between."""
    last = (await Segments(store).head(space)).last
    return (await store.read([keys.version(keys.tag(space, last))]))[0] or b"none"


async def find_spaces(store: Store) -> Registry:
    """Every space in a store without a registry; nothing but the block plan is known of them.

    Tries all names, 590,000 keys: about 1 s, on a cluster 16 s of processor time, for any number of articles.
    """
    if not await _has_records(store):
        return {}
    found: Registry = {}
    names = [f"{group}.{digits:04x}" for group in LANGUAGE_GROUPS for digits in SPACE_HASHES]
    step = KEYS_PER_READ
    for start in range(0, len(names), step):
        chunk = names[start : start + step]
        tags = [keys.tag(space, 0) for space in chunk]
        traces = [
            [keys.space_head(space) for space in chunk],
            [keys.version(tag) for tag in tags],
            [keys.sampled_numbers(tag) for tag in tags],
        ]
        values = await store.read([key for group in traces for key in group])
        for i, space in enumerate(chunk):
            if any(values[i + offset] for offset in range(0, len(values), len(chunk))):
                found[space] = StoredSpace(plan=await _find_plan(store, space))
    return found


async def _has_records(store: Store) -> bool:
    async for batch in store.scan_batches(keys.RECORD_PREFIX):
        if batch:
            return True
    return False


async def _find_plan(store: Store, space: str) -> str:
    """The block plan, by the buckets of blocks that only this plan has."""
    tag = keys.tag(space, (await Segments(store).head(space)).last)
    for plan, block, width in (("8x8", 7, 8), ("5x13", 4, 13)):
        for start in range(0, 1 << width, KEYS_PER_READ):
            values = range(start, min(start + KEYS_PER_READ, 1 << width))
            if any(await store.read([keys.block_bucket(tag, block, value) for value in values])):
                return plan
    return "4x16"
