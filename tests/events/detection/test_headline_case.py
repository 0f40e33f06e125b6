"""Case of headlines: sentences show names, headlines In Title Case show a style."""

from __future__ import annotations

import pytest

from aggregator.events.detection.headline_case import occurrences_inside, shows_names, title_case_share
from tests.events.detection.window_items import window_item


@pytest.mark.parametrize(
    ("title", "shows", "title_case"),
    [
        ("At least 12 dead in Thornby market fire", True, False),
        ("Northwater Announces Third Quarter Results", False, True),
        ("Orbex PLC - Transaction in Own Shares", False, True),
        ("MARKET FIRE KILLS TWELVE", False, True),
        ("Thornby fire", True, False),
        ("Orbex Results", False, False),  # too short to show a style
        ("thornby market is open again", False, False),
        ("渡轮星期一恢复通航", False, False),
        ("12 34", False, False),
        ("", False, False),
    ],
)
def test_a_headline_shows_names_or_a_style(title: str, shows: bool, title_case: bool) -> None:
    assert shows_names(title) is shows
    assert title_case_share([window_item(0, title)]) == float(title_case)


def test_the_share_is_that_of_all_headlines() -> None:
    members = [window_item(0, "Orbex Names New Chief"), window_item(1, "Orbex says it has a new chief")]

    assert title_case_share(members) == 0.5
    assert title_case_share([]) == 0.0


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Fire Destroys Factory in Thornby", []),  # In Title Case
        ("Fire destroys a Factory of cars", ["Factory"]),
        ("Factory fire is out", []),  # the first word
        ("Thornby stocks - Factory orders to watch", []),  # the first word of a part
        ("Thornby: Factory of cars burns", []),
        ("Thornby sales rise; factory to close", ["factory"]),  # a small letter is not a name anywhere
        ("Half-built factory burns in Thornby", ["factory"]),  # a hyphen does not begin a part
    ],
)
def test_occurrences_are_inside_a_part_of_a_headline(title: str, expected: list[str]) -> None:
    """The first word of a headline, or of a part of it, has a capital letter whatever it is."""
    member = window_item(0, title, lang="en", terms={"factori": 100, "factory": 100})

    assert [*occurrences_inside("factori", [member]), *occurrences_inside("factory", [member])] == expected
    assert not list(occurrences_inside("thornbi", [member]))  # not a term of the item
