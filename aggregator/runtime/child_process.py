"""A process of ours and its parent: started with a pipe, ready when it says so, gone when the pipe closes.

Both ends watch that pipe. A child whose parent vanished, even by SIGKILL, ends by itself. One that is ready gives a sign
of life every second from its event loop; when there is none for ``HUNG_S`` it hangs, and waiting for it to end would be in vain.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

# "spawn": a forked child would inherit the event loop's sockets and threads' locks.
_SPAWN_CONTEXT = multiprocessing.get_context("spawn")
EXIT_GRACE_S = 1.0
HEARTBEAT_INTERVAL_S = 1.0
# Far more than any step of an event loop here takes, on the busiest machine.
HEARTBEAT_TIMEOUT_S = 60.0
# So often the parent looks meanwhile. Where all stood still (a machine that was suspended), that is one look without a sign.
HEARTBEAT_CHECKS = 10
_HEARTBEAT = b"alive"


class ChildProcess:
    """A process that runs ``target(*args, pipe)``; ``said``: what it sent when it was ready. Raises OSError at start.

    ``hung`` is set once a ready one has given no sign of life for ``HUNG_S``.
    """

    def __init__(self, name: str, target: Callable[..., None], *args: Any) -> None:
        self.ready, self.ended, self.hung = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ready_payload: Any = None
        self._missed_heartbeats = 0
        self._check_timer: asyncio.TimerHandle | None = None
        self._pipe, theirs = _SPAWN_CONTEXT.Pipe()
        with contextlib.closing(theirs):
            self.process = _SPAWN_CONTEXT.Process(target=target, args=(*args, theirs), name=name)
            try:
                self.process.start()
            except BaseException:
                self._pipe.close()
                raise
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._on_message)

    def _on_message(self) -> None:
        try:
            said = self._pipe.recv()
        except (EOFError, OSError):
            self._close_pipe()
            self.ended.set()
            return
        self._missed_heartbeats = 0
        if not self.ready.is_set():
            self.ready_payload = said
            self.ready.set()
            self._check_heartbeat()

    def _check_heartbeat(self) -> None:
        if self._missed_heartbeats >= HEARTBEAT_CHECKS:
            self.hung.set()
            return
        self._missed_heartbeats += 1
        self._check_timer = asyncio.get_running_loop().call_later(
            HEARTBEAT_TIMEOUT_S / HEARTBEAT_CHECKS, self._check_heartbeat
        )

    def exit_reason(self) -> str:
        """Why there is no such process any more, for a line of the log."""
        code = self.process.exitcode
        return (
            f"gave no sign of life and was ended (code {code})"
            if self.hung.is_set()
            else f"ended with code {code}"
        )

    async def stop(self, timeout_s: float) -> None:
        """Ask, wait, insist. Idempotent."""
        await asyncio.to_thread(self._stop_blocking, timeout_s)
        self._close_pipe()

    def _stop_blocking(self, timeout_s: float) -> None:
        if self.ended.is_set():  # it is about to end by itself, with an exit code of its own
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


async def wait_any(*events: asyncio.Event) -> None:
    """Wait for any of them."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def stop_with_parent(pipe: Connection, stop: asyncio.Event) -> None:
    """In the child: ``stop`` is set when the parent is gone. The pipe is only ever readable at its end."""
    asyncio.get_running_loop().add_reader(pipe.fileno(), stop.set)


def report_ready(pipe: Connection, payload: Any) -> None:
    """In the child, once: tell the parent that it is ready, and from now on that it is alive."""
    loop = asyncio.get_running_loop()

    def beat() -> None:
        loop.call_later(HEARTBEAT_INTERVAL_S, beat)
        with contextlib.suppress(OSError):  # a parent that stands still is not waited for
            pipe.send(_HEARTBEAT)

    with contextlib.suppress(OSError):  # the parent may have gone meanwhile
        pipe.send(payload)
        os.set_blocking(pipe.fileno(), False)
        loop.call_later(HEARTBEAT_INTERVAL_S, beat)
