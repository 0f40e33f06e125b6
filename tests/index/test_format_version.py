"""The stamp of the store's format: which data a version takes, and which it leaves alone."""

from __future__ import annotations

import pytest

from aggregator import __version__
from aggregator.app import open_service
from aggregator.errors import ConfigurationError
from aggregator.index import format_version, keys
from aggregator.settings import Settings
from aggregator.store.base import Put, Store
from aggregator.store.redis import open_redis_store


async def stamped(store: Store) -> bytes | None:
    """What stands in the store."""
    return (await store.read([format_version.FORMAT_KEY]))[0]


async def test_an_empty_store_gets_one(store: Store) -> None:
    """Once, and not from who only looks."""
    await format_version.check(store)
    assert await stamped(store) is None
    for _ in range(2):
        await format_version.write(store)

    assert await stamped(store) == b"3 " + __version__.encode()


async def test_data_from_before_stamps_is_not_taken_for_an_empty_store(store: Store) -> None:
    """Its buckets would be read as something else; nothing is changed."""
    await store.put([Put(keys.record("en.3f2a", 7), b"\x01")])
    for look in (format_version.check, format_version.write):
        with pytest.raises(ConfigurationError, match=r"format 1, .* reads 3\."):
            await look(store)

    assert await stamped(store) is None


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            b"4 0.9.0",
            r"format 4, written by version 0\.9\.0; this version .* reads 3\. Start that version",
        ),
        (b"2 0.0.1", r"format 2, written by version 0\.0\.1; .* reads 3\. Keep that version running"),
        (b"\xffjunk", "belongs to another program"),
    ],
)
async def test_another_format_is_refused_in_one_sentence_and_left_as_it_is(
    store: Store, found: bytes, sentence: str
) -> None:
    """Nothing is changed, so the version that wrote it starts as before."""
    await store.put([Put(format_version.FORMAT_KEY, found)])
    for look in (format_version.check, format_version.write):
        with pytest.raises(ConfigurationError, match=sentence):
            await look(store)

    assert await stamped(store) == found


async def test_the_service_does_not_start_on_a_newer_format(valkey_url: str) -> None:
    """Whatever would serve, ingest or audit: all open the store in one place."""
    store = open_redis_store(valkey_url)
    await store.put([Put(format_version.FORMAT_KEY, b"99 9.0.0")])
    await store.close()

    with pytest.raises(ConfigurationError, match="format 99"):
        async with open_service(Settings(store_url=valkey_url)):
            raise AssertionError("it started")
