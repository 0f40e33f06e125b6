"""Server processes for tests: ``aggregator serve`` on a free port."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.support.hang_limit import HANG_LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
# A busy machine must not turn answers into 503; a test of the deadline sets its own.
UNHURRIED = {"AGGREGATOR_REQUEST_TIMEOUT_SECONDS": str(HANG_LIMIT_S)}
SERVE = (sys.executable, "-m", "aggregator", "serve", "--port=0")


@asynccontextmanager
async def serving(
    *arguments: str, pids: dict[int, str] | None = None, new_session: bool = False, **settings: object
) -> AsyncIterator[str]:
    """The URL of a server with these settings; SIGTERM ends it.

    ``pids``: gets the process id with the URL, for tests that send signals. ``new_session``: the server does
    not share processor time with this process where the scheduler divides it among sessions first (Linux).
    """
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # remembers a named store
    process = await asyncio.create_subprocess_exec(
        *SERVE,
        *options,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=new_session,
        env={
            **os.environ,
            **UNHURRIED,
            "AGGREGATOR_DETECTOR_INTERVAL_SECONDS": "0.2",
            "AGGREGATOR_DATA_DIR": directory.name,
        },
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
        directory.cleanup()


async def ready(process: asyncio.subprocess.Process) -> str:
    """Wait until a started server is ready; its URL."""
    assert process.stdout is not None
    async with asyncio.timeout(HANG_LIMIT_S):
        while b"ready on " not in (line := await process.stdout.readline()):
            assert line, "the server ended before it was ready"
    return line.split(b"ready on ")[1].strip().decode()


@contextmanager
def serving_alone(
    directory: Path, *arguments: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Process and URL of a server in ``directory`` that inherits no settings; needs no event loop."""
    inherited = {k: value for k, value in os.environ.items() if not k.startswith(("AGGREGATOR_", "REDIS_"))}
    path = os.pathsep.join([str(ROOT), *filter(None, [inherited.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [*SERVE, f"--data-dir={directory / 'data'}", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**inherited, **UNHURRIED, "PYTHONPATH": path, **variables},
        cwd=directory,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if " ready on " in line:
                yield process, line.split()[-1]
                break
        else:
            raise AssertionError(f"the server ended with {process.wait()}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
