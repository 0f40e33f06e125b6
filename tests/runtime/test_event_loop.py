"""Event loop of a process; signals and interpreter settings are tested in separate processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from aggregator.runtime.event_loop import run_loop
from tests.cli.helpers import ROOT
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration


def output_of(script: str) -> str:
    """What a Python process prints that runs ``script``."""
    return subprocess.check_output([sys.executable, "-c", script], text=True, timeout=HANG_LIMIT_S, cwd=ROOT)


def test_the_result_of_the_coroutine_is_returned() -> None:
    """On uvloop."""

    async def main() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert run_loop(main()) == "uvloop"


def test_an_error_of_the_coroutine_is_raised() -> None:
    """The process then ends with the exit code of that error."""

    async def main() -> None:
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        run_loop(main())


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stop_signal_is_handled_in_the_loop(name: str) -> None:
    """The process finishes its work instead of ending at once."""
    script = f"""
import asyncio, os, signal
from aggregator.runtime.event_loop import on_stop_signal, run_loop
async def main():
    stopped = asyncio.Event()
    on_stop_signal(stopped.set)
    os.kill(os.getpid(), signal.{name})
    await stopped.wait()
    return "finished"
print(run_loop(main()))
"""
    assert output_of(script) == "finished\n"


def test_a_tuned_interpreter_exempts_loaded_objects_and_still_collects() -> None:
    """Garbage in reference cycles is freed; what was loaded before is not traversed again."""
    script = """
import gc, sys
from aggregator.runtime import event_loop
event_loop.tune_interpreter()
print(gc.get_freeze_count() > 1000, gc.isenabled(), gc.get_threshold()[0], sys.getswitchinterval())
"""
    frozen, enabled, threshold, interval_s = output_of(script).split()

    assert (frozen, enabled) == ("True", "True")
    assert int(threshold) > 700
    assert float(interval_s) < 0.005
