"""Children that end with their parent."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from aggregator.parent_death import parent_death_hook
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import is_alive

pytestmark = pytest.mark.integration

PARENT = """
import os, signal, subprocess, sys
from aggregator.parent_death import parent_death_hook

hook = parent_death_hook(signal.SIGTERM)
child = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, preexec_fn=hook)
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
async def test_a_child_ends_when_its_parent_is_killed() -> None:
    """SIGKILL leaves the parent no time to end it."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    await parent.wait()

    async with asyncio.timeout(HANG_LIMIT_S):
        while is_alive(child):  # noqa: ASYNC110  another process
            await asyncio.sleep(0.01)


async def test_no_hook_in_other_threads() -> None:
    """The kernel would end the child with the thread."""
    assert await asyncio.to_thread(parent_death_hook, signal.SIGTERM) is None
