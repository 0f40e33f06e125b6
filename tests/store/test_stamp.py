"""The stamp of the store's format: which data a version takes, and which it leaves alone."""

from __future__ import annotations

import pytest

from aggregator import __version__
from aggregator.app import open_service
from aggregator.errors import ConfigurationError
from aggregator.settings import Settings
from aggregator.store import stamp
from aggregator.store.base import Put, Store
from aggregator.store.redis import open_store


async def stamped(store: Store) -> bytes | None:
    """What stands in the store."""
    return (await store.read([stamp.KEY]))[0]


async def test_an_empty_store_and_one_without_a_stamp_get_one(store: Store) -> None:
    """Once; what was written before stamps is of the first format, which is read."""
    await stamp.check(store)
    assert await stamped(store) is None
    for _ in range(2):
        await stamp.claim(store)

    assert await stamped(store) == b"2 " + __version__.encode()


async def test_an_older_format_that_is_read_is_raised(store: Store) -> None:
    """From now on records of the newer one are written, so the older version must refuse."""
    await store.put([Put(stamp.KEY, b"1 0.0.9")])
    await stamp.claim(store)

    assert await stamped(store) == b"2 " + __version__.encode()


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            b"3 0.9.0",
            r"format 3, written by version 0\.9\.0; this version .* reads 1 to 2\. Start that version",
        ),
        (b"0 0.0.1", r"format 0, written by version 0\.0\.1; .* reads from 1 on\."),
        (b"\xffjunk", "is not ours"),
    ],
)
async def test_another_format_is_refused_in_one_sentence_and_left_as_it_is(
    store: Store, found: bytes, sentence: str
) -> None:
    """Nothing is changed, so the version that wrote it starts as before."""
    await store.put([Put(stamp.KEY, found)])
    for look in (stamp.check, stamp.claim):
        with pytest.raises(ConfigurationError, match=sentence):
            await look(store)

    assert await stamped(store) == found


async def test_the_service_does_not_start_on_a_newer_format(valkey_url: str) -> None:
    """Whatever would serve, ingest or audit: all open the store in one place."""
    store = open_store(valkey_url)
    await store.put([Put(stamp.KEY, b"99 9.0.0")])
    await store.close()

    with pytest.raises(ConfigurationError, match="format 99"):
        async with open_service(Settings(store_url=valkey_url)):
            raise AssertionError("it started")
