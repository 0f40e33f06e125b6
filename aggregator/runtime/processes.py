"""Child processes: started again when they die or hang, connected to their parent by a pipe.

A child sends a heartbeat every second from its event loop, and one message when it is ready; without a
heartbeat for ``HEARTBEAT_TIMEOUT_S`` (during its start: ``START_TIMEOUT_S``) it is hung. When its parent is
gone, even by SIGKILL, the pipe closes and it stops. A child is spawned, or forked before the parent's event
loop starts (``ForkedProcess``): it then shares the libraries and dictionaries of its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

from aggregator.errors import EXIT_UNAVAILABLE, AggregatorError, exit_code
from aggregator.parent_death import close_inherited_files
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.logging import configure_logging
from aggregator.settings import Settings

# "spawn": a forked child would inherit the event loop's sockets and locks held by threads.
_SPAWN_CONTEXT = multiprocessing.get_context("spawn")
_FORK_CONTEXT = multiprocessing.get_context("fork") if sys.platform == "linux" else None
# From closing its pipe to its exit: 0.1 s of processor time, for which a child of low priority may wait long.
EXIT_GRACE_S = 20.0
HEARTBEAT_INTERVAL_S = 1.0
HEARTBEAT_TIMEOUT_S = 60.0  # far longer than any step of an event loop takes, on the busiest machine
# Checks within the timeout. After a suspend of the machine only one of them finds no heartbeat.
HEARTBEAT_CHECKS = 10
# Imports and models block the event loop of a child that starts: 4 to 13 s on a busy machine.
START_TIMEOUT_S = 300.0
FIRST_PAUSE_S, MAX_PAUSE_S, MAX_STORE_PAUSE_S = 1.0, 30.0, 5.0  # the last without a store
STABLE_S = 30.0  # a process that was ready for this long is started again without a pause
_HEARTBEAT = b""  # other bytes say why the process ends

log = logging.getLogger("aggregator.processes")


class ForkedProcess:
    """A process, forked before the event loop starts; ``ChildProcess`` gives it its arguments."""

    def __init__(self, name: str, target: Callable[..., None]) -> None:
        assert _FORK_CONTEXT is not None
        self.pipe, child_end = _FORK_CONTEXT.Pipe()
        with contextlib.closing(child_end):
            self.process: BaseProcess = _FORK_CONTEXT.Process(
                target=_run_forked, args=(target, child_end), name=name
            )
            self.process.start()
        self._taken_over = False

    def start(self, args: tuple[Any, ...]) -> None:
        """Run ``target(*args, pipe)``. Raises OSError if the process has ended."""
        self.pipe.send(args)
        self._taken_over = True

    def close(self) -> None:
        """End the process, unless it has started. Idempotent."""
        if not self._taken_over:
            self._taken_over = True
            self.pipe.close()
            self.process.kill()
            self.process.join()


def _run_forked(target: Callable[..., None], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the whole process group
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    close_inherited_files(pipe.fileno())
    try:
        args = pipe.recv()
    except (EOFError, OSError):  # the parent is gone
        return
    target(*args, pipe)


class ChildProcess:
    """The parent's view of a process that runs ``target(*args, pipe)``. Raises OSError if it cannot start.

    forked  a process that waits for the arguments of the same target; None: one is spawned
    ready   set when the child reported that it is ready; ``ready_payload`` is the object it sent
    ended   set when the child closed the pipe
    hung    set when the child has sent no heartbeat in time
    """

    def __init__(
        self, name: str, target: Callable[..., None], *args: Any, forked: ForkedProcess | None = None
    ) -> None:
        self.ready, self.ended, self.hung = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ready_payload, self._failure = None, ""
        self._missed_heartbeats = 0
        self._check_timer: asyncio.TimerHandle | None = None
        if forked is not None:
            forked.start(args)
            self._pipe, self.process = forked.pipe, forked.process
        else:
            self._pipe, self.process = _spawn(name, target, args)
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._on_message)
        self._check_heartbeat()

    def _on_message(self) -> None:
        try:
            message = self._pipe.recv()
        except (EOFError, OSError):
            self._close_pipe()
            self.ended.set()
            return
        self._missed_heartbeats = 0
        if isinstance(message, bytes):
            self._failure = message.decode()
            return
        self.ready_payload = message
        self.ready.set()

    def _check_heartbeat(self) -> None:
        interval_s = HEARTBEAT_TIMEOUT_S / HEARTBEAT_CHECKS
        checks = HEARTBEAT_CHECKS if self.ready.is_set() else max(1, round(START_TIMEOUT_S / interval_s))
        if self._missed_heartbeats >= checks:
            self.hung.set()
            return
        self._missed_heartbeats += 1
        self._check_timer = asyncio.get_running_loop().call_later(interval_s, self._check_heartbeat)

    def exit_reason(self) -> str:
        """Why the process ended, as the predicate of a log line."""
        code = self.process.exitcode
        if self.hung.is_set():
            return f"sent no heartbeat and was killed (code {code})"
        if code is not None and code < 0:
            return f"was ended by signal {-code} ({signal.strsignal(-code)})"
        return f"ended with code {code}{self._failure and ': ' + self._failure}"

    async def stop(self, timeout_s: float) -> None:
        """Send SIGTERM, wait up to ``timeout_s``, then SIGKILL. Idempotent."""
        await asyncio.to_thread(self._stop_blocking, timeout_s)
        self._close_pipe()

    def _stop_blocking(self, timeout_s: float) -> None:
        if self.ended.is_set():  # it is about to exit with its own exit code
            self.process.join(EXIT_GRACE_S)
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(timeout_s)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _close_pipe(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()


def on_hangup(handler: Callable[[], None]) -> None:
    """At SIGHUP, also one during the start, call ``handler``, and send it to the processes started here."""

    def hang_up() -> None:
        handler()
        for child in multiprocessing.active_children():
            if child.name.startswith("aggregator-") and child.pid is not None:
                os.kill(child.pid, signal.SIGHUP)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])


def _spawn(name: str, target: Callable[..., None], args: tuple[Any, ...]) -> tuple[Connection, BaseProcess]:
    """The parent's end of the pipe and the process."""
    pipe, child_end = _SPAWN_CONTEXT.Pipe()
    with contextlib.closing(child_end):
        process = _SPAWN_CONTEXT.Process(target=target, args=(*args, child_end), name=name)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # inherited, until ``on_hangup``
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
    return pipe, process


async def keep_running(
    label: str,
    start: Callable[[], ChildProcess],
    stop: asyncio.Event,
    *,
    stop_timeout_s: float,
    on_ready: Callable[[Any], None] = lambda payload: None,
    on_failure: Callable[[str, int | None], bool | None],
) -> None:
    """Keep one process running until ``stop`` is set; returns when it has ended.

    label       what it is, for the log: "worker 0"
    stop        ends it, with SIGTERM, and after ``stop_timeout_s`` with SIGKILL
    on_ready    called with what each process sends when it is ready
    on_failure  called with the reason and the exit code of each process that died, hung or could not be
                started (code None); True gives up
    """
    pause_s = failed_s = 0.0
    while not stop.is_set():
        code, is_stable = None, False
        try:
            child = start()
        except OSError as error:  # no memory or process id left
            failure = f"cannot be started ({error.strerror or error})"
        else:
            try:
                await _wait_any(child.ready, child.ended, child.hung, stop)
                if child.ready.is_set():
                    on_ready(child.ready_payload)
                    ready_s = time.monotonic()
                    if failed_s:
                        log.info("%s is ready again after %.1f s", label, ready_s - failed_s)
                    failed_s = 0.0
                    await _wait_any(child.ended, child.hung, stop)
                    is_stable = time.monotonic() - ready_s >= STABLE_S
                stopped = stop.is_set()
            finally:
                await child.stop(stop_timeout_s)
            if stopped:
                return
            failure, code = child.exit_reason(), child.process.exitcode
        if on_failure(failure, code):
            return
        failed_s = failed_s or time.monotonic()
        pause_s = next_pause_s(pause_s, code, is_stable=is_stable)
        log.error("%s %s; starting another one in %g s", label, failure, pause_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause_s)


def next_pause_s(last_pause_s: float, code: int | None, *, is_stable: bool) -> float:
    """The pause before a process is started again: none after a long life, else doubling up to a limit."""
    longest_s = MAX_STORE_PAUSE_S if code == EXIT_UNAVAILABLE else MAX_PAUSE_S
    return 0.0 if is_stable else min(max(2 * last_pause_s, FIRST_PAUSE_S), longest_s)


async def _wait_any(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def run_child(main: Callable[[], Coroutine[Any, Any, int]], settings: Settings, pipe: Connection) -> NoReturn:
    """Configure logging, run ``main`` and exit with its result; the parent logs an AggregatorError."""
    configure_logging(settings.log_level, settings.log_format, with_process=True)
    try:
        code = run_loop(main())
    except AggregatorError as error:
        send_to_parent(pipe, str(error).removesuffix(".").encode(errors="replace"))
        code = exit_code(error)
    raise SystemExit(code)


def follow_parent(pipe: Connection, stop: asyncio.Event, timeout_s: float) -> None:
    """Send heartbeats to the parent from now on, and set ``stop`` when it is gone, and the pipe readable.

    The child then ends within ``timeout_s``, by SIGALRM if it is blocked: no parent is left to kill it.
    """
    loop = asyncio.get_running_loop()
    os.set_blocking(pipe.fileno(), False)

    def on_parent_death() -> None:
        loop.remove_reader(pipe.fileno())
        signal.alarm(max(1, round(timeout_s)))
        stop.set()

    def send_heartbeat() -> None:
        loop.call_later(HEARTBEAT_INTERVAL_S, send_heartbeat)
        send_to_parent(pipe, _HEARTBEAT)

    loop.add_reader(pipe.fileno(), on_parent_death)
    loop.call_later(HEARTBEAT_INTERVAL_S, send_heartbeat)


def send_to_parent(pipe: Connection, message: Any) -> None:
    """Send what makes the child ready, once, a heartbeat, or bytes that say why it ends."""
    with contextlib.suppress(OSError):  # the parent is gone, or stopped: a full pipe must not block the child
        pipe.send(message)
