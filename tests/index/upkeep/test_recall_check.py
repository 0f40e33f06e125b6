"""Recall check: a sound index passes, a damaged one does not."""

import numpy as np
import pytest

from aggregator.index import Index, keys
from aggregator.index.blocks import PLANS, BlockPlan
from aggregator.index.upkeep.recall_check import RecallReport, check_recall
from aggregator.store.base import Delete, Put, Store, Transaction
from tests.support.index_layout import block_values
from tests.support.loaders import FIRST_MS, SPACE, fill

pytestmark = pytest.mark.integration

NOW_MS = FIRST_MS + 10_000_000
BASE = 0x0123_4567_89AB_CDEF


def fingerprints() -> list[int]:
    """Thirty neighbors of BASE and thirty unrelated ones."""
    rng = np.random.default_rng(4)
    near = [BASE ^ sum(1 << int(b) for b in rng.choice(64, k % 8, False)) for k in range(30)]
    return [*near, *rng.integers(0, 2**64, 30, np.uint64).tolist()]


async def check(index: Index, sample_size: int = 200) -> RecallReport:
    """By default every article is sampled."""
    return await check_recall(index, SPACE, sample_size, NOW_MS)


@pytest.mark.integration
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_a_sound_index_passes(store: Store, plan: BlockPlan) -> None:
    """Two segments; the sample has every article, so all pairs are counted."""
    index = Index(store, [SPACE], plan=plan)
    await fill(index, fingerprints()[:35])
    await index.segments.seal(SPACE, 0, FIRST_MS)
    await fill(index, fingerprints()[35:], 35)

    report = await check(index)

    assert report.ok
    assert (report.stored, report.sampled) == (60, 60)
    assert report.neighbor_pairs > 30 * 15
    assert report.missed == (0,) * 8


async def test_the_sample_has_the_requested_size(store: Store) -> None:
    """The neighbors of sampled articles are searched among all articles."""
    index = Index(store, [SPACE])
    await fill(index, fingerprints())

    report = await check(index, 10)

    assert report.ok and report.sampled == 10 and report.neighbor_pairs >= 10


async def test_a_missing_bucket_is_reported(store: Store) -> None:
    """One of an article's four buckets is deleted: some lookups miss it, and the blocks differ."""
    index = Index(store, [SPACE])
    await fill(index, fingerprints())
    tag = keys.tag(SPACE, 0)
    await store.commit(Transaction((), (Delete(keys.block_bucket(tag, 0, BASE >> 48)),)))

    report = await check(index)

    assert not report.ok
    assert sum(report.missed) > 0 and report.inconsistent_entries > 0


async def test_an_entry_in_the_wrong_bucket_is_reported(store: Store) -> None:
    """Two buckets are exchanged; the number of entries per block is unchanged."""
    index = Index(store, [SPACE])
    first_fingerprint, second_fingerprint = 0x1111_2222_3333_4444, 0xAAAA_BBBB_CCCC_DDDD
    await fill(index, [first_fingerprint, second_fingerprint])
    tag = keys.tag(SPACE, 0)
    buckets = [keys.block_bucket(tag, 2, value) for value in (0x3333, 0xCCCC)]
    first, second = await store.read(buckets)
    assert first and second
    await store.commit(Transaction((), (Put(buckets[0], second), Put(buckets[1], first))))

    report = await check(index)

    assert not report.ok and report.inconsistent_entries == 1


async def test_an_article_without_buckets_is_reported(store: Store) -> None:
    """It is in the stream and has a record, but no lookup finds it."""
    index = Index(store, [SPACE])
    await fill(index, [BASE])
    tag = keys.tag(SPACE, 0)
    deletes = [
        Delete(keys.block_bucket(tag, block, value))
        for block, value in enumerate(block_values(PLANS["4x16"], BASE))
    ]
    await store.commit(Transaction((), tuple(deletes)))

    report = await check(index)

    assert not report.ok and report.not_self_retrievable == 1


async def test_a_deleted_article_is_not_reported(store: Store) -> None:
    """Its entries stay in the buckets; articles may be deleted while the check runs."""
    index = Index(store, [SPACE])
    await fill(index, fingerprints())
    await index.articles.delete("a3")

    assert (await check(index)).ok


async def test_an_empty_space_is_sound(store: Store) -> None:
    """An empty space has no pairs, so none is missed."""
    report = await check(Index(store, [SPACE]))

    assert report.ok and report.stored == report.sampled == report.neighbor_pairs == 0
