"""What is expected of a cluster: routine, volume, sensitivity, sources; before the stream has a history."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.models import load_term_rates
from aggregator.analysis.term_frequencies import RateTable, TermRates
from aggregator.analysis.text import tokenizer
from aggregator.events.detection.baseline import Baseline, documents_in
from aggregator.events.detection.expectation import ColdStart, TermWeights
from aggregator.events.detection.model import BurstRule
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.events.detection.window_items import cluster_of, window_item
from tests.support.detector_stream import DetectorStream


def test_an_event_needs_min_sources() -> None:
    """A cluster does not fire before items of three sources have joined."""
    stream = DetectorStream(BurstRule(min_sources=3))
    for i in range(20):
        stream.send(i, source="one.example", title=f"Item {i}")
    stream.send(21, source="two.example")

    assert stream.fired == []
    stream.send(22, source="three.example")
    assert [event.size for event in stream.fired] == [22]


def send_daily_routine(stream: DetectorStream, count: int, days: int = 7) -> None:
    """Send the same announcement ``count`` times every morning."""
    for day in range(days):
        for i in range(count):
            stream.send((day - days) * 24 * 60 + i, f"fund value per share company{i}")
        stream.send((day - days) * 24 * 60 + 300, "weather harbour quiet")


def test_a_daily_routine_does_not_fire() -> None:
    """As many items as on every day of the last week."""
    stream = DetectorStream()
    send_daily_routine(stream, 30)
    stream.changes.clear()

    for i in range(30):
        stream.send(i, f"fund value per share company{i}")

    assert stream.fired == []


def test_a_routine_at_several_times_its_volume_fires() -> None:
    """The event reports what was expected."""
    stream = DetectorStream()
    send_daily_routine(stream, 10)
    stream.changes.clear()

    for i in range(80):
        stream.send(i, f"fund value per share company{i}")

    assert len(stream.fired) == 1
    assert stream.fired[0].expected > 4


def test_sensitivity_scales_the_excess_that_fires() -> None:
    """More than 4 times the expected items, or twice as many at sensitivity 2."""
    found = {}
    for sensitivity in (1.0, 2.0):
        stream = DetectorStream(BurstRule(sensitivity=sensitivity))
        for day in range(-7, 1):
            for i in range(24 if day else 150):
                stream.send(day * 24 * 60 + i, terms=(("fund", 1.0), ("value", 1.0)))
        found[sensitivity] = [(event.size, event.expected) for event in stream.fired[1:]]

    # Expected: 24 in five hours of every day, so 19.2 in four. The very first morning fired as well.
    assert found == {1.0: [(88, 19.2)], 2.0: [(46, 19.2)]}


def send_routine_week(
    stream: DetectorStream, families: int, last_hour: int, source: str = "wire.example"
) -> None:
    """Send one item an hour from each of some templates for 7 days, then ``last_hour`` of each in an hour."""
    templates = [f"notice{f} filing{f} holding{f}" for f in range(families)]
    for hour in range(7 * 24):
        for f, template in enumerate(templates):
            stream.send(hour * 60 + f, template, source="wire.example")
    for i in range(last_hour):
        for template in templates:
            stream.send(7 * 24 * 60 + i * 60 / last_hour, template, source=source)


@pytest.mark.integration
@pytest.mark.parametrize("peak", [10, 40])
def test_a_peak_of_the_whole_stream_does_not_fire(peak: int) -> None:
    """10 and 40 times the volume of every template: none exceeds the stream as a whole."""
    stream = DetectorStream()
    send_routine_week(stream, families=6, last_hour=peak)

    assert stream.fired == []


def test_a_new_cluster_fires_within_a_peak_of_routine() -> None:
    """40 times the volume does not hide it."""
    stream = DetectorStream()
    send_routine_week(stream, families=6, last_hour=40)
    stream.send_burst(16, start=7 * 24 * 60 + 61)

    assert [event.title.split()[0] for event in stream.fired] == ["Harbour"]


REACTIONS = (
    "Bridge at Thornby collapses in heavy storm",
    "Thornby bridge collapse: police close the river road",
    "Rescue teams search river after bridge collapse in Thornby",
    "Witness saw Thornby bridge fall into the river",
    "Two dead in Thornby as bridge collapses, police say",
    "Minister promises inquiry after Thornby bridge disaster",
    "Thornby hospital treats twelve after bridge collapse",
    "Engineers warned about Thornby bridge last year",
    "Ships stopped on river after collapse of Thornby bridge",
    "Thornby school opens for families after bridge collapse",
    "President to visit Thornby after bridge disaster",
    "Death toll in Thornby bridge collapse rises to five",
    "Police name victims of Thornby bridge collapse",
    "Thornby bridge: what we know about the collapse",
    "Storm moves east after bridge collapse in Thornby",
    "Company that built Thornby bridge regrets deaths",
    "Rescue work at Thornby bridge ends for the night",
    "Thornby mourns after bridge collapse",
)
SYLLABLES = ("bar", "den", "fol", "gim", "har", "kes", "lor", "mun", "nov", "pel", "ras", "tor", "vil", "zan")


def terms(headline: str) -> tuple[tuple[str, float], ...]:
    """Index terms of a headline, as the service computes them."""
    return tuple((term, 1.0) for term in dict.fromkeys(tokenizer.tokenize(headline, "en")))


def send_all(stream: DetectorStream, headlines: list[str], step: float, sources: int = 1) -> None:
    """Send one headline every ``step`` minutes, from ``sources`` outlets in turn."""
    for i, headline in enumerate(headlines):
        stream.send(
            i * step, title=headline, terms=terms(headline), lang="en", source=f"outlet{i % sources}.example"
        )


def notices(count: int) -> list[str]:
    """Notices of invented companies, all of one template."""
    rng = random.Random(3)
    names = ["".join(rng.choices(SYLLABLES, k=3)).capitalize() for _ in range(2 * count)]
    return [f"{a} {b} PLC - Holding(s) in Company" for a, b in zip(names[::2], names[1::2], strict=True)]


def test_news_fires_in_the_first_minutes_and_a_template_does_not() -> None:
    """Both are new to the stream; only the items of the event say something about one subject."""
    news, routine = DetectorStream(rates=load_term_rates()), DetectorStream(rates=load_term_rates())
    send_all(news, list(REACTIONS), step=2)
    send_all(routine, notices(60), step=2)

    assert [event.size >= 16 for event in news.fired] == [True]
    assert routine.fired == []


def test_an_article_of_the_day_before_does_not_end_the_first_day() -> None:
    """A trial with one article, then the crawler: what is usual is as unknown as without the trial."""
    stream = DetectorStream(rates=load_term_rates())
    stream.send(-30 * 60, "trial")
    for i in range(60):
        stream.send(i, f"topic{i} place{i}")

    assert stream.detector.cold_start.remaining == 1.0


def test_without_rates_the_template_would_fire() -> None:
    """It is the same to a detector that knows nothing of news in general."""
    stream = DetectorStream()
    send_all(stream, notices(60), step=2, sources=3)

    assert stream.fired != []


def test_a_list_that_one_source_publishes_at_once_does_not_fire() -> None:
    """The same headlines over half an hour do, and so do those of many sources."""
    for step, sources, fires in ((0, 1, False), (2, 1, True), (0, len(REACTIONS), True)):
        stream = DetectorStream(rates=load_term_rates())
        send_all(stream, list(REACTIONS), step, sources)
        stream.tick(60)

        assert bool(stream.fired) is fires, (step, sources)


def test_a_frequent_word_is_no_burst_in_the_first_minutes() -> None:
    """In 400 unrelated texts, one in four names the president: as many as in news in general."""
    rng = random.Random(1)
    common = [f"word{i}" for i in range(3000)]
    stream = DetectorStream(rates=rates_of(president=0.3, **dict.fromkeys(common, 0.01)))
    for i in range(400):
        words = [*rng.sample(common, 30), *(["president"] * (i % 4 == 0))]
        stream.send(i / 100, " ".join(words), lang="en", source=f"outlet{i % 50}.example")
    stream.tick(10)

    assert stream.fired == []


def rates_of(**shares: float) -> TermRates:
    """Rates of terms that are held by these shares of the documents."""
    idf = 1 - np.log(np.array(list(shares.values())))
    return TermRates({"en": RateTable.from_idf(list(shares), idf.astype("<f4"), {})})


@pytest.mark.parametrize("words", [5, 50])
def test_expected_documents_follow_the_number_of_terms(words: int) -> None:
    """Texts of 5 and of 50 terms, of a vocabulary of 100 terms, half of whose documents hold each."""
    baseline = Baseline(4 * HOUR_MS)
    names = [f"term{i}" for i in range(100)]
    cold_start = ColdStart(rates_of(**dict.fromkeys(names, 0.5)), baseline)
    cold_start.refresh(0)
    rng = random.Random(5)
    for number in range(1000):
        cold_start.add(window_item(number, " ".join(rng.sample(names, words)), lang="en"))

    assert cold_start.expected("term7") == pytest.approx(1000 * words / 100, rel=0.25)


def test_the_rules_end_with_the_first_day() -> None:
    """What is expected in general decreases with every hour of history, and is 0 a day later."""
    baseline = Baseline(4 * HOUR_MS)
    cold_start = ColdStart(rates_of(storm=0.5, ferry=0.5), baseline)
    cold_start.refresh(0)
    cold_start.add(window_item(1, "storm", lang="en"))
    for word in ("storm", "calm", "calm", "calm"):
        baseline.add(0, [word])
    expected = []
    for hour in (0, 12, 26, 27, 100):
        cold_start.refresh(hour)
        expected.append(cold_start.expected("storm"))

    assert expected == sorted(expected, reverse=True)
    assert expected[0] > expected[1] > expected[2] > 0.0 == expected[3] == expected[4]
    assert cold_start.expected_items(cluster_of(window_item(1, "storm")), 3.0) == 3.0


def test_a_loaded_detector_continues_in_its_first_day() -> None:
    """Rates of the terms in the window are looked up again."""
    rates = load_term_rates()
    whole = DetectorStream(rates=rates)
    send_all(whole, list(REACTIONS[:12]), step=2)
    loaded = type(whole.detector).load(whole.detector.dump(), BurstRule(), rates)
    items = [
        whole.item(30 + i, "", title=title, terms=terms(title), lang="en")
        for i, title in enumerate(REACTIONS)
    ]
    for item in items:
        whole.observe(item)
        loaded.observe(item, item.arrived_ms)
        loaded.drain_changes()

    assert loaded.dump() == whole.detector.dump()
    assert whole.fired != []


@pytest.mark.integration
@pytest.mark.parametrize(("documents", "fires"), [(30, True), (2, False)])
def test_the_rules_apply_while_the_history_is_thin(documents: int, fires: bool) -> None:
    """30 h of two documents an hour say little about 140 in a few minutes: then a list does not fire."""
    stream = DetectorStream(rates=load_term_rates())
    for hour in range(-30, 0):
        for number in range(documents):
            stream.send(hour * 60 + number, f"past{hour} topic{number}")
    for i in range(120):
        stream.send(i / 20, f"subject{i} place{i}")
    for i, title in enumerate(REACTIONS):
        stream.send(7 + i / 1_000, title=title, terms=terms(title), lang="en", source="one.example")
    stream.tick(9)

    assert bool(stream.fired) is fires


NOW_MS = 20_000 * DAY_MS
NOW_HOUR = NOW_MS // HOUR_MS
RULE = BurstRule()
TERMS = dict.fromkeys(["storm", "pier", "ferry"], 1)
documents = st.lists(st.sets(st.sampled_from(list(TERMS))), max_size=20)


def weights_over(baseline: Baseline) -> TermWeights:
    """Weights as of ``NOW_MS``."""
    weights = TermWeights(RULE, baseline, ColdStart(None, baseline))
    weights.refresh(NOW_MS)
    return weights


@given(documents, st.integers(0, 20))
def test_cached_weights_are_those_of_the_current_counts(
    given_documents: list[set[str]], removed: int
) -> None:
    """After documents came and went, every weight equals one that is computed anew, and so do bursts."""
    baseline = Baseline(RULE.window_ms)
    weights, fresh = weights_over(baseline), weights_over(baseline)
    for document in given_documents:
        weights.add(window_item(1, " ".join(document), is_usual=True))
        for term in TERMS:
            weights.weigh(term)
    for document in given_documents[:removed]:
        weights.remove(window_item(1, " ".join(document), is_usual=True))

    remaining = given_documents[removed:]
    for document in remaining:
        fresh.add(window_item(1, " ".join(document), is_usual=True))
    for term in TERMS:
        assert weights.window_count(term) == sum(term in document for document in remaining)
        assert weights.weigh(term) == baseline.weight(term, weights.window_count(term), NOW_HOUR)
    assert weights.window_count(documents_in("")) == len(remaining)
    assert list(map(weights.is_bursting, TERMS)) == list(map(fresh.is_bursting, TERMS))


def test_on_the_first_day_a_burst_depends_on_the_number_of_documents() -> None:
    """News in general expects 1 of 8 documents, and 13 of 108, which 8 do not exceed."""
    rates = TermRates({"en": RateTable.from_idf(["storm", "pier"], np.array([3.3, 1.7], "<f4"), {})})
    baseline = Baseline(RULE.window_ms)
    weights = TermWeights(RULE, baseline, ColdStart(rates, baseline))
    weights.refresh(NOW_MS)
    for _ in range(8):
        weights.add(window_item(1, "storm", lang="en"))
    assert weights.is_bursting("storm")

    for _ in range(100):
        weights.add(window_item(1, "pier", lang="en"))
    assert not weights.is_bursting("storm")
    for _ in range(100):
        weights.remove(window_item(1, "pier", lang="en"))
    assert weights.is_bursting("storm")


@pytest.mark.parametrize(("count", "bursts"), [(7, False), (8, True)])
def test_a_term_bursts_from_over_half_the_rules_number(count: int, bursts: bool) -> None:
    """Of 15 items, eight; nothing is expected of a term without history."""
    weights = weights_over(Baseline(RULE.window_ms))
    for _ in range(count):
        weights.add(window_item(1, "storm"))

    assert weights.min_burst_documents == 8
    assert weights.is_bursting("storm") is bursts
    assert not weights.is_bursting("pier")


def test_a_usual_term_does_not_burst() -> None:
    """Eight documents of a term that has eight at this hour of every day."""
    baseline = Baseline(RULE.window_ms)
    for day in range(7, 0, -1):
        for _ in range(8):
            baseline.add(NOW_HOUR - 24 * day, ["storm"])
    weights = weights_over(baseline)
    for _ in range(8):
        weights.add(window_item(1, "storm pier"))

    assert weights.expected("storm") > 2.0
    assert weights.expected("pier") == 0.0
    assert weights.is_bursting("pier") and not weights.is_bursting("storm")


def test_weights_follow_the_totals_of_the_next_hour() -> None:
    """Cached weights are dropped when the baseline has other totals."""
    baseline = Baseline(RULE.window_ms)
    weights = weights_over(baseline)
    before = weights.weigh("storm")
    for _ in range(5_000):
        baseline.add(NOW_HOUR, ["pier"])

    assert weights.weigh("storm") == before
    weights.refresh(NOW_MS + HOUR_MS)

    assert weights.hour == NOW_HOUR + 1
    assert weights.weigh("storm") == baseline.weight("storm", 0, NOW_HOUR + 1) > before
