"""Named subject: a name in most headlines is news, the same plain words in the routine of many names."""

from __future__ import annotations

from collections import deque

import pytest

from aggregator.analysis.text.tokenizer import tokenize
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.named_subject import (
    MIN_NAMING_HEADLINES,
    MIN_OCCURRENCES,
    NAME_SHARE,
    has_named_subject,
)
from tests.events.detection.test_cold_start import rates_of
from tests.events.detection.window_items import story_of, window_item

# The rate of "tremor" is 5e-6.
PLAIN = dict.fromkeys(
    ["sale", "rise", "share", "profit", "store", "second", "fire", "mill", "cut", "again", "report"], 0.05
)
RATES = rates_of(tremor=0.00005, **PLAIN, **{f"other{i}": 0.0005 for i in range(20_000)})
TOWNS = ("Thornby", "Estmark", "Quayside", "Northwater", "Alder", "Birch", "Cedar", "Dunmore", "Elm", "Fern")


def items(*titles: str, **fields: object) -> list[WindowItem]:
    """Items of one source with the terms of these headlines."""
    return [
        window_item(i, title, lang="en", terms=dict.fromkeys(tokenize(title, "en"), 255), **fields)
        for i, title in enumerate(titles)
    ]


def is_named(*titles: str, window: list[WindowItem] | None = None, **fields: object) -> bool:
    members = items(*titles, **fields)
    return has_named_subject(story_of(*members), deque([*(window or []), *members]), RATES)


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        ([f"Dozens hurt in Thornby fire near {town}" for town in TOWNS], True),
        ([f"{town} sales rise in second store" for town in TOWNS], False),
        ([f"{town} sales rise in May" for town in TOWNS], False),  # of the calendar
        ([f"{town} shares up after EPS" for town in TOWNS], False),  # of a statistic
        ([f"{town} profit rises in Q3" for town in TOWNS], False),  # a number
    ],
)
def test_news_has_a_name_in_most_headlines(titles: list[str], expected: bool) -> None:
    """Plain words, months, abbreviations of figures and numbers are no names."""
    assert is_named(*titles) is expected


@pytest.mark.parametrize(("named", "expected"), [(4, False), (5, True)])
def test_enough_items_hold_the_name(named: int, expected: bool) -> None:
    """Of ten items of one source, of which nine follow the first: 10 x 0.9 x the share."""
    assert named >= 10 * 0.9 * NAME_SHARE or not expected
    others = [f"A fire in a mill of {town}" for town in TOWNS[named:]]
    assert is_named(*(f"A fire in the mill of Thornby {i}" for i in range(named)), *others) is expected


@pytest.mark.parametrize(
    "titles",
    [
        [f"{town} Reports Sales In Second Store" for town in TOWNS],  # In Title Case
        [f"sales of {town.lower()} rise in a store" for town in TOWNS],  # without capital letters
        ["渡轮星期一恢复通航"] * 10,
    ],
)
def test_headlines_that_show_nothing_pass(titles: list[str]) -> None:
    """Languages without capital letters, and headlines that capitalize every word or none."""
    assert is_named(*titles)


def test_other_headlines_of_the_window_show_names_in_title_case() -> None:
    """What another headline of the window shows to be a plain word, or a name, decides here too."""
    titles = [f"{town} Reports Sales In Second Store" for town in TOWNS]
    plain = items("Mill reports sales in second store", "Birch reports sales in second store")

    assert not is_named(*titles, window=plain)
    assert is_named(
        *(f"{title} Of Orbex" for title in titles), window=[*plain, *items("Fire at Orbex is out")]
    )


@pytest.mark.parametrize(("word", "expected"), [("tremor", True), ("sale", False)])
def test_a_word_that_is_rare_in_news_is_a_subject(word: str, expected: bool) -> None:
    """The reports on an earthquake in many towns name another town each."""
    titles = [f"{town} cut off by {word}" for town in TOWNS]

    assert is_named(*titles) is expected
    assert not is_named(*titles[:7], *(f"{town} cut off again" for town in TOWNS[7:]))  # less than 0.8


def test_many_sources_are_evidence() -> None:
    """A topic that every outlet reports once is news without a name; one outlet's list is not."""
    titles = [f"{town} sales rise again" for town in TOWNS]
    members = items(*titles)
    for i, member in enumerate(members):
        member.source = f"{i}.example"

    assert has_named_subject(story_of(*members), deque(members), RATES)
    assert not is_named(*titles)


@pytest.mark.parametrize(
    ("headlines", "occurrences", "expected"),
    [
        (MIN_NAMING_HEADLINES, 0, False),
        (MIN_NAMING_HEADLINES, MIN_OCCURRENCES - 1, False),
        (MIN_NAMING_HEADLINES, MIN_OCCURRENCES, True),
        (MIN_NAMING_HEADLINES // 2, 0, True),  # too few to tell
    ],
)
def test_a_known_word_that_no_sentence_holds_is_no_name(
    headlines: int, occurrences: int, expected: bool
) -> None:
    """A name that is known from news in general is inside some headline of a large window."""
    titles = [f"{town} Sales Up" for town in TOWNS]
    others = [f"A fire in a mill of {TOWNS[i % 10]}" for i in range(headlines - occurrences)]
    window = items(*others, *(f"A mill {i} named Sales burns" for i in range(occurrences)))

    assert is_named(*titles, window=window) is expected
