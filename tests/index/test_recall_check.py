"""A sound index passes its audit; a broken one does not, however it is broken."""

import numpy as np
import pytest

from aggregator.index import Index, keys
from aggregator.index.blocks import PLANS, BlockPlan
from aggregator.index.recall_check import RecallReport, check_recall
from aggregator.store.base import Delete, Put, Store, Transaction
from tests.support.loaders import FIRST_MS, SPACE, fill

NOW_MS = FIRST_MS + 10_000_000
BASE = 0x0123_4567_89AB_CDEF


def fingerprints() -> list[int]:
    """Sixty around one, and sixty strangers."""
    rng = np.random.default_rng(4)
    near = [BASE ^ sum(1 << int(b) for b in rng.choice(64, k % 8, False)) for k in range(60)]
    return near + rng.integers(0, 2**64, 60, np.uint64).tolist()


async def audited(index: Index, sample: int = 200) -> RecallReport:
    """Everything compared with everything."""
    return await check_recall(index, SPACE, sample, NOW_MS)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_a_sound_index_passes(store: Store, plan: BlockPlan) -> None:
    """Over two segments; a sample of everything finds all pairs."""
    index = Index(store, [SPACE], plan=plan)
    await fill(index, fingerprints()[:70])
    await index.segments.seal(SPACE, 0, FIRST_MS)
    await fill(index, fingerprints()[70:], 70)

    found = await audited(index)

    assert found.ok
    assert (found.stored, found.sampled) == (120, 120)
    assert found.neighbor_pairs > 60 * 30
    assert found.missed == (0,) * 8


async def test_a_sample_is_as_large_as_asked(store: Store) -> None:
    """And its neighbours are looked for among all."""
    index = Index(store, [SPACE])
    await fill(index, fingerprints())

    found = await audited(index, 10)

    assert found.ok and found.sampled == 10 and found.neighbor_pairs >= 10


async def test_a_lost_bucket_is_noticed(store: Store) -> None:
    """One of an article's four buckets is gone: some look-ups miss it, and the blocks differ."""
    index = Index(store, [SPACE])
    await fill(index, fingerprints())
    tag = keys.tag(SPACE, 0)
    await store.commit(Transaction((), (Delete(keys.block_bucket(tag, 0, BASE >> 48)),)))

    found = await audited(index)

    assert not found.ok
    assert sum(found.missed) > 0 and found.inconsistent_entries > 0


async def test_an_entry_in_the_wrong_bucket_is_noticed(store: Store) -> None:
    """As many entries in each block as ever, but two buckets are exchanged."""
    index = Index(store, [SPACE])
    one, other = 0x1111_2222_3333_4444, 0xAAAA_BBBB_CCCC_DDDD
    await fill(index, [one, other])
    tag = keys.tag(SPACE, 0)
    places = [keys.block_bucket(tag, 2, value) for value in (0x3333, 0xCCCC)]
    first, second = await store.read(places)
    assert first and second
    await store.commit(Transaction((), (Put(places[0], second), Put(places[1], first))))

    found = await audited(index)

    assert not found.ok and found.inconsistent_entries == 1


async def test_an_article_that_no_bucket_has_is_noticed(store: Store) -> None:
    """The stream knows it, its record is there, and no look-up comes by."""
    index = Index(store, [SPACE])
    await fill(index, [BASE])
    tag = keys.tag(SPACE, 0)
    gone = [
        Delete(keys.block_bucket(tag, block, value))
        for block, value in enumerate(PLANS["4x16"].block_values(BASE))
    ]
    await store.commit(Transaction((), tuple(gone)))

    found = await audited(index)

    assert not found.ok and found.not_self_retrievable == 1


async def test_a_deleted_article_is_not_missed(store: Store) -> None:
    """Its entries stay in the buckets, and it may leave while the audit runs."""
    index = Index(store, [SPACE])
    await fill(index, fingerprints())
    await index.articles.delete("a3")

    assert (await audited(index)).ok


async def test_an_empty_space_is_sound(store: Store) -> None:
    """Nothing stored, nothing missed."""
    found = await audited(Index(store, [SPACE]))

    assert found.ok and found.stored == found.sampled == found.neighbor_pairs == 0
