"""``aggregator doctor``: store directory, service, store server and the audit of the index."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.cli import doctor
from aggregator.cli.doctor import acl_command
from aggregator.cli.doctor_contents import Finding, note, ok, wrong
from aggregator.settings import Settings
from aggregator.store import factory
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.identity import Remembered
from tests.cli.helpers import run
from tests.support.server_fixture import serving_alone
from tests.support.stores import direct_client

pytestmark = pytest.mark.integration


def test_a_missing_directory_is_reported_and_not_created(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Models and service are reported too."""
    data = tmp_path / "data"

    assert run("doctor", "--data-dir", str(data), "--port", str(free_port)) == 0

    output = capsys.readouterr().out
    assert f"{data} does not exist yet" in output
    assert f"Nothing answers on http://127.0.0.1:{free_port}" in output
    assert "xx." in output
    assert not data.exists()


def test_a_restored_store_is_recognized(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory restored from a backup has no lock file."""
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof").write_bytes(bytes(300_000))
    manifest = tmp_path / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")

    assert run("doctor", "--data-dir", str(tmp_path), "--port", str(free_port)) == 0
    assert "Not running; 0.3 MB on disk; --audit reads it and counts what expires." in capsys.readouterr().out

    manifest.unlink()
    assert run("doctor", "--data-dir", str(tmp_path), "--port", str(free_port)) == 2
    assert "so the store would start empty" in capsys.readouterr().out


def test_a_stopped_store_that_cannot_start_is_a_problem_with_its_remedy(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also with --audit, which starts it; no demonstration is offered where a store exists."""
    options = ("--data-dir", str(tmp_path), "--port", str(free_port))
    with EmbeddedServer(tmp_path):
        pass
    assert run("doctor", *options) == 0
    output = capsys.readouterr().out
    assert "starts the service.\n" in output and "--demo" not in output

    (base,) = tmp_path.glob("appendonlydir/*.base.rdb")
    base.write_bytes(b"rubbish" + base.read_bytes()[7:])

    for audit in ((), ("--audit",)):
        assert run("doctor", *options, *audit) == 2
        output = capsys.readouterr().out
        assert f"wrong  store     data_dir: the log in {tmp_path}/appendonlydir is damaged" in output
        assert "restore a backup" in output
        assert "next: repair what the first line marked wrong names" in output
        assert "audit" not in output or audit


@pytest.mark.parametrize("has_lock", [False, True])
def test_a_store_whose_files_are_gone_is_a_problem(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str], has_lock: bool
) -> None:
    """The service remembers that it had articles; the demonstration would fill the empty store."""
    (tmp_path / "store-memory.json").write_bytes(
        msgspec.json.encode({"embedded": Remembered("a1", taken=17, has_keys=True)})
    )
    if has_lock:
        (tmp_path / "lock").touch()

    assert run("doctor", "--data-dir", str(tmp_path), "--port", str(free_port)) == 2

    output = capsys.readouterr().out
    assert f"{tmp_path} holds no articles, but had taken at least 17 (store-memory.json)" in output
    assert "--accept-store" in output and "--demo" not in output


@pytest.mark.parametrize(
    ("settings", "access", "needs_key"),
    [
        (Settings(), ok("access", "1 active key (1 admin)."), True),
        (Settings(key="k", public_url="https://n.example"), ok("access", "1 active key (1 admin)."), False),
        (Settings(auth_disabled=True), ok("access", "1 active key (1 admin)."), False),
        (Settings(bootstrap_key="b" * 32), ok("program", "No access is known."), True),
        (Settings(), note("access", "No keys: open to every program on this machine."), False),
    ],
)
def test_the_command_that_loads_articles_names_the_key_that_it_needs(
    settings: Settings, access: Finding, needs_key: bool
) -> None:
    """Without it the command would be refused."""
    hint = doctor.next_step([access, ok("service", "Running and ready.")], settings)

    page = f"{settings.public_url or 'http://127.0.0.1:8080'}/"
    assert hint.startswith(f"open {page}, or load articles: `aggregator ingest FILE")
    assert ("AGGREGATOR_KEY" in hint) == needs_key


def test_a_service_is_not_called_ready_next_to_a_store_that_is_full() -> None:
    """Its answer is of another moment; without the fault it is reported."""
    ready, full = ok("service", "Running and ready."), wrong("store", "The store is full.", 3)

    assert list(doctor._suppress_consequential([full, ready])) == [full]
    assert list(doctor._suppress_consequential([ready])) == [ready]


@pytest.mark.parametrize("hangs", [False, True], ids=["not ready", "hangs"])
async def test_a_service_that_is_not_ready_is_a_problem(hangs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that does not answer in time: it runs, and starting another one would not help."""
    monkeypatch.setattr(doctor, "READINESS_TIMEOUT_S", 0.2 if hangs else 60.0)
    never = asyncio.Event()

    async def ready(request: web.Request) -> web.Response:
        if hangs:
            await never.wait()
        return web.json_response({"detail": "The store is full."}, status=503)

    application = web.Application()
    application.router.add_get("/readyz", ready)
    async with TestServer(application) as server:
        finding = await asyncio.to_thread(doctor._check_readiness, str(server.make_url("")))
        never.set()

    assert (finding.mark, finding.code) == ("wrong", 3)
    assert ("did not answer within" if hangs else "The store is full.") in finding.sentence


@pytest.mark.parametrize("command", [("doctor",), ("keys", "list")], ids=["doctor", "keys"])
def test_an_unreadable_store_directory_is_exit_code_2(
    command: tuple[str, ...], tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence names the directory and the reason; here the lock is a directory."""
    (tmp_path / "lock").mkdir()
    options = ["--data-dir", str(tmp_path), *(["--port", str(free_port)] if command == ("doctor",) else [])]

    assert run(*command, *options) == 2

    out, err = capsys.readouterr()
    message = f"{tmp_path} cannot be read (Is a directory); run this as the user that runs the service."
    assert message in out + err


def test_the_audit_compares_the_index_with_all_stored_articles(
    valkey_url: str, tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """--audit: exit code 0 if all agree, else 1; also with an embedded store."""
    lines = tmp_path / "articles.jsonl"
    lines.write_text(
        "".join(
            json.dumps({"id": str(i), "text": f"Tern {i} landed.", "lang": "eo"}) + "\n" for i in range(9)
        )
    )
    own = ["--data-dir", str(tmp_path / "data")]
    for store, options in (("embedded", own), (valkey_url, ["--store-url", valkey_url])):
        assert run("ingest", "--store", store, *own, "--out", os.devnull, str(lines)) == 0
        capsys.readouterr()
        assert run("doctor", *options, "--port", str(free_port), "--audit") == 0
        output = capsys.readouterr().out
        assert "9 records, 9 bindings and " in output and ": all agree." in output
        assert output.count(": about 9 texts, arrived ") == output.count("No text of the sample expires") == 1

    with direct_client(valkey_url) as client:
        record = min(client.keys("r:*"))
        sound = client.get(record)
        client.setrange(record, 40, bytes([sound[40] ^ 1]))
        assert run("doctor", "--store-url", valkey_url, "--port", str(free_port), "--audit") == 1
        assert "1 records are damaged (articles " in capsys.readouterr().out
        client.set(record, sound)
        bucket = min(client.keys("*}b0:*"))
        client.rename(bucket, bucket[:-1] + (b"1" if bucket.endswith(b"0") else b"0"))
    assert run("doctor", "--store-url", valkey_url, "--port", str(free_port), "--audit") == 1
    assert "postings disagree with the record" in capsys.readouterr().out


def test_a_store_server_is_described(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version and durability; --json prints the findings as JSON."""
    with direct_client(valkey_url) as client:
        client.config_set("maxmemory", 0)
    assert run("doctor", "--store-url", valkey_url, "--port", str(free_port), "--json") == 0

    findings = json.loads(capsys.readouterr().out)
    store = " ".join(f["sentence"] for f in findings if f["subject"] == "store")
    assert "Valkey" in store
    assert "Durability: survives a crash of the server" in store
    assert "MB of memory used, without maxmemory." in store
    assert {f["mark"] for f in findings} <= {"ok", "note"}


@pytest.mark.parametrize("is_full", [False, True], ids=["space", "full"])
def test_a_running_embedded_store_is_examined(
    is_full: bool, tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not only that a service uses it; a full one is never next to a service that is ready."""
    with serving_alone(tmp_path) as (_, url):
        port, data = url.rpartition(":")[2], tmp_path / "data"
        located = factory.with_running_store_url(Settings(data_dir=str(data))).store_url
        with direct_client(located) as client:
            used = client.info("memory")["used_memory"]
            client.config_set("maxmemory", used - 100_000 if is_full else 2 * used)
        code = run("doctor", "--data-dir", str(data), "--port", port)
    output = capsys.readouterr().out

    assert (code, "is full; give its machine" in output, "Running and ready" in output) == (
        (3, True, False) if is_full else (0, False, True)
    )
    assert ("MB (maxmemory)." in output) == (code == 0)


def test_an_unreachable_store_is_exit_code_3(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The other checks still run, and the password is not printed."""
    url = f"redis://:geheim@127.0.0.1:{free_port}"

    assert run("doctor", "--store-url", url, "--port", str(free_port)) == 3

    output = capsys.readouterr().out
    assert "wrong  store" in output
    assert "service" in output
    assert "geheim" not in output


def test_policy_profiles_are_printed(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """What differs from the settings, and for which sources; a fault is exit code 2."""
    file = tmp_path / "profiles.toml"
    file.write_text(
        "[profiles.agency]\nupdates_are_new = true\nduplicate_bits = 2\n[profiles.same]\n"
        '[[rules]]\nsources = ["*.agency.example", "Agency"]\nprofile = "agency"\n'
    )
    options = ("--data-dir", str(tmp_path / "data"), "--port", str(free_port))

    assert run("doctor", *options, "--policy-profiles-file", str(file)) == 0
    output = capsys.readouterr().out
    assert "agency: duplicate_bits=2, updates_are_new=True; for sources *.agency.example, Agency." in output
    assert "same: equal to the default policy; on request only." in output

    file.write_text("[profiles.agency]\nupdates_are_new = 1\nrelated_bits = 9\n")
    assert run("doctor", *options, "--policy-profiles-file", str(file)) == 2
    output = capsys.readouterr().out
    assert "profiles.agency.updates_are_new: 1 is not true or false." in output
    assert "profiles.agency.related_bits: 9 must be a number from 0 to 7." in output


def test_a_faulty_file_of_outlets_is_reported(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a service is started with it, which would refuse."""
    file = tmp_path / "outlets.toml"
    file.write_text("[outlets")
    options = ("--data-dir", str(tmp_path / "data"), "--port", str(free_port))

    assert run("doctor", *options, "--outlets-file", str(file)) == 2
    assert f"wrong  files     outlets_file: {file} is not valid TOML" in capsys.readouterr().out
    profiles = ("--policy-profiles-file", str(tmp_path / "absent.toml"))
    assert run("doctor", *options, "--outlets-file", str(file), *profiles) == 2
    assert capsys.readouterr().out.count("\nwrong  files ") == 2
    file.write_text("[[outlets]]\nname = 7\n")
    assert run("doctor", *options, "--outlets-file", str(file)) == 2
    assert "got `int` - at `outlets[0].name`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "is_noted"),
    [
        ("redis://store.example:6379/0", True),
        ("redis+cluster://10.0.0.7:6379", True),
        ("rediss://store.example:6380", False),
        ("redis://127.0.0.1:6379", False),
        ("unix:///run/redis.sock", False),
    ],
)
def test_an_unencrypted_remote_store_is_noted(url: str, is_noted: bool) -> None:
    """Passwords and articles would be readable on the network."""
    assert bool(list(doctor.check_tls(url))) == is_noted


@pytest.mark.redis
def test_the_printed_user_is_one_that_the_server_can_create(
    redis_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Redis before 7.2 refuses rights that it does not know; a server that does not answer gets all."""
    assert run("doctor", "--acl", "--store-url", redis_url) == 0
    with direct_client(redis_url) as client:
        printed = capsys.readouterr()
        assert printed.err.startswith("note: ACL SAVE keeps the user")
        words = printed.out.replace("PASSWORD", "pw").split()
        assert client.execute_command(*words) == b"OK"
        client.execute_command("ACL DELUSER aggregator")
    assert "+client|setinfo" not in acl_command("", "Redis 7.0.15")
    assert "+client|setinfo" in acl_command("", "Redis 7.2.1") and "+waitaof" in acl_command("", "Valkey 7.2")

    assert run("doctor", "--acl", "--store-url", f"redis://127.0.0.1:{free_port}") == 0
    printed = capsys.readouterr()
    assert (
        "+waitaof" in printed.out and "note: with rights that Redis before 7.2 does not know" in printed.err
    )
