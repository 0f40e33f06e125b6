"""Commands notice that the running service uses another store than the one that they open."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.runtime.addresses import other_store
from aggregator.settings import Settings
from tests.cli.helpers import run
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving_alone

ADMIN = ("keys", "add", "desk", "--role", "admin")
pytestmark = pytest.mark.services


@contextmanager
def service(directory: Path, *options: str, **variables: str) -> Iterator[tuple[str, str]]:
    """Port of a service in ``directory``, and the identity that its store has got."""
    with serving_alone(directory, *options, **variables) as (_, url):
        identity, until_s = "", time.monotonic() + HANG_LIMIT_S
        while not identity and time.monotonic() < until_s:
            with urlopen(f"{url}/healthz") as answer:
                identity = json.load(answer)["store"]
        yield url.rpartition(":")[2], identity


def test_a_command_that_opens_another_store_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by root without the variables of the unit; a store that an option names is used, with a note."""
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path / "root")
    other = str(tmp_path / "other")
    with service(tmp_path) as (port, identity):
        monkeypatch.setenv("AGGREGATOR_PORT", port)
        sentence = f"is not the store that the service on http://127.0.0.1:{port} uses (id {identity}): give "
        for command in (
            ADMIN,
            ("keys", "list"),
            ("backup", str(tmp_path / "backups")),
            ("audit", "Radio"),
            ("migrate",),
            ("doctor", "--accept-store"),
            ("doctor", "--accept-clock"),
        ):
            assert run(*command) == 2, command
            said = capsys.readouterr()
            assert f"store: embedded Valkey in {tmp_path}/root/var " in said.err and sentence in said.err
            assert "name it by --store or --data-dir." in said.err and said.out == ""
        assert run("restore", "nowhere", "--check") == 2  # reads a backup, and no store
        assert "nowhere" in capsys.readouterr().err
        assert run("doctor") == 2
        assert f"wrong  store     embedded Valkey in {tmp_path}/root/var" in capsys.readouterr().out
        assert list(Path().iterdir()) == []

        assert run(*ADMIN, "--data-dir", other) == 0
        assert (
            f"note: embedded Valkey in {other} (appendfsync everysec) {sentence}" in capsys.readouterr().err
        )

        assert run("backup", str(tmp_path / "backups"), "--data-dir", other) == 0
        capsys.readouterr()
        assert run("restore", str(tmp_path / "backups"), "--data-dir", str(tmp_path / "second")) == 0
        assert sentence not in capsys.readouterr().err  # a service must not run on what is restored

        monkeypatch.setenv("AGGREGATOR_DATA_DIR", str(tmp_path / "data"))
        assert run("doctor") == run(*ADMIN) == run("doctor", "--accept-store") == 0
        assert sentence not in "".join(capsys.readouterr())
        assert run("doctor") == 0  # with the identity that follows the former


def test_servers_are_compared_by_identity(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by address: another database is another store, another name of the server is the same."""
    with service(tmp_path, "--store", valkey_url) as (port, _):
        monkeypatch.setenv("AGGREGATOR_PORT", port)
        for url, code in ((f"{valkey_url}?prefix=b:", 2), (valkey_url.replace("127.0.0.1", "localhost"), 0)):
            monkeypatch.setenv("AGGREGATOR_STORE_URL", url)
            assert (run("doctor"), run("keys", "list")) == (code, code)
            said = capsys.readouterr()
            assert [" is not the store that the service" in text for text in said] == [code == 2] * 2


def test_without_an_answering_service_nothing_is_compared(tmp_path: Path, free_port: int) -> None:
    """Nor with another program on its port, or a service that says nothing of its store."""

    async def compared(answer: str) -> str:
        async def health(_: web.Request) -> web.Response:
            return web.Response(text=answer)

        application = web.Application()
        application.router.add_get("/healthz", health)
        async with TestServer(application) as server:
            settings = Settings(port=server.port or 0, data_dir=str(tmp_path))
            return await asyncio.to_thread(lambda: asyncio.run(other_store(settings)))

    assert asyncio.run(other_store(Settings(port=free_port, data_dir=str(tmp_path)))) == ""
    for answer in ("hello", "[]", '{"status": "ok", "version": "0.1.0"}'):
        assert asyncio.run(compared(answer)) == ""
    found = asyncio.run(compared('{"store": "5d0c"}'))
    assert found.startswith(f"embedded Valkey in {tmp_path} (appendfsync everysec) is not the store that")


def test_a_service_may_have_a_bootstrap_key_that_doctor_does_not_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So keys without an admin key are a fault only if no service runs."""
    store, key = ("--data-dir", str(tmp_path / "data")), "k" * 32
    lack = "There are keys but no active admin key: unless the service has a bootstrap key, which these"
    with pytest.MonkeyPatch.context() as patch, service(tmp_path, AGGREGATOR_BOOTSTRAP_KEY=key) as (port, _):
        patch.setenv("AGGREGATOR_BOOTSTRAP_KEY", key)
        assert run("keys", "add", "crawler", "--role", "crawler", *store) == 0
        patch.delenv("AGGREGATOR_BOOTSTRAP_KEY")
        assert run("doctor", "--port", port, *store) == 0
        assert f"note   access    {lack}" in capsys.readouterr().out
