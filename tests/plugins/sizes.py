"""pytest plugin of scripts/test with the three sizes of tests, and ``--unit``, which runs the smallest.

* **unit**: starts no process and opens no port; all of them together take less than a minute, since a
  property gets at most ``UNIT_EXAMPLES`` examples;
* **integration**: a server, worker processes, real news or many steps (``integration``, ``redis``, ``data``,
  or a fixture that starts a server);
* **services and browser**: whole services (``services``) and the pages in Chromium (``browser``).

With ``--unit`` a test that starts a process or opens a port fails, so that the sizes stay true.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

LARGER = {"integration", "redis", "data", "services", "browser"}
LARGER_MODULE = re.compile(rf"^pytestmark = .*\bmark\.(?:{'|'.join(sorted(LARGER))})\b", re.MULTILINE)
SERVER_FIXTURES = {"valkey_server", "redis_server", "cluster_of_session", "own_server"}
FORBIDDEN_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "socket.bind"}
UNIT_EXAMPLES = 10
watched: list[str] = []  # the test that runs now


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--unit``."""
    parser.addoption("--unit", action="store_true", help="only tests without processes and ports")


def pytest_configure(config: pytest.Config) -> None:
    """Forbid processes and ports when only unit tests run."""
    if config.getoption("--unit"):
        sys.addaudithook(refuse)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--unit`` do not import modules that are larger as a whole: that takes half of the time."""
    if not config.getoption("--unit") or collection_path.suffix != ".py":
        return None
    return True if LARGER_MODULE.search(collection_path.read_text(encoding="utf-8")) else None


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
        for item in items:
            limit_examples(item)


def is_unit(item: pytest.Item) -> bool:
    """Whether a test has no larger marker and no fixture that starts a server."""
    if any(mark.name in LARGER for mark in item.iter_markers()):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    uses_server = "store" in fixtures and parameters.get("store") != "memory"
    return not uses_server and not fixtures & SERVER_FIXTURES


def limit_examples(item: pytest.Item) -> None:
    """At most ``UNIT_EXAMPLES`` examples of a property."""
    function: Any = getattr(item, "obj", None)
    chosen = getattr(function, "_hypothesis_internal_use_settings", None)
    if chosen is not None and chosen.max_examples > UNIT_EXAMPLES:
        function._hypothesis_internal_use_settings = settings(chosen, max_examples=UNIT_EXAMPLES)


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Fail a unit test that starts a process or opens a port; an audit hook."""
    if watched and event in FORBIDDEN_EVENTS:
        raise AssertionError(
            f"A unit test started a process or a server ({event}); mark it integration or services."
        )
