"""No regular expression of the package takes more than linear time on long text."""

from __future__ import annotations

from tests.hostile.expressions import cpu_seconds, expressions, texts

CHARACTERS = 40_000
# A linear expression takes some 0.01 s of CPU; a quadratic one at least 1 s: room for a slow machine on both sides.
LIMIT_S = 0.3


def test_no_expression_grows_faster_than_its_text() -> None:
    """``python tests/hostile/attack.py --expressions`` does the same with a million characters."""
    found = list(expressions())
    slow = [
        (where, piece)
        for where, expression in found
        for piece, text in texts(expression, CHARACTERS)
        if cpu_seconds(expression, text) > LIMIT_S
    ]

    assert len(found) > 30
    assert slow == []
