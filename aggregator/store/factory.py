"""Opens the store that the settings name and watches an embedded one, or finds that of a running service."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import fcntl
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.log_limits import ChangeFilter
from aggregator.settings import Settings
from aggregator.store.append_log import LOG_DIRECTORY
from aggregator.store.base import Store
from aggregator.store.disk import MAX_AHEAD_BYTES, DiskSpace, allocate_ahead, read_disk_space, rewrite_message
from aggregator.store.embedded import EmbeddedServer

# Raises ConfigurationError if the stored data has a format that this version cannot read.
FormatCheck = Callable[[Store], Awaitable[None]]

CHECK_INTERVAL_S = 1.0
RESTART_BURST = 6
_RESTART_WINDOW_S = 60.0
MIN_REWRITE_BYTES = 64 * 2**20  # below this size Valkey does not rewrite its log
_REWRITE_OFF, _REWRITE_ON = {"auto-aof-rewrite-percentage": "0"}, {"auto-aof-rewrite-percentage": "100"}

log = logging.getLogger("aggregator.store")


@asynccontextmanager
async def with_store_url(
    settings: Settings, on_restart: Callable[[], None] = lambda: None
) -> AsyncIterator[Settings]:
    """The settings with a ``store_url`` that other processes can use; starts the embedded store if unset.

    It runs while the context is open; ``on_restart`` is called after each of its restarts.
    """
    if settings.store_url:
        yield settings
        return
    with EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync) as server:
        watchdog = Watchdog(server, on_restart)
        await asyncio.to_thread(watchdog.check_disk)
        watching = asyncio.create_task(watchdog.run())
        try:
            yield dataclasses.replace(settings, store_url=server.url)
        finally:
            watching.cancel()


@asynccontextmanager
async def open_store(settings: Settings, check_format: FormatCheck) -> AsyncIterator[Store]:
    """Open and check the store that the settings name; ``check_format`` verifies the format of its data."""
    # Imported here: the supervisor process only calls ``with_store_url`` and needs no client.
    from aggregator.store.memory import MemoryStore

    if settings.in_memory:
        yield MemoryStore()
        return
    async with with_store_url(settings) as located, checked_store(located.store_url, check_format) as store:
        yield store


@asynccontextmanager
async def checked_store(url: str, check_format: FormatCheck) -> AsyncIterator[Store]:
    """The store at ``url``, if it is fit for use and ``check_format`` accepts the format of its data."""
    from aggregator.store.redis import open_redis_store

    store = open_redis_store(url)
    try:
        await store.check()
        await check_format(store)
        yield store
    finally:
        await store.close()


def lock_holder(directory: Path) -> str | None:
    """Id of the process that has the embedded store open; None if none has. Raises OSError."""
    with open(directory / "lock", encoding="utf-8", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip() or "unknown"
    return None


def with_running_store_url(settings: Settings, *, creates: bool = True) -> Settings:
    """Settings with the socket of a running embedded store, if any. Raises ConfigurationError."""
    directory = Path(settings.data_dir)
    if not (creates or settings.store_url or directory.is_dir()):  # the caller creates no store
        raise ConfigurationError(f"data_dir: {directory} does not exist, so it contains no store.")
    try:
        if settings.store_url or lock_holder(directory) is None:
            return settings
        socket = (directory / "server.lock").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # no store yet
        return settings
    except OSError as error:
        raise ConfigurationError(f"data_dir: {unreadable_message(directory, error)}") from None
    return dataclasses.replace(settings, store_url="unix://" + quote(socket))


def unreadable_message(directory: Path, error: OSError) -> str:
    """One sentence for a directory that cannot be read."""
    return f"{directory} cannot be read ({error.strerror}); run this as the user that runs the service."


class Watchdog:
    """Watches one started server; ``run`` in the main thread, since it may restart the server.

    free space below the low mark   the server refuses writes, and accepts them again above twice the mark
    log that leaves no room         the server does not try to rewrite it: that would fill the disk
    server that keeps ending        is restarted at most RESTART_BURST times per minute
    """

    def __init__(
        self,
        server: EmbeddedServer,
        on_restart: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server, self._on_restart, self._monotonic = server, on_restart, monotonic
        self._problems, self._full = ChangeFilter(), ChangeFilter()
        self._restarts_s: deque[float] = deque(maxlen=RESTART_BURST)
        self._rewrite_is_off = False

    async def run(self) -> None:
        """Check the server every CHECK_INTERVAL_S, without end."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.restart_if_dead()
            await asyncio.to_thread(self.check_disk)

    def restart_if_dead(self) -> None:
        """Restart a dead server, unless that was done too often."""
        is_burst = len(self._restarts_s) == RESTART_BURST
        if is_burst and self._monotonic() < self._restarts_s[0] + _RESTART_WINDOW_S:
            return
        try:
            reason = self._server.restart_if_dead()
        except AggregatorError as error:
            if self._problems.is_new(str(error)):
                log.error("the embedded store has ended: %s", error)
            return
        if reason:
            log.error("the embedded store had ended (%s); it was restarted", reason)
            self._on_restart()
            self._problems.clear()
            self._restarts_s.append(self._monotonic())
            self._rewrite_is_off = False  # it read its configuration again

    def check_disk(self) -> None:
        """Record the length of the log, check free space; blocks while the server answers (at most 1 s)."""
        if self._server.pid is None:
            return
        self._server.record_log_lengths()
        disk = read_disk_space(self._server.data_dir)
        if disk is None:
            return
        self._switch_writes(disk)
        files = {}
        with contextlib.suppress(OSError):  # a file may vanish meanwhile
            for path in (self._server.data_dir / LOG_DIRECTORY).iterdir():
                files[path] = path.stat()
        appended = [path for path in files if path.suffix == ".aof"]
        if appended and not disk.is_low:
            newest = max(appended, key=lambda path: files[path].st_mtime_ns)
            allocate_ahead(newest, min(MAX_AHEAD_BYTES, disk.low_bytes))
        self._switch_rewrite(disk, sum(state.st_size for state in files.values()))

    def _switch_writes(self, disk: DiskSpace) -> None:
        if disk.is_low and not self._server.refuses_writes:
            self._server.refuse_writes(True)
        elif disk.has_recovered and self._server.refuses_writes:
            self._server.refuse_writes(False)
        if self._server.refuses_writes:
            if self._full.is_new("full"):
                log.error("%s", disk.full_message)
        elif self._full.clear():
            log.warning("the disk of %s has space again: articles are stored", disk.directory)

    def _switch_rewrite(self, disk: DiskSpace, log_bytes: int) -> None:
        fits = disk.fits_copy(log_bytes)
        if not fits and not self._rewrite_is_off and log_bytes >= MIN_REWRITE_BYTES:
            if self._server.configure(_REWRITE_OFF):
                self._rewrite_is_off = True
                log.error("%s", rewrite_message(disk, log_bytes))
        elif fits and self._rewrite_is_off and self._server.configure(_REWRITE_ON):
            self._rewrite_is_off = False
            log.warning("the log in %s can be rewritten again", disk.directory)
