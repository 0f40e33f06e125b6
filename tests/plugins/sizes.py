"""pytest plugin of scripts/test with the three sizes of tests, and ``--unit``, which runs the smallest.

* **unit**: starts no process and opens no server; all of them together take less than a minute;
* **integration**: a store server, worker processes, real news or many examples (``integration``, ``redis``,
  ``data``, or a fixture that starts a server);
* **services and browser**: whole services (``services``) and the pages in Chromium (``browser``).

With ``--unit`` a test that starts a process fails, so that the sizes stay true.
"""

from __future__ import annotations

import sys

import pytest

LARGER = {"integration", "redis", "data", "services", "browser"}
SERVER_FIXTURES = {"valkey_server", "redis_server", "cluster_of_session", "own_server"}
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--unit``."""
    parser.addoption("--unit", action="store_true", help="only tests that start no process")


def pytest_configure(config: pytest.Config) -> None:
    """Forbid processes when only unit tests run; pytest-xdist starts its own before that."""
    if config.getoption("--unit") and (
        hasattr(config, "workerinput") or not config.getoption("numprocesses", 0)
    ):
        sys.addaudithook(refuse_processes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out larger tests if only unit tests were asked for."""
    if config.getoption("--unit"):
        larger = [item for item in items if not is_unit(item)]
        config.hook.pytest_deselected(items=larger)
        items[:] = [item for item in items if is_unit(item)]


def is_unit(item: pytest.Item) -> bool:
    """Whether a test has no larger marker and no fixture that starts a server."""
    if any(mark.name in LARGER for mark in item.iter_markers()):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    uses_server = "store" in fixtures and parameters.get("store") != "memory"
    return not uses_server and not fixtures & SERVER_FIXTURES


def refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    """Fail a unit test that starts a process; an audit hook."""
    if event in PROCESS_EVENTS:
        raise AssertionError(f"A unit test started a process ({event}); mark it integration or services.")
