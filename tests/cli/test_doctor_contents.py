"""Findings of ``aggregator doctor`` on API keys, the detector, stored values and unencrypted connections."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from aggregator.app import open_service
from aggregator.auth.api_keys import API_KEYS_KEY, ApiKeys
from aggregator.cli import main
from aggregator.cli.doctor_contents import check_index, ok
from aggregator.domain import Article
from aggregator.events.webhooks.outbox import OUTBOX_KEY
from aggregator.settings import Settings
from aggregator.store.base import Put
from aggregator.time_units import DAY_MS, wall_clock_ms
from tests.support.server_fixture import serving_alone
from tests.support.stores import open_patient_store


def test_keys_and_detector_lag_are_reported(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without keys, then with their number per role and the one that expires soon."""

    def findings() -> dict[str, list[str]]:
        assert main(["doctor", "--store-url", valkey_url, f"--port={free_port}", "--json"]) == 0
        found: dict[str, list[str]] = {}
        for finding in json.loads(capsys.readouterr().out):
            found.setdefault(finding["subject"], []).append(f"{finding['mark']}: {finding['sentence']}")
        return found

    before = findings()
    for name, role, more in (
        ("root", "admin", ()),
        ("desk", "editor", ()),
        ("prometheus", "reader", ("--expires", "3d")),
    ):
        assert main(["keys", "add", name, "--role", role, *more, "--store", valkey_url]) == 0
    capsys.readouterr()
    after = findings()

    assert before["access"] == ["note: No keys: the service is open to every program on this machine."]
    assert before["events"] == [
        "ok: The detector is 0 articles behind since its last checkpoint.",
        "note: Learning: 0 of 7 days. Until then routine may fire; "
        f"`aggregator ingest FILE --backfill --server http://127.0.0.1:{free_port}` shortens it.",
        "ok: The newest 0 events can be read; 0 webhook deliveries pending.",
    ]
    assert (
        after["access"][0]
        == "ok: 3 active keys (1 admin, 1 editor, 1 reader), 0 expired; bootstrap key not set."
    )
    assert after["access"][1].startswith("note: The key of 'prometheus' expires on ")
    assert re.search("; `aggregator keys rotate [0-9a-f]{8}` replaces it.$", after["access"][1])
    assert len(after["access"]) == 2

    assert main(["keys", "list", "--store", valkey_url]) == 0
    (old,) = re.findall(r"^(\S+) .*prometheus", capsys.readouterr().out, re.MULTILINE)
    assert main(["keys", "rotate", old, "--store", valkey_url]) == 0
    new = capsys.readouterr().out.split("_")[1]
    rotated = findings()["access"]
    assert rotated[1].endswith(f"; it was rotated to {new}: nothing to do once its user sends that.")
    assert main(["keys", "revoke", new, "--store", valkey_url]) == 0
    capsys.readouterr()
    assert findings()["access"][1].endswith(f"; `aggregator keys rotate {old}` replaces it.")


def test_missing_and_expired_keys_are_reported(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a key a service on a public address does not start; expired keys are still required."""

    def access_findings(*options: str) -> tuple[int, list[str]]:
        code = main(["doctor", "--store-url", valkey_url, f"--port={free_port}", "--json", *options])
        found = json.loads(capsys.readouterr().out)
        return code, [f"{f['mark']}: {f['sentence']}" for f in found if f["subject"] == "access"]

    public = access_findings("--host", "192.0.2.7")
    assert public[0] == 2
    assert public[1][0].startswith("wrong: No keys: the service does not start on 192.0.2.7")
    proxied = access_findings("--public-url", "https://news.example")
    assert proxied[0] == 2
    assert proxied[1][0].startswith("wrong: No keys: everybody who reaches https://news.example may read and")
    assert access_findings("--host", "192.0.2.7", "--auth-disabled")[1] == [
        "note: No keys: the service is open to every machine that can reach it."
    ]

    async def add_expired_key() -> None:
        store = open_patient_store(valkey_url)
        await ApiKeys(store, lambda: 0).add("brief", "reader", expires_ms=1)
        await store.close()

    asyncio.run(add_expired_key())
    assert access_findings()[1][1].startswith(
        "wrong: All 1 keys have expired: unless the service has a bootstrap key, which these settings lack, "
    )


def test_keys_without_an_admin_key_are_a_problem(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every caller needs a key then, and none may do everything; a bootstrap key is an admin key."""

    async def add_reader() -> None:
        store = open_patient_store(valkey_url)
        await ApiKeys(store, lambda: 0).add("brief", "reader")
        await store.close()

    asyncio.run(add_reader())
    codes, outputs = [], []
    for bootstrap_key in ("", "x" * 40):
        monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", bootstrap_key)
        codes.append(main(["doctor", "--store-url", valkey_url, f"--port={free_port}"]))
        outputs.append(capsys.readouterr().out)

    assert codes == [1, 0]
    assert "wrong  access    There are keys but no active admin key" in outputs[0]
    assert "no active admin key" not in outputs[1]


def test_corrupt_values_are_reported(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One finding per value. If the store is unreachable, only that is reported."""

    def wrong_subjects(url: str) -> tuple[int, list[str]]:
        code = main(["doctor", "--store-url", url, f"--port={free_port}", "--json"])
        return code, [f["subject"] for f in json.loads(capsys.readouterr().out) if f["mark"] == "wrong"]

    async def corrupt() -> None:
        store = open_patient_store(valkey_url)
        await store.put([Put(API_KEYS_KEY, b"rubbish"), Put(OUTBOX_KEY, b"rubbish")])
        await store.close()

    asyncio.run(corrupt())

    assert wrong_subjects(valkey_url) == (1, ["contents", "contents"])
    assert wrong_subjects("redis://127.0.0.1:1") == (3, ["store"])


@pytest.mark.parametrize(("days_passed", "count"), [(29, 0), (40, 3), (60, 4)])
@pytest.mark.parametrize("has_expired_before", [True, False])
async def test_what_expires_is_counted_before_the_start(
    days_passed: int, count: int, has_expired_before: bool
) -> None:
    """With a shorter retention than that of the service, or after a pause; what has expired is said apart."""
    start_ms = clock_ms = wall_clock_ms()
    settings = Settings(store_url="memory", retention_days=30)
    async with open_service(settings, clock=lambda: clock_ms) as service:
        retention = service.background.maintenance.jobs.retention
        for number in range(4):
            clock_ms = start_ms + (number == 3) * 20 * DAY_MS
            article = Article(id=str(number), text=f"Tern {number} landed.", lang="eo")
            await service.articles.ingest.submit(article)
        (space,) = (space for space in service.articles.index.spaces if space.startswith("xx."))
        if has_expired_before:  # not with a service that kept all
            await retention.expire(space, start_ms)
        clock_ms = start_ms + days_passed * DAY_MS
        before = await check_index(service)
        await retention.expire(space, clock_ms)
        after = await check_index(service)

    (found,) = [finding for finding in before if "retention_days" in finding.sentence]
    assert found.mark == ("note" if count else "ok")
    if count:
        assert found.sentence.startswith(f"{space}: about {count} of 4 texts, which arrived before ")
        assert found.sentence.endswith(", expire when the service runs with retention_days = 30.")
    none = ok("index", "No text of the sample expires when the service runs with retention_days = 30.")
    assert (none in before) == (not count)
    assert none in after
    waiting = [f.sentence for f in after if "wait to be deleted" in f.sentence]
    assert [s.endswith(f" UTC; about {count} have expired and wait to be deleted.") for s in waiting] == [
        True
    ] * bool(count)


def test_untrusted_sources_are_listed(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that was mistyped, of which the audit finds no article."""
    assert main(["audit", "rivall", "--distrust", "--store", valkey_url]) == 0
    assert "No article of this source is stored: check the name." in capsys.readouterr().err

    assert main(["doctor", "--store-url", valkey_url, f"--port={free_port}"]) == 0
    assert "note   sources   Untrusted, so not stored: rivall" in capsys.readouterr().out


@pytest.mark.services
def test_a_running_service_with_a_bootstrap_key_is_not_called_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Doctor, which does not know the key, asks it; on another port the service is not offered again."""
    with serving_alone(tmp_path, AGGREGATOR_BOOTSTRAP_KEY="k" * 32) as (_, url):
        data, port = str(tmp_path / "data"), url.rpartition(":")[2]
        assert main(["doctor", "--data-dir", data, "--port", port]) == 0
        assert "the running service requires its bootstrap key" in capsys.readouterr().out
        assert main(["doctor", "--data-dir", data, "--port", "1"]) == 0
        said = capsys.readouterr().out
        assert "starts the service" not in said and "again with the --port of the service." in said
