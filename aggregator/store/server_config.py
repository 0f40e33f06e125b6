"""Configuration of the embedded server, which reads it from standard input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# A write needs a replica that does not exist: all writes are refused. What the server still writes (expiry)
# must not end it on a full disk; nothing is acknowledged meanwhile, so no promise is weakened.
READ_ONLY = {"min-replicas-to-write": "1", "appendfsync": "everysec"}
# Defaults of Valkey that are too small for look-ups, which read about 68 keys.
_VALKEY_TUNING = {
    # Number of keys of a command that are prefetched into the CPU cache (default 16, maximum 128): one third
    # less server time.
    "prefetch-batch-max-size": "128",
    # Size from which values are sent without copying (default 16,384 bytes). Such replies go out in one
    # write, copied ones 64 kB at a time: one quarter less server time for buckets of 2 kB, and the client
    # wakes up once. No gain below 1 kB. An APPEND to a value that is being sent copies it first.
    "min-string-size-avoid-copy-reply": "1024",
}


def server_config(
    data_dir: Path,
    socket_path: Path,
    *,
    appendfsync: str,
    tuned: bool,
    read_only: bool,
    overrides: Mapping[str, str],
) -> bytes:
    """Return the lines of the configuration.

    ``appendfsync``: always, everysec or no; ``tuned``: add the options that only Valkey has; ``read_only``:
    refuse writes from the start; ``overrides`` replaces single lines.
    """
    lines = {
        "port": "0",
        "unixsocket": _quote_config_value(socket_path),
        "unixsocketperm": "700",
        "dir": _quote_config_value(data_dir),
        "daemonize": "no",
        "save": '""',
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "aof-load-truncated": "yes",
        # ``snapshot.py`` is the only replica: the server need not wait 5 s for others.
        "repl-diskless-sync-delay": "0",
        "maxmemory-policy": "noeviction",
        "lazyfree-lazy-user-del": "yes",
        **(_VALKEY_TUNING if tuned else {}),
        **overrides,
        **(READ_ONLY if read_only else {}),
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items()).encode()


def _quote_config_value(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
