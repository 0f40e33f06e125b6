"""``aggregator serve``: the same answers as in one process, workers, and resources in use."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import EDITED, ORIGINAL, ROWS, article_body, run, write_jsonl
from tests.support.cluster import until
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving_alone

pytestmark = pytest.mark.services


def test_a_server_gives_the_same_verdicts_and_stops_at_sigterm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Over HTTP and in this process the answers are equal, except for the order of equal related articles.

    A service behind a proxy that requires no key says who can write.
    """
    articles = write_jsonl(
        tmp_path / "articles.jsonl",
        *(article_body(row) for row in ROWS.values()),
        "{bad",
        article_body(ORIGINAL),
    )
    local, remote = tmp_path / "local.jsonl", tmp_path / "remote.jsonl"
    assert run("ingest", "--store", "memory", "--out", str(local), articles) == 1

    behind = ("--public-url", "https://news.example")
    with serving_alone(tmp_path, "--store-url", "memory", *behind) as (process, url):
        assert run("ingest", "--server", url, "--out", str(remote), articles) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_LIMIT_S) == 0
    logged = capfd.readouterr().err
    assert "everybody who reaches https://news.example may read and write" in logged
    assert "INFO aggregator.serve: stopping; requests in work: 0\n" in logged
    assert logged.endswith("INFO aggregator.serve: stopped\n")

    assert list(map(timeless_answer, local.read_text().splitlines())) == list(
        map(timeless_answer, remote.read_text().splitlines())
    )


def timeless_answer(line: str) -> tuple[Any, ...]:
    """The parts of an answer that do not depend on the time."""
    answer = json.loads(line)
    if "error" in answer:
        return answer["line"], answer["error"]["detail"], answer["error"]["instance"]
    related = sorted((item["id"], item["distance"], item["similarity"]) for item in answer["related"])
    fields = ("id", "verdict", "distance", "duplicate_of", "updated_figures", "space", "fingerprint", "short")
    return *(json.dumps(answer[name]) for name in fields), related


def test_workers_share_port_and_store_and_are_replaced(tmp_path: Path) -> None:
    """Two workers on an embedded store: one is killed and replaced, the articles stay, SIGINT stops all."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(ORIGINAL))
    with serving_alone(tmp_path, "--workers", "2") as (process, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
        first = children(process.pid)
        os.kill(first["aggregator"][0], signal.SIGKILL)
        out = tmp_path / "out.jsonl"
        copies = write_jsonl(tmp_path / "two", article_body(EDITED))
        assert run("ingest", "--server", url, "--out", str(out), copies) == 0

        assert json.loads(out.read_text())["duplicate_of"]["id"] == ORIGINAL["id"]
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_LIMIT_S) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_leaves_nothing_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """One sentence; neither a store nor its directory."""
    monkeypatch.setattr("aggregator.runtime.addresses.PORT_ATTEMPTS", 0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        taken = ("--port", address.rpartition(":")[2])
        assert run("serve", "--data-dir", str(tmp_path / "data"), "--workers", workers, *taken) == 2

    said = f"port: {address} is in use by another process; stop it or choose another --port."
    assert capfd.readouterr() == ("", f"aggregator: {said}\n")
    assert list(tmp_path.iterdir()) == []


def test_sighup_reads_the_policy_profiles_again_in_every_worker(tmp_path: Path) -> None:
    """A new profile is known; a faulty file changes nothing."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text("[profiles.first]\n")
    body = json.dumps(article_body(ORIGINAL)).encode()

    def knows(url: str, profile: str) -> bool:
        """Whether 20 connections in a row, which the workers share, accept the name."""
        headers = {"Content-Type": "application/json"}
        for _ in range(20):
            request = urllib.request.Request(f"{url}/v1/articles?policy={profile}", body, headers)
            try:
                urllib.request.urlopen(request).close()
            except urllib.error.HTTPError as error:
                assert error.code == 400
                return False
        return True

    with serving_alone(tmp_path, "--workers=2", f"--policy-profiles-file={profiles}") as (process, url):
        assert not knows(url, "second")
        profiles.write_text("[profiles.second]\nupdates_are_new = true\n")
        process.send_signal(signal.SIGHUP)
        until(lambda: knows(url, "second"), "the profile stays unknown")
        profiles.write_text("[profiles.third]\nupdates_are_new = 7\n")
        process.send_signal(signal.SIGHUP)

        assert not knows(url, "third")
        assert knows(url, "second")
        assert process.poll() is None


def test_sighup_says_what_it_read_and_what_waits_for_a_restart(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files that were not set are not read; the doctor compares the settings with those of the start, too."""
    config, outlets = tmp_path / "agg.toml", tmp_path / "outlets.toml"
    outlets.touch()
    config.write_text(f"outlets_file = '{outlets}'\nretention_days = 30\nlog_level = 'INFO'\n")
    doctor = ("doctor", "--config", str(config), "--data-dir", str(tmp_path / "data"))
    logged = ""

    def has_logged(sentence: str) -> bool:
        nonlocal logged
        logged += capfd.readouterr().err
        return sentence in logged

    with serving_alone(tmp_path, "--config", str(config)) as (process, url):
        port = ("--port", url.rpartition(":")[2])
        assert run(*doctor, *port) == 0
        assert "changed after the last start" not in capfd.readouterr().out
        config.write_text(f"outlets_file = '{outlets}'\nretention_days = 20\nstore_texts = true\n")
        process.send_signal(signal.SIGHUP)
        read = f"SIGHUP: policy_profiles_file is not set; outlets_file: {outlets} is read again"
        waits = f"{config}: changed after the last start, and read at the next: "
        waits += "log_level, retention_days, store_texts."
        until(lambda: has_logged(f"SIGHUP: {waits}"), "the change is not logged")
        until(lambda: has_logged(read), "the files are not logged")

        assert run(*doctor, *port) == 0
        assert f"note   settings  {waits}" in capfd.readouterr().out

        config.write_text("trusted_proxies = '127.0.0.300'\n")
        process.send_signal(signal.SIGHUP)
        until(lambda: has_logged(f"SIGHUP: {config}:1: trusted_proxies: "), "the fault is not logged")


def children(pid: int) -> dict[str, list[int]]:
    """Ids of the child processes of ``pid``: those of the service, and the store."""
    found: dict[str, list[int]] = {"aggregator": [], "store": []}
    listed = subprocess.check_output(["ps", "-eo", "pid=,ppid=,args="], text=True)
    for line in listed.splitlines():
        child, parent, args = line.split(None, 2)
        if int(parent) != pid or "resource_tracker" in args:
            continue
        found["store" if "valkey" in args else "aggregator"].append(int(child))
    return found


def test_a_port_or_directory_in_use_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second server on the same port or data directory is refused; the first continues."""
    monkeypatch.setattr("aggregator.runtime.addresses.PORT_ATTEMPTS", 0)
    with serving_alone(tmp_path) as (process, url):
        port = url.rpartition(":")[2]
        assert run("serve", "--port", port, "--store-url", "memory") == 2
        assert "is in use by another process" in capfd.readouterr().err
        assert run("serve", "--port", "0", "--data-dir", str(tmp_path / "data")) == 2
        assert f"is in use by process {process.pid}" in capfd.readouterr().err
        assert run("doctor", "--port", port, "--data-dir", str(tmp_path / "data")) == 0
        output = capfd.readouterr().out
        assert f"In use by a running service (process {process.pid})." in output
        assert f"Running and ready on {url}." in output


def test_faults_of_the_policy_profiles_stop_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once each, before workers and the store are started."""
    (tmp_path / "profiles.toml").write_text("[profiles.wire]\nkeep_if_adds = 3\nrule = 'x'\n")
    profiles = ("--policy-profiles-file", str(tmp_path / "profiles.toml"))

    assert run("serve", "--workers", "2", "--data-dir", str(tmp_path / "data"), *profiles) == 2
    error = capsys.readouterr().err
    assert error.count("profiles.wire.keep_if_adds: 3.0 must be") == 1
    assert error.count("profiles.wire.rule: unknown key") == error.count("\n") - 1 == 1
    assert not (tmp_path / "data").exists()
