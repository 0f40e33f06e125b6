"""Selection of outlets by name, order and page."""

from __future__ import annotations

import pytest

from aggregator.provenance.directory import SourceOrder, families_among, select
from aggregator.provenance.statistics import Family, SourcesReport
from tests.provenance.items import item, report_on

REPORT = report_on(
    item(10, "Alpha", minute=0),
    item(11, "Beta", of=10, minute=5),
    item(12, "Gamma Alpha", of=10, minute=2),
    item(13, "Beta", minute=13),
    item(14, "Beta", minute=14),
    item(15, "Gamma Alpha", minute=15),
)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("articles", ["Beta", "Gamma Alpha", "Alpha"]),
        ("originals", ["Alpha", "Beta", "Gamma Alpha"]),
        ("copies", ["Gamma Alpha", "Beta", "Alpha"]),
        ("copied", ["Alpha", "Beta", "Gamma Alpha"]),
        ("lag", ["Gamma Alpha", "Beta", "Alpha"]),
    ],
)
def test_orders(order: SourceOrder, expected: list[str]) -> None:
    """Shares, not counts, for originals and copies; an outlet without copies has no lag."""
    assert [source.name for source in select(REPORT, "", order, 0, 10).sources] == expected


def test_name_and_page() -> None:
    """Text anywhere in the name, ignoring case."""
    first = select(REPORT, " ALPHA ", "articles", 0, 1)
    second = select(REPORT, "alpha", "articles", 1, 1)

    assert [source.name for source in first.sources] == ["Gamma Alpha"]
    assert (first.total, first.next_offset) == (2, 1)
    assert [source.name for source in second.sources] == ["Alpha"]
    assert second.next_offset is None
    assert select(REPORT, "none", "articles", 0, 10).total == 0


def test_families_among_some_outlets() -> None:
    """Two members or more; a family of which one member is present changes nothing."""
    families = tuple(Family(tuple(members), 5, ()) for members in ("ABC", "DE", "FG"))
    report = SourcesReport(1, None, 0, 0, (), families)

    assert families_among(report, {"C", "A", "D", "F", "G", "X"}) == [("A", "C"), ("F", "G")]
