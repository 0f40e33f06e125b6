"""``aggregator keys`` beside a running service, and a service that strangers could reach."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from subprocess import run

import aiohttp
import pytest

from aggregator.cli import main
from tests.support.server_fixture import serving


def keys(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What ``aggregator keys`` prints; it must succeed."""
    assert main(["keys", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.services
async def test_keys_open_and_close_a_running_service(
    valkey_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reachable from elsewhere: nobody without a key, an added one at once, a revoked one within two seconds."""
    store = f"--store={valkey_url}"

    async def said(*arguments: str) -> str:
        return (await asyncio.to_thread(keys, capsys, *arguments)).strip()

    first = await said("add", "Crawler of the Gazette", "--role", "crawler", "--expires", "90d", store)
    async with serving(host="0.0.0.0", store_url=valkey_url) as url, aiohttp.ClientSession(url) as session:

        async def posted(key: str) -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            async with session.post(
                "/v1/articles", json={"id": "a", "text": "One."}, headers=headers
            ) as answer:
                return answer.status

        assert (await posted(""), await posted(first)) == (401, 201)
        listed = await said("list", store)
        assert "crawler  until " in listed
        assert "Crawler of the Gazette" in listed
        assert first.split("_", 2)[2] not in listed
        second = await said("rotate", listed.split()[0], "--overlap", "1h", store)
        await said("revoke", listed.split()[0], store)
        async with asyncio.timeout(10):
            while await posted(first) != 401:
                pass
        assert await posted(second) == 200


@pytest.mark.services
def test_an_empty_list_says_how_a_key_is_made(valkey_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output stays empty for scripts; a person is not left with nothing at all."""
    assert main(["keys", "list", "--store", valkey_url]) == 0

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("No keys; `aggregator keys add NAME --role ROLE`")


def test_a_service_that_others_reach_does_not_start_without_a_key(tmp_path: Path) -> None:
    """One sentence that says what to do, exit code 2; with a key of the operator's own it would start."""
    command = [
        sys.executable,
        "-m",
        "aggregator",
        "serve",
        "--host=0.0.0.0",
        "--port=0",
        "--store-url=memory",
    ]
    ended = run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2
    assert "aggregator keys add NAME --role admin" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_own_keys_are_never_shown(
    free_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by doctor nor in the sentence about one that is too short."""
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "geheim-geheim-geheim-geheim-geheim")
    monkeypatch.setenv("AGGREGATOR_KEY", "geheim")
    main(["doctor", "--store-url", "redis://me:geheim@127.0.0.1:1/0", f"--port={free_port}"])
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "geheim")
    assert main(["doctor"]) == 2
    said = "".join(capsys.readouterr())

    assert "bootstrap_key=(set)" in said
    assert "32 to 200" in said
    assert "geheim" not in said


def test_keys_in_memory_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """They would be forgotten before anybody could use them."""
    assert main(["keys", "list", "--store", "memory"]) == 2
    assert "forgotten" in capsys.readouterr().err
