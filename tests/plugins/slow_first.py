"""pytest plugin of scripts/test that runs the slow modules first.

These are the modules in which at least half of the tests start server processes or a browser. They have few
tests, each of seconds, and pytest-xdist by itself starts the modules with the most tests first: one process
would run the last slow module alone. Needs ``--no-loadscope-reorder``.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

SLOW = {"services", "browser"}


@pytest.hookimpl(trylast=True)  # after pytest-randomly, whose order is kept otherwise
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the slow modules to the front."""
    marked: dict[str, list[bool]] = defaultdict(list)
    for item in items:
        marked[module_of(item)].append(any(mark.name in SLOW for mark in item.iter_markers()))
    slow = {module for module, tests in marked.items() if 2 * sum(tests) >= len(tests)}
    items.sort(key=lambda item: module_of(item) not in slow)


def module_of(item: pytest.Item) -> str:
    """Path of the module of a test, from the root of the project."""
    return item.nodeid.partition("::")[0]
