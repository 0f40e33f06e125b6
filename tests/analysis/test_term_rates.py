"""Term rates: from document frequencies of models and from word frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aggregator.analysis.models import load_term_rates
from aggregator.analysis.term_rates import RateTable, TermRates


def table() -> RateTable:
    """Three terms of 1,000 documents: in half, in 100 and in one of them."""
    documents = np.array([100, 1])
    return RateTable.from_idf(["storm", "ferry"], (1 - np.log(documents / 1000)).astype("<f4"), {"say": 0.5})


def test_rates_are_proportional_to_occurrences_per_document() -> None:
    """A share s of the documents holds -ln(1 - s) occurrences; the rates of all terms add up to 1."""
    rates = table()

    assert rates.rate("say") / rates.rate("storm") == pytest.approx(math.log(0.5) / math.log(0.9), rel=1e-4)
    assert sum(map(rates.rate, ("say", "storm", "ferry"))) == pytest.approx(1.0)
    assert rates.rate("unlisted") == rates.rate("ferry") / 2


def test_a_language_without_frequencies_has_no_rates() -> None:
    """Not the rates of another language."""
    rates = TermRates({"en": table()})

    assert rates.rate("en", "storm") > 0
    assert rates.rate("ja", "storm") == 0.0


def test_frequent_words_have_higher_rates_in_the_bundled_models() -> None:
    """In languages with a fitted model and in those with word frequencies."""
    rates = load_term_rates()

    for lang, frequent, rare in (
        ("en", "govern", "earthquak"),
        ("de", "regier", "erdbeb"),
        ("zh", "\u53d1\u5c55", "\u5730\u9707"),  # development, earthquake
    ):
        assert rates.rate(lang, frequent) > 3 * rates.rate(lang, rare) > 0
