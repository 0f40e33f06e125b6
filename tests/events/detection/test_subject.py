"""One subject, known or rare words, and names in most headlines."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.models import load_term_rates
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.subject import (
    EVERYDAY_BUSY_DAYS,
    MANY_USUAL_ITEMS,
    MIN_NAMING_HEADLINES,
    MIN_OCCURRENCES,
    NAME_SHARE,
    core_terms,
    count_terms,
    dependent_share,
    fills_template,
    has_named_subject,
    is_rare_plain_word,
    is_rare_word,
    known_share,
    may_be_subject,
)
from tests.events.detection.test_expectation import REACTIONS, rates_of, terms
from tests.events.detection.window_items import cluster_of, window_item
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
    cluster = cluster_of(*(window_item(i, words, lang="en") for i, words in enumerate(headlines)))

    assert fills_template(cluster, usual_items, RATES) is expected


def test_independent_sources_are_evidence() -> None:
    """The same items from as many sources are no list of one publisher."""
    items = [window_item(i, words, lang="en", source=f"{i}.example") for i, words in enumerate(RESULTS)]

    assert dependent_share(items) == 0.0
    assert not fills_template(cluster_of(*items), 10.0, RATES)


def test_nothing_is_known_without_rates_or_in_other_languages() -> None:
    """The rule needs the frequencies of words in news."""
    members = [window_item(i, words, lang="xx") for i, words in enumerate(RESULTS)]
    cluster = cluster_of(*members)

    assert not fills_template(cluster, 10.0, None)
    assert not fills_template(cluster, 10.0, RATES)


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
        return fills_template(cluster_of(*members), 10.0, rates, lambda _: busy_days)

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


# The rates of "tremor" and "orbex" are 5e-6; "sale" is frequent.
RATES = rates_of(tremor=0.00005, orbex=0.00005, sale=0.05, **{f"o{i}": 0.0005 for i in range(20_000)})


@pytest.mark.parametrize(
    ("term", "expected"),
    [("tremor", True), ("ebitda", False), ("bln", False), ("iii", False), ("q3", False)],
)
def test_figures_are_no_subjects(term: str, expected: bool) -> None:
    assert may_be_subject(term) is expected


@pytest.mark.parametrize(
    ("term", "title", "rare", "plain"),
    [
        ("tremor", "Town cut off by tremor", True, True),
        ("tremor", "Tremor In Thornby Cuts Off Town", False, False),  # nothing shows what it is
        ("orbex", "Sales of Orbex rise again", True, False),  # a name
        ("sale", "A rise of sale and profit", False, False),  # frequent
    ],
)
def test_a_rare_plain_word_is_no_name(term: str, title: str, rare: bool, plain: bool) -> None:
    members = [window_item(0, title, lang="en", terms={term: 100})]

    assert is_rare_word(term, members, RATES) is rare
    assert is_rare_plain_word(term, members, RATES) is plain


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
    return has_named_subject(cluster_of(*members), deque([*(window or []), *members]), RATES)


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

    assert has_named_subject(cluster_of(*members), deque(members), RATES)
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
