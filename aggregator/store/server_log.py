"""Log of the embedded server: one file, renamed when it is large; its last message explains an exit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from aggregator.store.disk_space import read_disk_space

_MAX_BYTES = 10 * 2**20
# Lines that the server logs as warnings at each start; they explain no exit.
_ADVICE = (" # WARNING", "oO0OoO0OoO0Oo")


class ServerLog:
    """The file ``server.log`` of a data directory, readable by its owner only."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "server.log"
        self._launch_offset = 0  # length of the file at the last launch

    def open_for_launch(self) -> BinaryIO:
        """Open the file for a server that is launched now. Raises OSError."""
        if self.path.exists() and self.path.stat().st_size > _MAX_BYTES:
            self.path.replace(self.path.with_suffix(".log.1"))
        output = open(self.path, "ab", opener=_open_private)  # noqa: SIM115  the caller closes it
        self._launch_offset = output.tell()
        return output

    def last_message(self) -> str:
        """Return the last warning since the launch, and whether the disk is full."""
        try:
            with open(self.path, errors="replace") as log:
                log.seek(self._launch_offset)
                lines = log.read().splitlines()
        except OSError:
            lines = []
        lines = [line for line in lines if not any(advice in line for advice in _ADVICE)]
        warnings = [line for line in lines if " # " in line or "***" in line] or lines
        message = warnings[-1].split(" # ")[-1].strip().rstrip(".") if warnings else "its log is empty"
        disk = read_disk_space(self.path.parent)
        return f"{message}; {disk.full_message}".rstrip(".") if disk is not None and disk.is_low else message


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
