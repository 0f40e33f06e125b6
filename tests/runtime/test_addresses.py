"""URLs and store descriptions for people."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from aggregator.errors import ConfigurationError
from aggregator.runtime.addresses import (
    announce,
    bound_socket,
    command,
    describe_store,
    redact_url,
    service_url,
    with_options,
)
from aggregator.settings import Settings


def test_a_command_can_be_typed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what distinguishes the service from the default one, and its path if it is not found."""
    program = tmp_path / ".venv" / "bin" / "aggregator"
    other = Settings(port=9000, data_dir="my data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("sys.argv", [str(program), "serve"])
    assert command("doctor", Settings()) == "`.venv/bin/aggregator doctor`"

    program.parent.mkdir(parents=True)
    program.touch(0o755)
    assert command("doctor", Settings()) == "`aggregator doctor`"
    assert command("doctor", other) == "`aggregator doctor --data-dir 'my data' --port 9000`"
    assert command("doctor", Settings(store_url="redis://a", data_dir="b")) == "`aggregator doctor`"
    monkeypatch.setattr(
        "sys.argv", [str(program), "serve", "--config", "my.toml", "--store-url=redis://u:p@a/1"]
    )
    chosen = command("doctor", Settings(store_url="redis://u:p@a/1", data_dir="b"))
    assert chosen == "`aggregator doctor --config my.toml --store redis://NAME:PASSWORD@a/1`"
    hint = with_options(
        "See `aggregator keys list`; `aggregator fit` fits.", Settings(store_url="redis://a/1")
    )
    store = "--config my.toml --store redis://NAME:PASSWORD@a/1"
    assert hint == f"See `aggregator keys list {store}`; `aggregator fit` fits."
    ingest = "`aggregator ingest FILE --config my.toml --server http://127.0.0.1:9000`"
    assert command("ingest FILE", other) == ingest
    monkeypatch.setattr("sys.argv", [str(program), "serve", "--config", "my.toml", "--port=9000"])
    assert command("doctor", other) == "`aggregator doctor --config my.toml --port 9000`"


def test_a_hint_repeats_what_chose_store_models_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """As given, also equal to the default or next to a store; a demonstration gets its own store."""
    given = "--host ::1 --port 8080 --models-dir m --store embedded --data-dir var --workers 2"
    monkeypatch.setattr("sys.argv", ["doctor", *given.split()])
    settings = Settings(host="::1", models_dir="m", workers=2)
    store = "--store embedded --data-dir var"

    for name in ("doctor", "serve"):
        assert command(name, settings) == f"`aggregator {name} {store} --models-dir m --host ::1 --port 8080`"
    assert command("serve --demo", settings) == "`aggregator serve --demo --host ::1 --port 8080`"
    assert with_options("`aggregator migrate --delete x`; `aggregator backup DIR`.", settings) == (
        f"`aggregator migrate --delete x {store} --models-dir m`; `aggregator backup DIR {store}`."
    )
    assert with_options("`aggregator ingest FILE --backfill` helps.", settings) == (
        "`aggregator ingest FILE --backfill --server 'http://[::1]:8080'` helps."
    )
    monkeypatch.setattr("sys.argv", ["doctor", "--store=redis://a:p@b", "--data-dir=d"])
    assert command("keys list", Settings(store_url="redis://a:p@b", data_dir="d")) == (
        "`aggregator keys list --store redis://NAME:PASSWORD@b --data-dir d`"
    )


def test_a_password_is_never_printed() -> None:
    """``serve`` prints its store, ``doctor`` the settings."""
    url = "rediss://user:geheim@store.example:6380/0?password=geheim"

    assert redact_url(url) == "rediss://NAME:PASSWORD@store.example:6380/0"
    assert redact_url("redis://:geheim@store.example") == "redis://NAME:PASSWORD@store.example"
    assert "geheim" not in describe_store(Settings(store_url=url))


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
        ("news", "news"),
    ],
)
def test_the_url_can_be_opened_on_this_machine(host: str, shown: str) -> None:
    """A wildcard address becomes the loopback address."""
    assert service_url(host, 8080) == f"http://{shown}:8080"


def test_an_address_without_secrets_is_unchanged() -> None:
    """The database number and the port stay visible."""
    assert redact_url("redis://store.example:6380/2") == "redis://store.example:6380/2"
    assert redact_url("redis://a/2?replicated=1&prefix=b:") == "redis://a/2?prefix=b:"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(store_url="memory"), "memory; all data is lost at exit"),
        (Settings(data_dir="/srv/news", appendfsync="always"), "in /srv/news (appendfsync always)"),
    ],
)
def test_a_local_store_is_described_by_its_durability(settings: Settings, expected: str) -> None:
    """The reader sees at once what a crash loses."""
    assert describe_store(settings).endswith(expected)


@pytest.mark.integration
def test_a_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes from a real second listener."""
    monkeypatch.setattr("aggregator.runtime.addresses.PORT_ATTEMPTS", 0)
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigurationError) as caught, bound_socket(Settings(port=port)):
            pass

    assert str(caught.value).startswith(f"port: 127.0.0.1:{port} is in use by another process;")


@pytest.mark.integration
def test_a_port_of_processes_that_end_is_awaited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of a service that was killed close it some time after it; the wait is said once."""
    with socket.create_server(("127.0.0.1", 0)) as first:
        port, pauses = first.getsockname()[1], []

        def close_at_the_second(pause_s: float) -> None:
            pauses.append(pause_s)
            if len(pauses) == 2:
                first.close()

        monkeypatch.setattr("aggregator.runtime.addresses.time.sleep", close_at_the_second)
        with bound_socket(Settings(port=port)) as listener:
            assert listener.getsockname()[1] == port

    said = f"aggregator: port {port} is in use; waiting for some seconds until it is free\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("answer", "level", "said"),
    [
        (
            (503, b'{"detail": "The disk is full."}'),
            "WARNING",
            ["not ready on http://127.0.0.1:81", "why: The disk is full."],
        ),
        ((200, b"{}"), "INFO", ["ready on http://127.0.0.1:81"]),
    ],
)
async def test_a_start_that_is_not_ready_is_a_warning_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: tuple[int, bytes],
    level: str,
    said: list[str],
) -> None:
    """In the JSON log, which is filtered by level; a program reads the address at the end of its line."""
    caplog.set_level("INFO")
    monkeypatch.setattr("aggregator.runtime.addresses.get", lambda url: answer)
    await announce(Settings(log_format="json"), 81)

    *records, following = caplog.records
    assert [(record.levelname, record.getMessage()) for record in records] == [(level, text) for text in said]
    assert following.getMessage().startswith("next: ")


@pytest.mark.integration
def test_an_address_of_another_machine_is_named() -> None:
    """192.0.2.0/24 is reserved for documentation."""
    with pytest.raises(ConfigurationError) as caught, bound_socket(Settings(host="192.0.2.1")):
        pass

    assert str(caught.value).startswith("host: cannot listen on 192.0.2.1:8080 (")


@pytest.mark.integration
def test_a_name_is_bound_to_its_ipv4_address() -> None:
    """Whatever else it has; IPv6 has a test with the whole service (``tests/project/test_deploy.py``)."""
    with bound_socket(Settings(host="localhost", port=0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:secret@store.example/0",
        "redis://store.example/0?password=secret",
        "redis://store.example/0?password=pa@secret",
        "redis://user:pa@secret@store.example/0?password=secret",
        "redis://user:pa?secret@store.example/0",
    ],
)
def test_no_part_of_a_password_is_shown(url: str) -> None:
    """An "@" in the query or a "?" in the password does not reveal the rest of it."""
    assert "secret" not in redact_url(url)
    assert "pa" not in redact_url(url).replace("example", "")
