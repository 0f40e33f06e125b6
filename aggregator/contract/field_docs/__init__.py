"""Descriptions and examples of the fields of the contract v1, for the OpenAPI document.

A table maps "field" (in any schema) or "Schema.field" (that schema and its subclasses; takes precedence) to a
description with its unit and an example. A description in the type itself takes precedence over that of
"field". Fields that hold other schemas have no example of their own (``REF``).
"""

from __future__ import annotations

from typing import Any

from aggregator.contract.field_docs import articles, events, operations
from aggregator.contract.field_docs.model import REF

FIELD_DOCS: dict[str, tuple[str, Any]] = {**articles.FIELDS, **events.FIELDS, **operations.FIELDS}

__all__ = ["FIELD_DOCS", "REF"]
