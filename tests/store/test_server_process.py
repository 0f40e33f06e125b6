"""Log of the embedded server's process: what explains an exit, and the size of the file."""

from pathlib import Path

import pytest

from aggregator.store import server_process
from aggregator.store.server_process import ServerLog, usable_memory_bytes

ADVICE = (
    "1:M * oO0OoO0OoO0Oo Valkey is starting oO0OoO0OoO0Oo\n1:M # WARNING Memory overcommit must be enabled\n"
)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "its log is empty"),
        (ADVICE, "its log is empty"),
        (f"{ADVICE}1:M * Ready to accept connections\n", "1:M * Ready to accept connections"),
        (f"{ADVICE}1:M # Bad file format\n1:M * bye\n", "Bad file format"),
        ("*** FATAL CONFIG FILE ERROR ***\n>>> 'nothing 1'\n", "*** FATAL CONFIG FILE ERROR ***"),
    ],
    ids=["empty", "advice", "no warning", "warning", "fatal"],
)
def test_the_last_warning_explains_an_exit(tmp_path: Path, lines: str, message: str) -> None:
    """What was logged before the last launch, and the advice of each start, explain nothing."""
    log = ServerLog(tmp_path)
    with log.open_for_launch() as output:
        output.write(b"1:M # Failed before\n")
    with log.open_for_launch() as output:
        output.write(lines.encode())

    assert log.last_message() == message


def test_a_large_log_is_renamed_at_a_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept until the next large one; only its owner may read it."""
    monkeypatch.setattr(server_process, "_MAX_LOG_BYTES", 10)
    log = ServerLog(tmp_path)
    for size in (11, 3):
        with log.open_for_launch() as output:
            output.write(b"x" * size)

    assert (log.path.stat().st_size, (tmp_path / "server.log.1").stat().st_size) == (3, 11)
    assert log.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("group", "files", "limit"),
    [
        ("0::/", {}, None),
        ("0::/", {"memory.max": "max"}, None),
        ("0::/", {"memory.max": "1000"}, 1000),
        ("0::/a/b", {"a/memory.max": "1000", "a/b/memory.max": "2000"}, 1000),
        ("4:memory:/a\n0::/", {"memory/a/memory.limit_in_bytes": "1000"}, 1000),
        ("4:memory:/docker/1", {"memory/memory.limit_in_bytes": "1000"}, 1000),
        ("4:memory:/", {"memory/memory.limit_in_bytes": str(2**63 - 4096)}, None),
    ],
    ids=["unlimited", "max", "container", "parent", "v1", "v1 container", "v1 unlimited"],
)
def test_a_control_group_limits_the_memory_of_the_machine(
    tmp_path: Path, group: str, files: dict[str, str], limit: int | None
) -> None:
    """That of this process or one around it; in a container the files of its own are at the root."""
    machine = usable_memory_bytes(tmp_path)
    for name, text in {
        "proc/self/cgroup": group,
        **{f"sys/fs/cgroup/{k}": v for k, v in files.items()},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")

    assert usable_memory_bytes(tmp_path) == (limit or machine) <= machine
