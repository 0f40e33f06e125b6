"""Temporary directories: removed at exit, and by the next start when the process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aggregator.store.temporary_directory import TemporaryDirectory

PROGRAM = """
import os, signal, subprocess
from aggregator.store.temporary_directory import TemporaryDirectory

directory = TemporaryDirectory()
(directory.path / "0.sock").touch()
print(directory.path, flush=True)
{before}
os.kill(os.getpid(), signal.SIGKILL)
"""
START_CHILD = """
child = subprocess.Popen(
    ["sleep", "600"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    pass_fds=[directory.lock_descriptor],
)
print(child.pid, flush=True)
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def run_and_kill(before: str = "") -> list[str]:
    """The lines that a process printed that created a directory and was killed."""
    command = [sys.executable, "-c", PROGRAM.format(before=before)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def test_the_directory_of_a_killed_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """Those of running processes and of other programs stay."""
    (killed,) = run_and_kill()
    assert Path(killed).is_dir()
    (tmp_path / "aggregator-of-another-program").mkdir()
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        assert not Path(killed).exists()
        assert first.is_dir() and second.is_dir() and second.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["aggregator-of-another-program"]


def test_a_child_that_inherits_the_lock_keeps_the_directory() -> None:
    """The embedded store needs its socket until it has ended."""
    killed, child = run_and_kill(START_CHILD)
    with TemporaryDirectory():
        assert Path(killed).is_dir()
    os.kill(int(child), signal.SIGKILL)
