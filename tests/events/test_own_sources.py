"""The newsroom's own sources."""

from __future__ import annotations

import pytest

from aggregator.events.own_sources import OwnSources


@pytest.mark.parametrize(
    ("source", "expected"),
    [("Harbour Times", True), ("  harbour  TIMES", True), ("Harbour Times Sport", False), ("", False)],
)
def test_a_source_is_recognized_in_any_case(source: str, expected: bool) -> None:
    """White space and letter case do not matter, the rest of the name does."""
    own = OwnSources("Quay News, Harbour Times,,")

    assert own.is_own(source) is expected
    assert own.any_of(["Pier Nine", source]) is expected


def test_without_own_sources_no_event_is_ours() -> None:
    """Also none whose articles name no source."""
    own = OwnSources("")

    assert not own
    assert not own.any_of([""])
