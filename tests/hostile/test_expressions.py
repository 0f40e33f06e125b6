"""Every regular expression of the package runs in linear time on long texts."""

from __future__ import annotations

import re
from itertools import islice

import pytest

from tests.hostile.expressions import cpu_seconds, expressions, texts

CHARACTERS = 40_000
# A linear expression takes 0.01 to 0.3 s of CPU, a quadratic one at least 1 s, and 0.06 s of a quarter.
LIMIT_S, SUSPECT_S = 0.6, 0.03


@pytest.mark.integration
def test_every_regular_expression_takes_linear_time() -> None:
    """``python -m tests.hostile.attack --expressions`` does the same with a million characters."""
    found = list(expressions())
    slow = [
        (location, piece)
        for location, expression in found
        for (piece, text), (_, quarter) in zip(
            texts(expression, CHARACTERS), texts(expression, CHARACTERS // 4), strict=True
        )
        if cpu_seconds(expression, quarter) > SUSPECT_S
        and all(cpu_seconds(expression, text) > LIMIT_S for _ in range(3))  # one may be disturbed
    ]

    assert len(found) > 30
    assert slow == []


@pytest.mark.parametrize("pattern", [r"\s+$", r"(?:a|b)*c\d*d", r"a.*b.*c"])
def test_a_slow_expression_is_suspected(pattern: str) -> None:
    """On a quarter of the text already, so that no other one is tried in full."""
    expression = re.compile(pattern)
    pieces = (text for _, text in texts(expression, CHARACTERS // 4))

    assert any(cpu_seconds(expression, text) > SUSPECT_S for text in islice(pieces, 2))
