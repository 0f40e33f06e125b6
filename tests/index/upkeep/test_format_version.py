"""The format key of a store: which data a version accepts and which it leaves unchanged."""

from __future__ import annotations

import pytest

from aggregator import __version__
from aggregator.app import open_service
from aggregator.errors import ConfigurationError
from aggregator.index import keys
from aggregator.index.upkeep import format_version
from aggregator.settings import Settings
from aggregator.store.base import Put, Store
from tests.support.stores import open_patient_store


async def format_key(store: Store) -> bytes | None:
    """The stored format key."""
    return (await store.read([format_version.FORMAT_KEY]))[0]


async def test_write_sets_the_key_of_an_empty_store(store: Store) -> None:
    """``check`` does not set it; a second ``write`` leaves it unchanged."""
    await format_version.check(store)
    assert await format_key(store) is None
    for _ in range(2):
        await format_version.write(store)

    assert await format_key(store) == b"8 " + __version__.encode()


async def test_data_without_a_format_key_is_rejected(store: Store) -> None:
    """An interrupted restore leaves it; nothing is changed."""
    await store.put([Put(keys.record("en.3f2a", 7), b"\x01")])
    for operation in (format_version.check, format_version.write):
        with pytest.raises(ConfigurationError, match="articles without the format of its data"):
            await operation(store)

    assert await format_key(store) is None


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (
            b"9 0.9.0",
            r"format 9, written by version 0\.9\.0; this version .* reads 8\. Start that version",
        ),
        (b"2 0.0.1", r"format 2, written by version 0\.0\.1; .* reads 8\. Keep that version running"),
        (b"\xffjunk", "belongs to another program"),
    ],
)
async def test_another_format_is_rejected_and_left_unchanged(
    store: Store, stored: bytes, message: str
) -> None:
    """The version that wrote the data still starts."""
    await store.put([Put(format_version.FORMAT_KEY, stored)])
    for operation in (format_version.check, format_version.write):
        with pytest.raises(ConfigurationError, match=message):
            await operation(store)

    assert await format_key(store) == stored


async def test_the_service_does_not_start_on_a_newer_format(valkey_url: str) -> None:
    """All commands open the store in ``open_service``."""
    store = open_patient_store(valkey_url)
    await store.put([Put(format_version.FORMAT_KEY, b"99 9.0.0")])
    await store.close()

    with pytest.raises(ConfigurationError, match="format 99"):
        async with open_service(Settings(store_url=valkey_url)):
            raise AssertionError("it started")
