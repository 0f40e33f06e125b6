"""pytest plugin of scripts/test with the three sizes of tests, and ``--unit``, which runs the smallest.

* **unit**: starts no process and opens no server; all of them together take less than a minute;
* **integration**: a store server, worker processes, real news or many examples (``integration``, ``redis``,
  ``data``, or a fixture that starts a server);
* **services and browser**: whole services (``services``) and the pages in Chromium (``browser``).

With ``--unit`` a test that starts a process fails, so that the sizes stay true.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

LARGER = {"integration", "redis", "data", "services", "browser"}
SERVER_FIXTURES = {"valkey_server", "redis_server", "cluster_of_session", "own_server"}
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
watched: list[str] = []  # the test that runs now


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--unit``."""
    parser.addoption("--unit", action="store_true", help="only tests that start no process")


def pytest_configure(config: pytest.Config) -> None:
    """Forbid processes when only unit tests run."""
    if config.getoption("--unit"):
        sys.addaudithook(refuse_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watch the tests alone: pytest itself may start processes."""
    watched.append(item.nodeid)
    try:
        return (yield)
    finally:
        watched.clear()


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
    if watched and event in PROCESS_EVENTS:
        raise AssertionError(f"A unit test started a process ({event}); mark it integration or services.")
