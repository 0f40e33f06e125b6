"""The marker of fields that hold other schemas."""

from __future__ import annotations

from typing import Any, Final

REF: Final[Any] = object()
