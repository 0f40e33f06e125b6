"""Every regular expression of the package runs in linear time on long texts."""

from __future__ import annotations

import pytest

from tests.hostile.expressions import cpu_seconds, expressions, texts

CHARACTERS = 40_000
# A linear expression takes 0.01 to 0.3 s of CPU, a quadratic one at least 1 s.
LIMIT_S = 0.6


@pytest.mark.integration
def test_every_regular_expression_takes_linear_time() -> None:
    """``python -m tests.hostile.attack --expressions`` does the same with a million characters."""
    found = list(expressions())
    slow = [
        (location, piece)
        for location, expression in found
        for piece, text in texts(expression, CHARACTERS)
        if all(cpu_seconds(expression, text) > LIMIT_S for _ in range(3))  # one may be disturbed
    ]

    assert len(found) > 30
    assert slow == []
