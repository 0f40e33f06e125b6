"""Types of the HTTP API."""

from __future__ import annotations

import pydoc

import pytest
from msgspec import Struct

from aggregator_client import wire

TYPES = [kind for kind in vars(wire).values() if isinstance(kind, type) and issubclass(kind, Struct)]


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind.__struct_fields__])
def test_help_shows_each_field_with_its_meaning(kind: type[Struct]) -> None:
    """No signature of annotations, which has 4,000 characters in one line for a verdict."""
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)  # type: ignore[attr-defined]

    assert max(map(len, text.splitlines())) < 450
    for name in kind.__struct_fields__:
        assert f" |  {name}\n |      " in text, name
