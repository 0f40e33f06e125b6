"""Integrity check: sound data passes, every flipped bit of a record and every wrong posting is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aggregator.domain import Article
from aggregator.errors import DamagedValue
from aggregator.index import Index, keys
from aggregator.index.upkeep.integrity_check import IntegrityReport, check_integrity
from aggregator.store.base import Put, Store
from aggregator.time_units import HOUR_MS
from tests.support.factories import core, story
from tests.support.loaders import FIRST_MS, SPACE, fill
from tests.support.store_steps import scan

NOW_MS = FIRST_MS + 10_000_000
FINGERPRINTS = [0x0123_4567_89AB_CDEF, 0x1111_2222_3333_4444, 0xAAAA_BBBB_CCCC_DDDD]
TAG = keys.tag(SPACE, 0)


async def check(store: Store) -> IntegrityReport:
    """The check of the test's space."""
    return await check_integrity(Index(store, [SPACE]), SPACE, NOW_MS)


async def change(store: Store, key: bytes, edit: Callable[[bytearray], object]) -> None:
    """Change one value in place."""
    (value,) = await store.read([key])
    assert value is not None
    edited = bytearray(value)
    edit(edited)
    await store.put([Put(key, bytes(edited))])


def flip(at: int) -> Callable[[bytearray], object]:
    """Flip one bit of the byte at a position."""

    def edit(value: bytearray) -> None:
        value[at] ^= 4

    return edit


async def test_sound_data_passes(store: Store) -> None:
    """All records, bindings and postings are counted."""
    await fill(Index(store, [SPACE]), FINGERPRINTS)

    report = await check(store)

    assert report.ok
    assert (report.records, report.bindings, report.postings) == (3, 3, 12)


async def test_a_flipped_bit_in_a_record_is_found(store: Store) -> None:
    """With the id of its article."""
    numbers = await fill(Index(store, [SPACE]), FINGERPRINTS)
    await change(store, keys.record(SPACE, numbers[1]), flip(20))

    report = await check(store)

    assert not report.ok
    assert (report.damaged_records, report.damaged_ids) == ([numbers[1]], ["a1"])
    assert report.wrong_postings == report.unknown_postings == 0


async def test_a_flipped_bit_in_a_binding_is_found(store: Store) -> None:
    """Bindings have checksums too."""
    await fill(Index(store, [SPACE]), FINGERPRINTS)
    await change(store, TAG + keys.binding("a2"), flip(5))

    assert (await check(store)).damaged_bindings == 1


@pytest.mark.parametrize(
    ("at", "wrong", "unknown"), [(0, 1, 0), (7, 0, 1)], ids=["remainder", "article number"]
)
async def test_a_flipped_bit_in_a_posting_is_found(store: Store, at: int, wrong: int, unknown: int) -> None:
    """It disagrees with its record, or no article has its number; a block lacks the article."""
    await fill(Index(store, [SPACE]), FINGERPRINTS)
    await change(store, keys.block_bucket(TAG, 1, 0x4567), flip(at))

    report = await check(store)

    assert (report.wrong_postings, report.unknown_postings, report.missing_postings) == (wrong, unknown, 1)


async def test_a_bucket_that_ends_within_a_posting_is_found(store: Store) -> None:
    """It has lost a byte."""
    await fill(Index(store, [SPACE]), FINGERPRINTS)
    await change(store, keys.block_bucket(TAG, 1, 0x4567), lambda value: value.pop())

    assert (await check(store)).damaged_buckets == 1


async def test_analyzed_articles_agree_with_their_postings(store: Store) -> None:
    """Sketch and term postings of real analyses; exact copies share postings, a deleted article left some."""
    service = core(store)
    for number in range(6):
        await service.post(f"a{number}", story(number, 60))
    await service.post("copy", story(0, 60))
    await service.ingest.delete("a5")
    (space,) = service.index.spaces
    now_ms = service.clock() + HOUR_MS

    headline = "Lot 1 of the auction at Stonebury sold for 170 crowns"
    await service.ingest.submit(Article(id="all-keys", title=headline, text=story(7, 60)))

    report = await check_integrity(service.index, space, now_ms)

    assert report.ok and report.records == 7
    (key, *_) = [key for key in await scan(store, keys.tag(space, 0) + b"s") if not key.endswith(b"stream")]
    await change(store, key, flip(0))
    assert not (await check_integrity(service.index, space, now_ms)).ok


async def test_a_damaged_article_can_be_deleted_and_stored_again(store: Store) -> None:
    """The repair that the runbook names."""
    service = core(store)
    await service.post("a", story(1, 60))
    (key,) = await scan(store, keys.RECORD_PREFIX)
    await change(store, key, flip(30))
    with pytest.raises(DamagedValue, match="its checksum does not match"):
        await service.index.articles.get("a")

    await service.ingest.delete("a")
    assert (await service.post("a", story(1, 60))).outcome.verdict == "new"
    (space,) = service.index.spaces
    assert (await check_integrity(service.index, space, service.clock() + HOUR_MS)).ok
