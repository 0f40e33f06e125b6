"""Ticker symbols, and pairs about other companies."""

from __future__ import annotations

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation.duplicates import names_other_companies, tickers


def test_symbols_are_read_from_headline_and_text() -> None:
    article = Article(id="a", title="ORCHARD <ORC> TO SPLIT", text="It will join <PIER.B>, <not one> and <>.")

    assert tickers(article) == {"<ORC>", "<PIER.B>"}


@pytest.mark.parametrize(
    ("a", "b", "other"),
    [("<ORC>", "<PIER>", True), ("<ORC>", "<ORC> <PIER>", False), ("<ORC>", "", False), ("", "<ORC>", False)],
)
def test_other_companies_are_named_by_both(a: str, b: str, other: bool) -> None:
    assert names_other_companies(Article(id="a", text=a), Article(id="b", text=b)) is other
