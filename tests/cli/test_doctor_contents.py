"""What doctor tells of keys, of the detector and of a store that is spoken to in the clear."""

from __future__ import annotations

import asyncio
import json

import pytest

from aggregator.auth.api_keys import API_KEYS_KEY, ApiKeys
from aggregator.cli import main
from aggregator.cli.doctor_contents import check_tls
from aggregator.events.webhooks.dispatcher import OUTBOX_KEY
from aggregator.store.base import Put
from aggregator.store.redis import open_redis_store


def test_doctor_tells_of_keys_and_of_the_detector(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """None at first; then how many of which role, which of them ends soon, and what waits to be read."""

    def told() -> dict[str, list[str]]:
        assert main(["doctor", "--store-url", valkey_url, f"--port={free_port}", "--json"]) == 0
        found: dict[str, list[str]] = {}
        for finding in json.loads(capsys.readouterr().out):
            found.setdefault(finding["subject"], []).append(f"{finding['mark']}: {finding['sentence']}")
        return found

    before = told()
    for name, role, more in (("desk", "editor", ()), ("prometheus", "reader", ("--expires", "3d"))):
        assert main(["keys", "add", name, "--role", role, *more, "--store", valkey_url]) == 0
    capsys.readouterr()
    after = told()

    assert before["access"] == [
        "note: No keys: the service asks for none and is for programs of this machine alone."
    ]
    assert before["events"] == [
        "ok: The detector has 0 articles of the stream to read since its last checkpoint.",
        "ok: 0 newest events can be read; 0 calls of webhooks are owed.",
    ]
    assert after["access"][0] == "ok: 2 keys in use (1 editor, 1 reader), 0 expired; bootstrap key not set."
    assert (
        after["access"][1].startswith("note: The key of 'prometheus' ends on ") and len(after["access"]) == 2
    )


def test_doctor_tells_why_nobody_would_come_in(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service for other machines does not start without a key; expired ones open nothing, and are asked for all the same."""

    def told(*options: str) -> tuple[int, list[str]]:
        code = main(["doctor", "--store-url", valkey_url, f"--port={free_port}", "--json", *options])
        found = json.loads(capsys.readouterr().out)
        return code, [f"{f['mark']}: {f['sentence']}" for f in found if f["subject"] == "access"]

    elsewhere = told("--host", "192.0.2.7")
    assert elsewhere[0] == 2
    assert elsewhere[1][0].startswith("wrong: No keys: the service does not start on 192.0.2.7")
    assert told("--host", "192.0.2.7", "--auth-disabled")[1] == [
        "note: No keys: the service asks for none and is for everybody who reaches it."
    ]

    async def expired() -> None:
        store = open_redis_store(valkey_url)
        await ApiKeys(store, lambda: 0).add("brief", "reader", expires_ms=1)
        await store.close()

    asyncio.run(expired())
    assert told()[1][0].startswith("wrong: All 1 keys have expired, so nobody is let in; ")


def test_doctor_tells_of_what_cannot_be_read(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Callers are told to ask it. Where the store is away altogether that alone is said."""

    def wrong(url: str) -> tuple[int, list[str]]:
        code = main(["doctor", "--store-url", url, f"--port={free_port}", "--json"])
        return code, [f["subject"] for f in json.loads(capsys.readouterr().out) if f["mark"] == "wrong"]

    async def damage() -> None:
        store = open_redis_store(valkey_url)
        await store.put([Put(API_KEYS_KEY, b"rubbish"), Put(OUTBOX_KEY, b"rubbish")])
        await store.close()

    asyncio.run(damage())

    assert wrong(valkey_url) == (3, ["contents", "contents"])
    assert wrong("redis://127.0.0.1:1") == (3, ["store"])


@pytest.mark.parametrize(
    ("url", "clear"),
    [
        ("redis://store.example:6379/0", True),
        ("redis+cluster://10.0.0.7:6379", True),
        ("rediss://store.example:6380", False),
        ("redis://127.0.0.1:6379", False),
        ("unix:///run/redis.sock", False),
    ],
)
def test_a_store_elsewhere_without_tls_is_worth_a_word(url: str, clear: bool) -> None:
    """Passwords and articles would pass readable."""
    assert bool(list(check_tls(url))) == clear
