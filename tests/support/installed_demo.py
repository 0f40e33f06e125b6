"""The demonstration of an installed wheel: ``python -m tests.support.installed_demo ENVIRONMENT``.

``scripts/release`` and its test run it on an environment that has the wheel and not this working tree.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.support.hang_limit import HANG_LIMIT_S


def check_demo(environment: Path) -> list[str]:
    """Run ``aggregator serve --demo`` of a virtual environment; returns the titles of the events it reports.

    The directory of the command is empty, and it inherits neither settings nor paths of Python modules.
    Raises AssertionError if a step fails.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGGREGATOR_", "REDIS_", "PYTHON"))
    }
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [environment.absolute() / "bin" / "aggregator", "serve", "--demo", "--port=0"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=directory,
            env={**inherited, "AGGREGATOR_REQUEST_TIMEOUT_SECONDS": str(HANG_LIMIT_S)},
        )
        assert process.stdout is not None
        try:
            url = _read_until(process.stdout.readline, " ready on ").split()[-1]
            assert _get(url + "/readyz").startswith("{")
            _read_until(process.stdout.readline, "editors' page")  # the end of the demonstration's report
            assert "<main" in _get(url + "/")
            titles = _wait_for_events(url)
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_LIMIT_S) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    return titles


def _wait_for_events(url: str) -> list[str]:
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while time.monotonic() < deadline_s:
        titles = [str(event["title"]) for event in json.loads(_get(url + "/v1/events"))["events"]]
        if titles:
            return titles
        time.sleep(0.2)  # the detector is another process
    raise AssertionError("the demonstration fired no event")


def _read_until(readline: Callable[[], str], part: str) -> str:
    """The first line with ``part``."""
    while part not in (line := readline()):
        assert line, f"the service ended before it printed {part!r}"
    return line


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=HANG_LIMIT_S) as response:  # raises for 4xx and 5xx
        return str(response.read().decode())


if __name__ == "__main__":
    print("demo events: " + "; ".join(check_demo(Path(sys.argv[1]))))
