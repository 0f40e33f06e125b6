"""Registry of the spaces in the store: which there are, and what is needed to read each of them.

One key maps the name of each space to a ``StoredSpace``. A service adds its spaces before it stores an
article, so a space that its settings do not read is known at the next start.

**A space is covered** if the service reads it, or if all its articles have been copied to spaces that are
covered (``covered_spaces``): what a completed migration leaves behind is not
a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from aggregator import __version__
from aggregator.analysis.analyzer import SpaceParts
from aggregator.index import keys
from aggregator.index.codec.format_byte import PLAIN, decode_formatted
from aggregator.index.segments import Segments
from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.store.optimistic import commit_attempts


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
    """The registry."""
    return (await _read_with_raw(store))[0]


async def change(store: Store, edit: Callable[[Registry], Registry]) -> Registry:
    """Replace the registry by ``edit`` of it; the result. Raises StoreUnavailable, CommitConflict."""
    for _ in commit_attempts("The list of indexes kept changing; try again."):
        registry, raw = await _read_with_raw(store)
        edited = edit(dict(registry))
        if edited == registry:
            return edited
        put = Put(keys.SPACE_REGISTRY, PLAIN + msgspec.msgpack.encode(edited))
        if not await store.commit(Transaction((ValueEquals(put.key, raw),), (put,))):
            return edited
    raise AssertionError("unreachable")


async def _read_with_raw(store: Store) -> tuple[Registry, bytes | None]:
    raw = (await store.read([keys.SPACE_REGISTRY]))[0]
    registry = decode_formatted(_decoder, raw, "The list of indexes") if raw else {}
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
