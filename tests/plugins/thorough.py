"""pytest plugin of scripts/check that marks every hypothesis test ``property`` and runs many more examples.

A profile does not affect a test with its own ``max_examples``; here that number is multiplied by the same
factor, up to the number of the profile.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = 2000
FACTOR = EXAMPLES // settings.get_profile("default").max_examples

settings.register_profile(
    "thorough", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker ``property``, which this plugin sets."""
    config.addinivalue_line("markers", "property: a hypothesis test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests before ``-m`` selects, and raise their number of examples."""
    functions: dict[int, Any] = {}
    for item in items:
        function = getattr(item, "function", None)
        if getattr(function, "is_hypothesis_test", False):
            item.add_marker("property")
            functions[id(function)] = function
    for function in functions.values():
        if hasattr(function, "_hypothesis_internal_settings_applied"):
            applied = function._hypothesis_internal_use_settings
            examples = max(applied.max_examples, min(EXAMPLES, FACTOR * applied.max_examples))
            function._hypothesis_internal_use_settings = settings(applied, max_examples=examples)
