"""Newsworthiness: the model, and the evidence of templates, names, known words, case and times."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any

import pytest

from aggregator.analysis.text.tokenizer import tokenize
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.items import case_shares, occurrences_inside
from aggregator.events.detection.newsworthiness import (
    MIN_PROBABILITY,
    WEIGHTS,
    Evidence,
    core_terms,
    count_terms,
    frame_words,
    known_share,
    measure,
    named_share,
    probability,
    round_time_share,
)
from aggregator.time_units import MINUTE_MS
from tests.events.detection.test_expectation import rates_of
from tests.events.detection.window_items import window_item
from tests.support.detector_stream import DetectorStream

NEUTRAL = Evidence(2.0, 0.0, 0.7, -0.2, -0.5, -0.05, 0.0)
TOWNS = (
    "Thornby", "Quayside", "Estmark", "Hollin", "Marsby", "Petworth", "Caldby", "Aldwick", "Brenton", "Oss"
)  # fmt: skip
SALES = [f"{town} retailer posts May same-store sales up {i} pct" for i, town in enumerate(TOWNS)]
NEWS = [
    "At least 12 dead in Thornby market fire",
    "Thornby fire: what is known",
    "Mayor calls for calm after blaze in Thornby",
    "Fire crews search ruins of Thornby market",
    "Insurers see high claims after fire in Thornby",
    "Hospital in Thornby treats 40",
    "Prime minister visits scene of Thornby blaze",
    "Witness: market roof fell within minutes",
]


@pytest.mark.parametrize("name", Evidence._fields[:-1])
def test_more_of_any_evidence_never_lowers_the_probability(name: str) -> None:
    values = [probability(NEUTRAL._replace(**{name: x / 4})) for x in range(-8, 9)]
    assert values == sorted(values)
    assert 0.0 < values[0] < values[-1] < 1.0
    assert min(WEIGHTS[:-1]) > 0.0


def test_news_and_routine_lie_on_both_sides() -> None:
    """What a new burst of one subject shows, and what a list of notices of one publisher shows."""
    news = Evidence(2.6, 0.9, 0.85, -0.1, -0.5, 0.0, 0.0)
    assert probability(news) > 0.85
    usual = news._replace(excess=1.4, novelty=-1.6, known_words=0.6)
    notices = Evidence(2.6, 1.0, 0.6, 0.0, -2.6, -0.3, -0.1)
    assert max(probability(usual), probability(notices)) < MIN_PROBABILITY


def items(*titles: str, **fields: Any) -> list[WindowItem]:
    """Items of one source with the terms of these headlines, a minute apart."""
    return [
        window_item(
            i,
            lang="en",
            title=title,
            at_ms=(i + 1) * MINUTE_MS,
            terms=dict.fromkeys(tokenize(title, "en"), 255),
            **fields,
        )
        for i, title in enumerate(titles)
    ]


def evidence_of(titles: list[str], others: list[str] | None = None, sources: int = 1) -> Evidence:
    members = items(*titles)
    for i, member in enumerate(members):
        member.source = f"outlet{i % sources}.example"
    return measure(members, deque([*items(*(others or [])), *members]), None)


def test_habits_count_for_one_publisher_and_not_for_many() -> None:
    """The same headlines of ten outlets are news."""
    one, many = evidence_of(SALES), evidence_of(SALES, sources=10)

    assert one.no_frame < -2.0 and one.name < 0.0
    assert many == one._replace(name=0.0, no_frame=0.0, sentences=0.0)
    assert probability(one) < probability(evidence_of(NEWS)) < probability(evidence_of(NEWS, sources=8))


@pytest.mark.parametrize(
    ("titles", "low", "high"),
    [
        (SALES, 6.0, 8.0),
        ([f"{town} Fund: Net Asset Value" for town in TOWNS], 3.0, 4.0),
        ([f"{town} Plc - Portfolio Update" for town in TOWNS], 2.5, 3.5),
        (NEWS, 0.0, 1.0),
        ([f"Fire in {town}" for town in TOWNS], 1.0, 1.0),
        ([f"{a} Ada Nimmo {b}" for a, b in pairwise(TOWNS)], 2.0, 2.0),
        (["2031", "12", ""], 0.0, 0.0),
    ],
)
def test_a_frame_is_the_same_words_in_the_same_order(titles: list[str], low: float, high: float) -> None:
    assert low <= frame_words(titles) <= high


@pytest.mark.parametrize(
    ("titles", "share"),
    [
        (NEWS, 0.875),
        ([f"A rise in sales of {town} in second store" for town in TOWNS], 0.1),
        (["Orbex Names New Chief Of Sales"] * 4, 1.0),  # In Title Case nothing shows what is a name
        (["渡轮星期一恢复通航"] * 4, 1.0),
    ],
)
def test_capital_letters_inside_sentences_show_names(titles: list[str], share: float) -> None:
    members = items(*titles)
    assert named_share(members, count_terms(members)) == share


RATES = rates_of(
    **dict.fromkeys(("profit", "rain", "river", "school", "road"), 0.05),
    **{f"other{i}": 0.0005 for i in range(20_000)},
)
FLOOD = [f"thornby flood {word}" for word in ("rain", "river", "school", "road") * 5]
RESULTS = [f"profit quarter name{i} place{i}" for i in range(20)]
MIXED = [f"profit quarter name{i} {word}" for i, word in enumerate(("rain", "river", "school", "road") * 5)]


@pytest.mark.parametrize(("headlines", "expected"), [(FLOOD, 1.0), (RESULTS, 0.0), (MIXED, 0.5)])
def test_known_share_is_that_of_the_words_outside_the_core(headlines: list[str], expected: float) -> None:
    """Only of headlines: known words in the openings of the texts do not make news of results."""
    opening = dict.fromkeys(("rain", "river", "school", "road"), 128)
    members = [
        window_item(i, lang="en", terms={**opening, **dict.fromkeys(words.split(), 255)})
        for i, words in enumerate(headlines)
    ]
    counts = count_terms(members)

    assert known_share(members, counts, core_terms(members, counts), RATES) == expected
    assert known_share(members, counts, core_terms(members, counts), None) == 1.0


@pytest.mark.parametrize(
    ("title", "shares"),
    [
        ("Fire in Thornby is out", (0.4, 0.6)),
        ("Northwater Announces 3rd Quarter Results", (1.0, 0.0)),
        ("渡轮星期一 恢复 通航", (0.0, 0.0)),
        ("Orbex Results", (1.0, 0.0)),
        ("", (0.0, 0.0)),
    ],
)
def test_a_style_is_that_of_the_words(title: str, shares: tuple[float, float]) -> None:
    assert case_shares(title) == shares


def test_title_case_counts_beyond_that_of_the_stream() -> None:
    """Press releases among sentences; an outlet that writes all its headlines so says nothing."""
    notices = [f"{town} Retailer Opens Stores In {TOWNS[-i]}" for i, town in enumerate(TOWNS)]
    among_sentences, among_such = evidence_of(notices, NEWS * 3), evidence_of(notices, notices * 3)

    assert among_sentences.sentences < -0.6 < among_such.sentences == 0.0


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Fire Destroys Factory in Thornby", []),  # In Title Case
        ("Fire destroys a Factory of cars", ["Factory"]),
        ("Factory fire is out", []),  # the first word
        ("Thornby stocks - Factory orders to watch", []),  # the first word of a part
        ("Thornby sales rise; factory to close", ["factory"]),  # a small letter is not a name anywhere
        ("Half-built factory burns in Thornby", ["factory"]),  # a hyphen does not begin a part
        ("", []),  # an article without a headline
    ],
)
def test_occurrences_are_inside_a_part_of_a_headline(title: str, expected: list[str]) -> None:
    member = window_item(0, title, lang="en", terms={"factori": 100})
    assert list(occurrences_inside("factori", [member])) == expected


def test_round_times_are_multiples_of_15_minutes() -> None:
    members = [window_item(i, "fire", at_ms=i * MINUTE_MS) for i in range(30)]
    assert round_time_share(members) == pytest.approx(2 / 30)


@pytest.mark.parametrize(("source", "fired"), [("one.example", 0), ("outlet{}.example", 1)])
def test_a_template_of_one_publisher_does_not_fire(source: str, fired: int) -> None:
    """Twenty outlets with the same words are news."""
    stream = DetectorStream()
    for i, title in enumerate(SALES * 2):
        stream.send(1 + i * 1.1, "retailer sales", source=source.format(i), title=title)
    assert len(stream.fired) == fired
