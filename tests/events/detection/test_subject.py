"""One subject: headlines of news share known and recurring words, a list of notices has a name in each."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.models import load_term_rates
from aggregator.events.detection.subject import (
    EVERYDAY_BUSY_DAYS,
    MANY_USUAL_ITEMS,
    core_terms,
    count_terms,
    dependent_share,
    fills_template,
    known_share,
)
from tests.events.detection.test_cold_start import REACTIONS, rates_of, terms
from tests.events.detection.window_items import story_of, window_item
from tests.support.detector_stream import DetectorStream

# A term that is not listed is as rare as half of the others here.
KNOWN = dict.fromkeys(("profit", "rain", "river", "school", "road"), 0.05)
RATES = rates_of(**KNOWN, **{f"other{i}": 0.0005 for i in range(20_000)})
NEWS = ["thornby flood rain", "thornby flood river", "thornby flood school", "thornby flood road"] * 5
RESULTS = [f"profit quarter name{i} place{i}" for i in range(20)]
# Half of the other words are names.
MIXED = [f"profit quarter name{i} {word}" for i, word in enumerate(["rain", "river", "school", "road"] * 5)]


@pytest.mark.parametrize(("headlines", "expected"), [(NEWS, 1.0), (RESULTS, 0.0), (MIXED, 0.5)])
def test_known_share_is_that_of_the_words_outside_the_core(headlines: list[str], expected: float) -> None:
    """Words that most headlines hold do not count, be they known or not."""
    members = [window_item(i, words, lang="en") for i, words in enumerate(headlines)]
    counts = count_terms(members)

    assert known_share(members, counts, core_terms(members, counts), RATES) == expected


@pytest.mark.parametrize(
    ("headlines", "usual_items", "expected"),
    [
        (NEWS, 0.0, False),
        (NEWS, 10.0, False),
        (RESULTS, 0.0, True),
        (MIXED, MANY_USUAL_ITEMS, False),
        (MIXED, MANY_USUAL_ITEMS + 0.1, True),
    ],
)
def test_more_is_required_where_items_are_usual(
    headlines: list[str], usual_items: float, expected: bool
) -> None:
    """Half of the other words known is enough for a new topic, not for one that is in the news every day."""
    story = story_of(*(window_item(i, words, lang="en") for i, words in enumerate(headlines)))

    assert fills_template(story, usual_items, RATES) is expected


def test_independent_sources_are_evidence() -> None:
    """The same items from as many sources are no list of one publisher."""
    items = [window_item(i, words, lang="en", source=f"{i}.example") for i, words in enumerate(RESULTS)]

    assert dependent_share(items) == 0.0
    assert not fills_template(story_of(*items), 10.0, RATES)


def test_nothing_is_known_without_rates_or_in_other_languages() -> None:
    """The rule needs the frequencies of words in news."""
    members = [window_item(i, words, lang="xx") for i, words in enumerate(RESULTS)]
    story = story_of(*members)

    assert not fills_template(story, 10.0, None)
    assert not fills_template(story, 10.0, RATES)


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1), min_size=1), st.randoms())
def test_known_share_does_not_depend_on_the_order(headlines: list[set[str]], rng: random.Random) -> None:
    """It is a share, for any items in any order."""
    members = [window_item(i, " ".join(sorted(words)), lang="en") for i, words in enumerate(headlines)]
    counts = count_terms(members)
    share = known_share(members, counts, core_terms(members, counts), RATES)
    rng.shuffle(members)

    assert 0.0 <= share <= 1.0
    assert known_share(members, counts, core_terms(members, counts), RATES) == share


def test_company_results_do_not_fire_after_the_first_day() -> None:
    """Two days of other headlines are known; the results are in no fixed order of words, as in a template."""
    fired = []
    rng = random.Random(7)
    names = ["".join(rng.choices("bdfklmnprstvz", k=3)) + rng.choice("aeiou") * 2 for _ in range(120)]
    results = [
        f"{a} quarterly profit {b}" if i % 2 else f"Profit of {a} {b}, quarterly"
        for i, (a, b) in enumerate(zip(names[::2], names[1::2], strict=True))
    ]
    for headlines in (results, list(REACTIONS)):
        stream = DetectorStream(rates=load_term_rates())
        for i in range(96):
            stream.send(i * 30.0, f"filler{i} topic{i}", lang="en")
        for i, title in enumerate(headlines):
            stream.send(
                2_900 + 2.1 * i, title=title, terms=terms(title), lang="en", source="one.example", words=""
            )
        fired.append(len(stream.fired))

    assert fired == [0, 1]


def test_what_is_rare_in_news_is_no_everyday_topic() -> None:
    """One earthquake in two days of history makes many items usual; results of companies are usual indeed."""
    quake = [
        f"profit tremor name{i} {word}" for i, word in enumerate(["rain", "river", "school", "road"] * 5)
    ]
    rates = rates_of(tremor=0.00005, **KNOWN, **{f"other{i}": 0.0005 for i in range(20_000)})

    def fills(title: str, busy_days: int = EVERYDAY_BUSY_DAYS - 1) -> bool:
        members = [window_item(i, words, lang="en", title=title) for i, words in enumerate(quake)]
        return fills_template(story_of(*members), 10.0, rates, lambda _: busy_days)

    assert not fills("Towns cut off by tremor")
    assert fills("Towns cut off by Tremor")  # a name is in the news every day
    assert fills("Towns cut off by tremor", EVERYDAY_BUSY_DAYS)  # a stream on earthquakes


def test_only_headlines_show_a_template() -> None:
    """Known words in the openings of the texts do not make news of a list of results."""
    opening = dict.fromkeys(("rain", "river", "school", "road"), 128)
    members = [
        window_item(i, lang="en", terms={**dict.fromkeys(words.split(), 255), **opening})
        for i, words in enumerate(RESULTS)
    ]
    counts = count_terms(members)

    assert known_share(members, counts, core_terms(members, counts), RATES) == 0.0
