"""Import of optional libraries at first use, with an error that names the missing extra."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from aggregator.errors import ConfigurationError


def import_optional(module: str, requirement: str, feature: str) -> Any:
    """Import ``module``. Raises ConfigurationError naming the ``requirement`` that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            f"{feature} needs {module.partition('.')[0]}, which is not installed; run "
            f"`{sys.executable} -m pip install '{requirement}'`."
        ) from None
