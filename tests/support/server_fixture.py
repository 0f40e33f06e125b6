"""Server processes for tests: the real command on a free port."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

READY_S = 60
ROOT = Path(__file__).resolve().parents[2]


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
        env={**os.environ, "AGGREGATOR_DETECTOR_INTERVAL_SECONDS": "0.2"},
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


@contextmanager
def serving_alone(
    directory: Path, *arguments: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """For tests without an event loop, in ``directory`` and under no settings but these: process and URL."""
    kept = {k: value for k, value in os.environ.items() if not k.startswith(("AGGREGATOR_", "REDIS_"))}
    path = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "aggregator",
            "serve",
            "--port=0",
            f"--data-dir={directory / 'data'}",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**kept, "PYTHONPATH": path, **variables},
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
