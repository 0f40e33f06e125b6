"""The embedded server's process: its configuration on standard input, its log, and single commands to it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from aggregator.store.disk import open_private, read_disk_space

# A write needs a replica that does not exist: all writes are refused. What the server still writes (expiry)
# must not end it on a full disk; nothing is acknowledged meanwhile, so no promise is weakened.
READ_ONLY = {"min-replicas-to-write": "1", "appendfsync": "everysec"}
# Options of Valkey. Its defaults are too small for look-ups, which read about 68 keys.
_VALKEY_TUNING = {
    # Keys of a command that are prefetched into the CPU cache (default 16): one third less server time.
    "prefetch-batch-max-size": "128",
    # Size from which values are sent without copying (default 16,384 bytes). Such replies go out in one
    # write, copied ones 64 kB at a time: one quarter less server time for buckets of 2 kB, and the client
    # wakes up once. No gain below 1 kB. An APPEND to a value that is being sent copies it first.
    "min-string-size-avoid-copy-reply": "1024",
    # A backup of Redis 7.4 and later is loaded, too: the formats of strings and streams have not changed.
    "rdb-version-check": "relaxed",
}
SOCKET_NAME = "store.sock"
_MAX_LOG_BYTES = 10 * 2**20
# The rest is for the other processes. A full server refuses writes; the kernel would kill it instead.
_STORE_MEMORY_PART = 0.75
# Lines that the server logs as warnings at each start; they explain no exit.
_ADVICE = (" # WARNING", "oO0OoO0OoO0Oo")


def server_config(
    data_dir: Path,
    socket_path: Path,
    *,
    appendfsync: str,
    tuned: bool,
    read_only: bool,
    overrides: Mapping[str, str],
) -> bytes:
    """The lines of the configuration; ``tuned``: with the options that only Valkey has."""
    lines = {
        "port": "0",
        "unixsocket": _quote_config_value(socket_path),
        "unixsocketperm": "700",
        "dir": _quote_config_value(data_dir),
        "save": '""',
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "aof-load-truncated": "yes",
        # ``rdb_dump.py`` is the only replica: the server need not wait 5 s for others.
        "repl-diskless-sync-delay": "0",
        "maxmemory": str(int(_STORE_MEMORY_PART * usable_memory_bytes())),
        "maxmemory-policy": "noeviction",
        "lazyfree-lazy-user-del": "yes",
        **(_VALKEY_TUNING if tuned else {}),
        **overrides,
        **(READ_ONLY if read_only else {}),
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items()).encode()


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """The memory of this machine, or less if a control group (v1 or v2) limits this process."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    known = root / "proc/self/cgroup"  # lines: NUMBER:CONTROLLERS:PATH
    for line in known.read_text().splitlines() if known.exists() else ():
        _, controllers, own = line.split(":", 2)
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        for group in (PurePosixPath(own), *PurePosixPath(own).parents):  # a container has the root only
            with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
                limits.append(int(Path(f"{root}/sys/fs/cgroup/{controllers}{group}/{name}").read_text()))
    return min(limits)


def _quote_config_value(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def send_command(path: Path, request: bytes) -> bytes | None:
    """First bytes of the reply to an inline command on a unix socket; None if none arrive within 1 s."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(request)
            return connection.recv(64)
        except OSError:
            return None


class ServerLog:
    """The file ``server.log`` of a data directory, renamed when it is large."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "server.log"
        self._launch_offset = 0  # length of the file at the last launch

    def open_for_launch(self) -> BinaryIO:
        """Open the file for a server that is launched now. Raises OSError."""
        if self.path.exists() and self.path.stat().st_size > _MAX_LOG_BYTES:
            self.path.replace(self.path.with_suffix(".log.1"))
        output = open(self.path, "ab", opener=open_private)  # noqa: SIM115  the caller closes it
        self._launch_offset = output.tell()
        return output

    def last_message(self) -> str:
        """The last warning since the launch, which explains an exit, and whether the disk is full."""
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
