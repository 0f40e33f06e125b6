"""File lock: one holder, inheritance by child processes, and permissions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from aggregator.store.file_lock import FileLock


def test_one_holder_at_a_time_whose_information_others_can_read(tmp_path: Path) -> None:
    """The second process cannot lock it and reads the holder's text; a shorter text replaces a longer one."""
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_lock() and not second.try_lock()
    first.holder_info = "a long text with é and \udcff"
    assert second.holder_info == "a long text with é and \udcff"
    first.holder_info = "short"
    assert second.holder_info == "short"

    first.close(unlock=True)
    assert second.try_lock()
    second.close(unlock=True)


def test_a_child_process_that_inherits_it_holds_it(tmp_path: Path) -> None:
    """It is held after this process closes it, until the child ends, unless it is unlocked for all."""
    for unlock in (False, True):
        lock, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
        assert lock.try_lock()
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock.descriptor])
        lock.close(unlock=unlock)
        assert other.try_lock() is unlock

        child.communicate()
        assert other.try_lock()
        other.close(unlock=True)


def test_its_file_is_private(tmp_path: Path) -> None:
    """Only this user may read it."""
    FileLock(tmp_path / "lock").close(unlock=False)

    assert os.stat(tmp_path / "lock").st_mode & 0o777 == 0o600
