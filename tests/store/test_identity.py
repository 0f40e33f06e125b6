"""What is an incident, and what is not: by the values alone, and for one process on a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.store.base import Put
from aggregator.store.identity import (
    IDENTITY_KEY,
    MEMORY_NAME,
    Identity,
    Remembered,
    Seen,
    StoreMemory,
    accept,
    find_incident,
    memory_name,
    remembered_ids,
)
from aggregator.store.redis import RedisStore
from tests.support.stores import open_patient_store

KNOWN = Remembered("a", 10, has_keys=True)
KEYS_KEY, FORMAT = b"{access}keys", Put(b"{format}", b"7 x")


def seen(id_: str = "a", *, follows: tuple[str, ...] = (), taken: int = 10, keys: bool = True) -> Seen:
    """A store that says so."""
    return Seen(Identity(id_, follows) if id_ else None, taken, (), keys)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (seen(taken=11), None),
        (seen("b", follows=("x", "a"), taken=3, keys=False), None),
        (seen(""), "was emptied or exchanged for an empty one"),
        (seen("b"), "another installation"),
        (seen(taken=9), "it has taken 9 articles, and had 10"),
        (seen(keys=False), "has lost its API keys"),
        (Seen(Identity("a"), 10, ("z",), True), "running processes know"),
    ],
)
def test_a_store_is_judged_by_what_is_remembered(found: Seen, sentence: str | None) -> None:
    """A successor may have anything; only the store of others is foreign."""
    incident = find_incident(KNOWN, found)

    assert (incident is None) is (sentence is None)
    if incident is not None:
        assert (
            sentence is not None and sentence in incident.sentence and "--accept-store" in incident.sentence
        )
        assert incident.is_foreign is (sentence == "another installation")


async def begun(store: RedisStore, directory: Path, *, serving: bool = True) -> StoreMemory:
    """The memory of a process that starts."""
    memory = StoreMemory()
    await memory.begin(store, directory / MEMORY_NAME, "redis://h", KEYS_KEY, FORMAT, serving=serving)
    return memory


@pytest.mark.integration
async def test_processes_share_the_count_and_learn_of_an_incident(valkey_url: str, tmp_path: Path) -> None:
    """Of two that add at once no article is forgotten; a command gives no store an identity."""
    store = open_patient_store(valkey_url)
    assert (await begun(store, tmp_path, serving=False)).incident is None
    assert await store.read([IDENTITY_KEY]) == [None]
    one, other = await begun(store, tmp_path / "1"), await begun(store, tmp_path / "2")
    for memory in (one, other):
        memory.pending += 2
    for memory in (one, other, one, other):
        await memory.observe()
    assert await store.read([b"{format}taken"]) == [b"4"]

    await store.delete([IDENTITY_KEY, b"{format}taken", b"{format}"])
    assert not await one.is_outdated(dict.fromkeys(one.keys))
    assert one.incident is not None and not one.started
    assert await store.read([b"{format}"]) == [FORMAT.value]  # a later start finds a store of the service
    late = await begun(store, tmp_path / "3")
    assert late.started and late.incident is not None and "running processes know" in late.incident.sentence

    await accept(store, [])
    for memory in (one, late):
        await memory.observe()
        assert memory.incident is None
    await store.close()


def test_a_memory_names_addresses_without_passwords() -> None:
    """A new password does not make a new store; another address, prefix or socket does."""
    own = Path("/data")
    one, same = memory_name("redis://a:b@host/0", own), memory_name("redis://host/0", own)
    assert one == same != memory_name("redis://host/0?prefix=x:", own)
    embedded = [
        memory_name(url, own)
        for url in ("", "unix:///data/store.sock", "unix:///tmp/aggregator-1/store.sock")
    ]
    assert embedded == ["embedded"] * 3
    assert memory_name("unix:///run/valkey/store.sock", own) not in (one, "embedded")
    assert remembered_ids(Path("/absent")) == []


@pytest.mark.integration
async def test_an_embedded_store_is_named_as_such(valkey_url: str, tmp_path: Path) -> None:
    """In ``/readyz`` and on the page of the service, which know another server by its protocol."""
    store = open_patient_store(valkey_url)
    await begun(store, tmp_path)
    assert (await store.info()).kind == "redis"
    url = f"unix://{tmp_path}/store.sock"
    await StoreMemory().begin(store, tmp_path / MEMORY_NAME, url, KEYS_KEY, FORMAT, serving=False)
    assert (await store.info()).kind == "embedded"
    await store.close()


@pytest.mark.integration
async def test_a_memory_that_cannot_be_written_is_one_warning(
    valkey_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The service continues; only its next start will not know the store."""
    store = open_patient_store(valkey_url)
    (tmp_path / "file").touch()
    memory = await begun(store, tmp_path / "file")
    for _ in range(4):
        await memory.observe()
        memory._save()
        memory.pending += 1
    await store.close()
    assert memory.incident is None and caplog.text.count("cannot be written") == 1
