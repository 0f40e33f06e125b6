"""pytest plugin of scripts/check: marks every hypothesis test ``property`` and gives it many more examples.

A profile does not reach a test that names its own number of examples: that one gets twenty times
as many too, up to as many as the others.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = 2000
TIMES = EXAMPLES // settings.get_profile("default").max_examples

settings.register_profile(
    "thorough", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def pytest_configure(config: pytest.Config) -> None:
    """``property`` exists only here: it is put on by hypothesis, not by hand."""
    config.addinivalue_line("markers", "property: a hypothesis test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before ``-m`` selects."""
    functions = {}
    for item in items:
        function = getattr(item, "function", None)
        if getattr(function, "is_hypothesis_test", False):
            item.add_marker("property")
            functions[id(function)] = function
    for function in functions.values():
        if hasattr(function, "_hypothesis_internal_settings_applied"):
            own = function._hypothesis_internal_use_settings
            examples = max(own.max_examples, min(EXAMPLES, TIMES * own.max_examples))
            function._hypothesis_internal_use_settings = settings(own, max_examples=examples)
