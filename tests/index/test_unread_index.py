"""The readiness check for stored articles that the settings do not read."""

from __future__ import annotations

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.app import build_core
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator.index import Index, keys, space_registry
from aggregator.index.blocks import PLANS
from aggregator.index.deletion import delete_space
from aggregator.index.space_registry import Registry, describe
from aggregator.index.unread_index import UnreadIndex, count_articles
from aggregator.store.base import Put, Store
from tests.support.factories import Clock, in_process, story

CURRENT, OTHER = Analyzer({"xx": HashedModel()}), Analyzer({"xx": HashedModel()}, "5x13")
(CURRENT_SPACE,), (OTHER_SPACE,) = CURRENT.spaces, OTHER.spaces


def described(analyzer: Analyzer) -> Registry:
    """The entries of the analyzer's spaces."""
    return {space: describe(parts, "") for space, parts in analyzer.space_parts.items()}


def checker(store: Store, serving: Analyzer, shadow: Analyzer | None = None) -> UnreadIndex:
    """The check of a service that reads the serving and the shadow spaces."""
    own = described(serving) | (described(shadow) if shadow else {})
    return UnreadIndex(store, own, serving.spaces, tuple(own), Clock())


async def post(store: Store, analyzer: Analyzer, *ids: int) -> None:
    """Store articles."""
    index = Index(store, analyzer.spaces, plan=PLANS[analyzer.plan_name])
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
    assert (
        f"of the index {OTHER_SPACE}, which these settings do not read: block_plan=5x13 reads it" in sentence
    )
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

    await checker(store, OTHER, CURRENT).record_exclusive_writes()
    assert await checker(store, CURRENT).check() is None, "it wrote to both"
    await checker(store, OTHER).record_exclusive_writes()
    assert await checker(store, CURRENT).check() is not None


async def test_entries_without_records_are_not_counted(store: Store) -> None:
    """Deleted and expired articles leave entries in the buckets."""
    await post(store, OTHER, 1, 2, 3)
    entry = described(OTHER)[OTHER_SPACE]
    assert (await count_articles(store, OTHER_SPACE, entry)).articles == 3
    await store.delete(await store.scan(keys.record_prefix(OTHER_SPACE)))
    assert (await count_articles(store, OTHER_SPACE, entry)).articles == 0


async def test_texts_of_articles_that_another_space_has_are_kept(store: Store) -> None:
    """Deleting a space deletes its texts, except those that were copied with their article."""
    await checker(store, CURRENT, OTHER).register()
    await store.put([Put(keys.record(space, 1), b"record") for space in (CURRENT_SPACE, OTHER_SPACE)])
    await store.put([Put(keys.record(OTHER_SPACE, 2), b"record")])
    await store.put([Put(keys.text(number), b"text") for number in (1, 2)])

    await delete_space(store, OTHER_SPACE)

    assert await store.read([keys.text(1), keys.text(2)]) == [b"text", None]
    assert OTHER_SPACE not in await space_registry.read(store)
    assert await store.scan(keys.RECORD_PREFIX) == [keys.record(CURRENT_SPACE, 1)]
