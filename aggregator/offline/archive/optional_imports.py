"""Heavy libraries, imported when a method first needs them, with a plain sentence when one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from aggregator.errors import ConfigurationError


def import_optional(module: str, extra: str, feature: str) -> Any:
    """The module; raises ConfigurationError naming the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ConfigurationError(
            f"{feature} needs {package}, which is not installed; run `pip install 'aggregator[{extra}]'`."
        ) from None
