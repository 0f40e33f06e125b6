"""Server processes for tests: the real command on a free port."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

READY_S = 60


@asynccontextmanager
async def serving(
    *arguments: str, pids: dict[int, str] | None = None, **settings: object
) -> AsyncIterator[str]:
    """``aggregator serve`` with these settings; gives its URL and ends it with SIGTERM.

    ``pids``: gets process id -> URL, for tests that send signals.
    """
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "aggregator",
        "serve",
        "--port=0",
        *options,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "AGGREGATOR_TICK_SECONDS": "0.2"},
    )
    try:
        url = await ready(process)
        if pids is not None:
            pids[process.pid] = url
        yield url
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


async def ready(process: asyncio.subprocess.Process) -> str:
    """The URL of a server that was just started, as soon as it says that it is ready on it."""
    assert process.stdout is not None
    async with asyncio.timeout(READY_S):
        while b"ready on " not in (line := await process.stdout.readline()):
            assert line, "the server ended before it was ready"
    return line.split(b"ready on ")[1].strip().decode()
