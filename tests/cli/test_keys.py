"""``aggregator keys`` with a running service, and services that other machines can reach."""

from __future__ import annotations

import asyncio
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import run

import aiohttp
import pytest

from aggregator.cli import main
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving


def keys(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The output of ``aggregator keys``, which must succeed."""
    assert main(["keys", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.services
async def test_a_running_service_accepts_new_keys_and_rejects_revoked_ones(
    valkey_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new key is accepted immediately, a revoked one is rejected within 2 s."""
    store = f"--store={valkey_url}"

    async def keys_output(*arguments: str) -> str:
        return (await asyncio.to_thread(keys, capsys, *arguments)).strip()

    await keys_output("add", "Operator", "--role", "admin", store)
    first = await keys_output("add", "Crawler of the Gazette", "--role", "crawler", "--expires", "90d", store)
    async with serving(host="0.0.0.0", store_url=valkey_url) as url, aiohttp.ClientSession(url) as session:

        async def post_status(key: str) -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            async with session.post(
                "/v1/articles", json={"id": "a", "text": "One."}, headers=headers
            ) as answer:
                return answer.status

        assert (await post_status(""), await post_status(first)) == (401, 201)
        listed = await keys_output("list", store)
        header, admin, crawler = (re.split(r"\s{2,}", line) for line in listed.splitlines())
        assert header == ["id", "role", "created", "last used", "expires", "name", "sources"]
        assert (admin[1], admin[3:5]) == ("admin", ["never", "never"])
        created, used, expires = map(datetime.fromisoformat, crawler[2:5])
        assert timedelta(0) <= used - created < timedelta(days=1)
        assert timedelta(days=89) < expires - created <= timedelta(days=90, minutes=1)
        assert crawler[5:] == ["Crawler of the Gazette", "all"]
        assert first.split("_", 2)[2] not in listed
        id_ = first.split("_")[1]
        second = await keys_output("rotate", id_, "--overlap", "1h", store)
        await keys_output("revoke", id_, store)
        async with asyncio.timeout(HANG_LIMIT_S):
            while await post_status(first) != 401:
                pass
        assert await post_status(second) == 200


@pytest.mark.services
async def test_the_first_key_is_an_admin_key(
    valkey_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another first key is refused: a running service keeps answering everybody, and the message says why.

    The last admin key cannot be revoked; the bootstrap key counts as one.
    """
    store = f"--store={valkey_url}"
    crawler = ["keys", "add", "Crawler", "--role", "crawler", store]
    async with serving(store_url=valkey_url) as url, aiohttp.ClientSession(url) as session:
        assert await asyncio.to_thread(main, crawler) == 2
        refused = capsys.readouterr()
        assert refused.out == ""
        assert "From the first key on every caller needs a key" in refused.err
        async with session.get("/v1/events") as answer:
            assert answer.status == 200

        assert await asyncio.to_thread(main, ["keys", "add", "Desk", "--role", "admin", store]) == 0
        created = capsys.readouterr()
        assert "from now on every caller needs a key" in created.err
        async with asyncio.timeout(HANG_LIMIT_S):
            while True:
                async with session.get("/v1/events") as answer:
                    if answer.status == 401:
                        break

    id_ = created.out.split("_")[1]
    assert await asyncio.to_thread(main, crawler) == 0
    assert await asyncio.to_thread(main, ["keys", "revoke", id_, store]) == 2
    assert f"id: {id_} is the last admin key" in capsys.readouterr().err
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "an-operator-key-of-at-least-32-characters")
    assert await asyncio.to_thread(main, ["keys", "revoke", id_, store]) == 0


@pytest.mark.services
def test_an_empty_list_says_how_to_create_a_key(valkey_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, so that standard output stays empty for scripts."""
    assert main(["keys", "list", "--store", valkey_url]) == 0

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "No keys; create one with `aggregator keys add NAME --role admin`.\n"


@pytest.mark.integration
@pytest.mark.parametrize(
    "command",
    [
        ("keys", "list"),
        ("keys", "revoke", "abc"),
        ("audit", "Radio"),
        ("migrate",),
        ("doctor", "--accept-store"),
        ("doctor", "--accept-clock"),
    ],
    ids=" ".join,
)
def test_a_command_that_reads_creates_no_store(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory with a typo is an error, not an empty store."""
    absent = tmp_path / "dta"

    assert main([*command, "--data-dir", str(absent)]) == 2
    assert f"data_dir: {absent} does not exist, so it contains no store." in capsys.readouterr().err
    assert not absent.exists()


@pytest.mark.integration
def test_a_service_on_a_public_address_does_not_start_without_a_key(tmp_path: Path) -> None:
    """Exit code 2, and one sentence that says what to do."""
    command = [
        sys.executable,
        "-m",
        "aggregator",
        "serve",
        "--host=0.0.0.0",
        "--port=0",
        "--store-url=memory",
    ]
    ended = run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False)

    assert ended.returncode == 2
    assert "unless the store is in memory, create one (`aggregator keys add NAME --role admin" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.integration
def test_configured_keys_are_never_printed(
    free_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by doctor nor in the error for one that is too short."""
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "geheim-geheim-geheim-geheim-geheim")
    monkeypatch.setenv("AGGREGATOR_KEY", "geheim")
    main(["doctor", "--store-url", "redis://me:geheim@127.0.0.1:1/0", f"--port={free_port}"])
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "geheim")
    assert main(["doctor"]) == 2
    output = "".join(capsys.readouterr())

    assert "bootstrap_key=(set)" in output
    assert "32 to 200" in output
    assert "geheim" not in output


def test_keys_in_a_memory_store_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    """They would be one in memory ends here."""
    assert main(["keys", "list", "--store", "memory"]) == 2
    assert "one in memory ends here" in capsys.readouterr().err
