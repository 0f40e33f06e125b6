"""Newswire prefixes of headlines."""

from __future__ import annotations

import pytest

from aggregator.analysis.text.headline import strip_desk_prefix


@pytest.mark.parametrize(
    ("title", "stripped"),
    [
        ("UPDATE 2-Bridge closed", "Bridge closed"),
        ("RPT-WRAPUP 1-Bridge closed", "Bridge closed"),
        ("US STOCKS SNAPSHOT-Shares fall", "Shares fall"),
        ("HARBOUR NEWS 12 - Bridge closed", "Bridge closed"),
        ("Bridge-builder honoured", "Bridge-builder honoured"),
        ("NATO-led force leaves", "NATO-led force leaves"),
        ("UPDATE 2-", "UPDATE 2-"),
        ("WHEAT HARVEST - MINISTRY", "WHEAT HARVEST - MINISTRY"),
        ("", ""),
    ],
)
def test_newswire_prefixes_are_recognized_by_their_shape(title: str, stripped: str) -> None:
    """Capitals, optionally a number, a dash."""
    assert strip_desk_prefix(title) == stripped
