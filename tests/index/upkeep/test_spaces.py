"""The readiness check for stored articles that the settings do not read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import load_term_idf
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator.index import Index, keys
from aggregator.index.upkeep.spaces import (
    USE_TTL_MS,
    ForeignIndex,
    Registry,
    StoredSpace,
    count_articles,
    covered_spaces,
    delete_space,
    registry_of,
    set_copied,
    space_version,
)
from aggregator.store.base import Put, Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Clock, in_process, story
from tests.support.store_steps import scan
from tests.support.wiring import build_core

CURRENT, OTHER = (Analyzer({"xx": HashedModel(term_idf=idf)}) for idf in (None, load_term_idf()))
(CURRENT_SPACE,), (OTHER_SPACE,) = CURRENT.spaces, OTHER.spaces


def described(analyzer: Analyzer) -> Registry:
    """The entries of the analyzer's spaces."""
    return {space: StoredSpace(p.model, p.recipe) for space, p in analyzer.space_parts.items()}


def checker(store: Store, serving: Analyzer, shadow: Analyzer | None = None) -> ForeignIndex:
    """The check of a service that reads the serving and the shadow spaces."""
    own = described(serving) | (described(shadow) if shadow else {})
    return ForeignIndex(store, own, serving.spaces, tuple(own), Clock())


async def post(store: Store, analyzer: Analyzer, *ids: int) -> None:
    """Store articles."""
    index = Index(store, analyzer.spaces)
    ingest = build_core(index, in_process(analyzer), Policy(), clock=Clock()).ingest
    for n in ids:
        await ingest.submit(Article(id=f"a{n}", text=story(n, 12), lang="eo"))


async def test_articles_of_other_settings_are_reported(store: Store) -> None:
    """An empty index of other settings is accepted; one with articles is a problem until they are gone."""
    await checker(store, OTHER).register()
    unread = checker(store, CURRENT)
    assert await unread.check() is None

    await post(store, OTHER, *range(20))
    unread = checker(store, CURRENT)
    sentence = await unread.check()
    assert sentence is not None
    assert sentence.startswith("The store holds about 20 articles (arrived 2")
    assert f"of the index {OTHER_SPACE}, which these settings do not read: an unset models_dir" in sentence
    assert unread.articles == 20
    assert "about 20 articles" in str(await checker(store, CURRENT).check()), "once registered"
    assert await checker(store, OTHER).check() is None
    assert await checker(store, CURRENT, OTHER).check() is None, "written during a migration"

    await delete_space(store, OTHER_SPACE)
    assert await unread.check() is None
    assert unread.articles == 0


async def test_copies_count_until_a_service_writes_to_the_space_alone(store: Store) -> None:
    """A migration that was given up leaves copies only; one that was completed leaves the former space."""
    await checker(store, CURRENT, OTHER).register()
    await post(store, OTHER, 1)
    assert await checker(store, CURRENT).check() is None, "the shadow space has copies only"
    assert await checker(store, CURRENT).leftovers() == [OTHER_SPACE]
    assert await checker(store, OTHER, CURRENT).check() is None

    await checker(store, OTHER, CURRENT).record_writes()
    assert await checker(store, CURRENT).check() is None, "it wrote to both"
    await checker(store, OTHER).record_writes()
    assert await checker(store, CURRENT).check() is not None


async def test_the_service_that_runs_records_what_it_writes_to(store: Store) -> None:
    """A command that only registers its spaces does not change that."""

    async def written() -> set[str]:
        return {space for space, entry in (await registry_of(store).read()).items() if entry.written}

    await checker(store, CURRENT).register()
    await checker(store, CURRENT).record_writes()
    await checker(store, CURRENT, OTHER).register()
    assert await written() == {CURRENT_SPACE}
    await checker(store, CURRENT, OTHER).record_writes()
    await checker(store, CURRENT).register()
    assert await written() == {CURRENT_SPACE, OTHER_SPACE}
    await checker(store, CURRENT).record_writes()
    assert await written() == {CURRENT_SPACE}

    migrating, former = checker(store, CURRENT, OTHER), checker(store, CURRENT)
    for _ in range(2):  # both run, and repeat it every 5 s
        await migrating.record_writes()
        await former.record_writes()
    await migrating.record_writes()
    assert await written() == {CURRENT_SPACE}, "not every service writes to both"
    await checker(store, CURRENT, OTHER).record_writes()
    assert await written() == {CURRENT_SPACE, OTHER_SPACE}, "the former one was restarted"


async def test_a_space_is_used_while_a_service_repeats_it() -> None:
    """Ready or not, whatever it writes to; afterwards the record expires."""
    clock = Clock()
    store = MemoryStore(clock)
    await checker(store, OTHER).register()
    asking = checker(store, CURRENT)
    assert await asking.used_elsewhere() == []

    await checker(store, OTHER).record_use()
    assert await asking.used_elsewhere() == [OTHER_SPACE]
    assert await checker(store, OTHER).used_elsewhere() == [], "by others"
    await set_copied(store, {OTHER_SPACE: await space_version(store, OTHER_SPACE)}, CURRENT.spaces)
    assert await asking.leftovers() == [], "what is used is not left over"

    clock.now_ms += USE_TTL_MS
    assert await asking.used_elsewhere() == []
    assert await asking.leftovers() == [OTHER_SPACE]


async def test_a_full_store_counts_what_the_last_service_wrote_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses the record of use, so its absence says nothing."""
    clock = Clock()
    store = MemoryStore(clock)
    await checker(store, OTHER).register()
    await checker(store, OTHER).record_writes()
    asking = checker(store, CURRENT)
    assert await asking.used_elsewhere() == []

    full = replace(await store.info(), ready=False, problem="The store is full.")
    monkeypatch.setattr(store, "info", AsyncMock(return_value=full))
    assert await asking.used_elsewhere() == [OTHER_SPACE]


async def test_entries_without_records_are_not_counted(store: Store) -> None:
    """Deleted and expired articles leave entries in the buckets."""
    await post(store, OTHER, 1, 2, 3)
    entry = described(OTHER)[OTHER_SPACE]
    assert (await count_articles(store, OTHER_SPACE, entry)).articles == 3
    await store.delete(await scan(store, keys.record_prefix(OTHER_SPACE)))
    assert (await count_articles(store, OTHER_SPACE, entry)).articles == 0


async def test_texts_of_articles_that_another_space_has_are_kept(store: Store) -> None:
    """Deleting a space deletes its texts, except those that were copied with their article."""
    await checker(store, CURRENT, OTHER).register()
    await store.put([Put(keys.record(space, 1), b"record") for space in (CURRENT_SPACE, OTHER_SPACE)])
    await store.put([Put(keys.record(OTHER_SPACE, 2), b"record")])
    await store.put([Put(keys.text(number), b"text") for number in (1, 2)])

    await delete_space(store, OTHER_SPACE)

    assert await store.read([keys.text(1), keys.text(2)]) == [b"text", None]
    assert OTHER_SPACE not in await registry_of(store).read()
    assert await scan(store, keys.RECORD_PREFIX) == [keys.record(CURRENT_SPACE, 1)]


OLD, MIDDLE, NEW = "en.0001", "en.0002", "en.0003"


async def register(store: Store, *spaces: str) -> None:
    """Add spaces of which nothing is known."""

    def edit(registry: Registry) -> Registry:
        return registry | {space: StoredSpace() for space in spaces}

    await registry_of(store).edit(edit)


async def covered(store: Store, *read: str) -> set[str]:
    """The covered spaces."""
    return await covered_spaces(store, await registry_of(store).read(), read)


async def test_a_space_is_covered_while_its_copies_are(store: Store) -> None:
    """Copies of copies count; two spaces that are copies of each other alone do not."""
    await register(store, OLD, MIDDLE, NEW)
    assert await covered(store, NEW) == {NEW}

    await set_copied(store, {OLD: b""}, [MIDDLE])
    assert await covered(store, NEW) == {NEW}
    await set_copied(store, {MIDDLE: b""}, [OLD])
    assert await covered(store, NEW) == {NEW}, "a cycle"
    await set_copied(store, {MIDDLE: b""}, [NEW])
    assert await covered(store, NEW) == {OLD, MIDDLE, NEW}

    await delete_space(store, MIDDLE)
    assert await covered(store, NEW) == {NEW}


async def test_a_copy_no_longer_counts_once_the_space_is_written(store: Store) -> None:
    """An older version of the program may still be serving it."""
    version = keys.tag(OLD, 0) + keys.VERSION
    await store.put([Put(version, b"first")])
    await register(store, OLD, NEW)
    await set_copied(store, {OLD: await space_version(store, OLD)}, [NEW])
    assert await covered(store, NEW) == {OLD, NEW}

    await store.put([Put(version, b"second")])
    assert await covered(store, NEW) == {NEW}


async def test_concurrent_changes_are_all_kept(store: Store) -> None:
    """The list is one value."""
    await asyncio.gather(*(register(store, f"en.{n:04x}") for n in range(8)))
    assert len(await registry_of(store).read()) == 8
