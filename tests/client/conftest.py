"""Virtual time for the pauses between the attempts of a request."""

from __future__ import annotations

import asyncio

import pytest

from aggregator_client import connection, transport


class VirtualTime:
    """Clock that advances by pauses only, in place of ``time`` and ``asyncio`` in the retrying modules.

    Pauses take no real time and attempts take no virtual time, so a deadline does not depend on the speed of
    the machine. The limit of one attempt is real.
    """

    Semaphore = asyncio.Semaphore
    timeout = staticmethod(asyncio.timeout)

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """Virtual seconds since the start."""
        return self.now_s

    async def sleep(self, pause_s: float) -> None:
        """Advance the clock; other tasks run."""
        self.now_s += pause_s
        await asyncio.sleep(0)


@pytest.fixture
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """The clock of all requests of this test."""
    clock = VirtualTime()
    for module in (connection, transport):
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(module, "asyncio", clock)
    return clock
