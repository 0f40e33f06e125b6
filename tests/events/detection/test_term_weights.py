"""Term weights: counts of the window, cached weights, and which terms burst."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.term_frequencies import RateTable, TermRates
from aggregator.events.detection import BurstRule
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.expectation import ColdStart
from aggregator.events.detection.term_weights import TermWeights
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.events.detection.window_items import window_item

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
        weights.add(window_item(1, " ".join(document)))
        weights.bursting_terms(TERMS)
        for term in TERMS:
            weights.weigh(term)
    for document in given_documents[:removed]:
        weights.remove(window_item(1, " ".join(document)))
        weights.bursting_terms(TERMS)

    remaining = given_documents[removed:]
    for document in remaining:
        fresh.add(window_item(1, " ".join(document)))
    for term in TERMS:
        assert weights.window_count(term) == sum(term in document for document in remaining)
        assert weights.weigh(term) == baseline.weight(term, weights.window_count(term), NOW_HOUR)
    assert weights.window_count(ALL_DOCUMENTS) == len(remaining)
    assert weights.bursting_terms(TERMS) == fresh.bursting_terms(TERMS)
    assert weights.bursting_terms(TERMS) == {term for term in TERMS if weights.is_bursting(term)}


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
    assert weights.bursting_terms({"pier": 1, "storm": 1}) == ({"storm"} if bursts else set())


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
    assert weights.bursting_terms({"storm": 1, "pier": 1}) == {"pier"}


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
