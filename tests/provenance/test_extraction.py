"""Extraction health of outlets, counted on their newest articles.

``python -m pytest -s tests/provenance/test_extraction.py -k months`` prints the development data by month.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from datetime import datetime

import pytest

from aggregator.domain import NO_PROBLEM, Problem, StreamItem
from aggregator.provenance.extraction import (
    CHECKED_ARTICLES,
    MIN_CHECKED,
    PROBLEM_NAMES,
    ExtractionHealth,
)
from aggregator.provenance.statistics import SourceStatistics
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from tests.provenance.items import deletion, item, report_on
from tests.support.development_data import DATA
from tests.support.factories import core

FINANCE = DATA / "yahoo_finance_2018_dev.jsonl.gz"
# Its crawler stored lists of other stories, cut, from this month on.
FIRST_FAILING_MONTH = "2020-10"


def with_problems(n: int, source: str, problems: Problem, *, version_of: int | None = None) -> StreamItem:
    """The n-th article."""
    return dataclasses.replace(item(n, source, version_of=version_of), problems=problems)


def health_of(*items: StreamItem) -> dict[str, ExtractionHealth]:
    """The health of each source in these entries."""
    return {source.name: source.extraction for source in report_on(*items).sources}


def test_shares_are_of_the_newest_articles_of_each_source() -> None:
    """Older ones do not hide that an extractor broke; an article may have several problems."""
    entries = [with_problems(n, "Radio", Problem(0)) for n in range(CHECKED_ARTICLES)]
    entries += [with_problems(1000 + n, "Radio", Problem.cut | Problem.markup) for n in range(150)]
    entries += [with_problems(n, "Gazette", Problem.empty if n % 2 else Problem(0)) for n in range(20)]
    found = health_of(*entries)

    assert (found["Radio"].checked, found["Gazette"].checked) == (CHECKED_ARTICLES, 20)
    assert found["Radio"].shares == dict.fromkeys(PROBLEM_NAMES, 0.0) | {"cut": 0.75, "markup": 0.75}
    assert (found["Radio"].failing, found["Gazette"].failing) == (["cut", "markup"], ["empty"])


def test_few_articles_fail_no_source() -> None:
    """Nor do deleted ones, and of an updated one the newest version."""
    few = [with_problems(n, "Radio", Problem.cut) for n in range(MIN_CHECKED - 1)]
    updated = [with_problems(100 + n, "Radio", Problem(0), version_of=n) for n in range(MIN_CHECKED - 1)]
    gone = [with_problems(50, "Radio", Problem.cut), deletion(51, of=50)]

    assert health_of(*few, *gone)["Radio"].failing == []
    assert health_of(*few, with_problems(60, "Radio", Problem.cut))["Radio"].failing == ["cut"]
    assert health_of(*few, *updated)["Radio"].shares["cut"] == 0


def test_dates_fail_no_source() -> None:
    """Their shares are shown all the same."""
    found = health_of(*(with_problems(n, "Radio", Problem.undated) for n in range(20)))["Radio"]

    assert (found.failing, found.shares["undated"]) == ([], 1.0)


def test_without_articles_nothing_fails() -> None:
    """An outlet of an earlier report."""
    assert ExtractionHealth().failing == [] and not any(ExtractionHealth().shares.values())


@pytest.mark.skipif(not FINANCE.exists(), reason="the development data is absent")
async def test_the_months_in_which_a_crawler_failed_are_reported() -> None:
    """Each month of a finance site as a source of its own: those from October 2020 on fail, no other."""
    with gzip.open(FINANCE, "rt", encoding="utf-8") as lines:
        rows = sorted(map(json.loads, lines), key=lambda row: row["published_at"])
    newsroom = core(MemoryStore(), store_texts=False)
    for row in rows:
        at_ms = round(datetime.fromisoformat(row["published_at"]).timestamp() * 1000)
        newsroom.clock.now_ms = at_ms
        fields = {"title": row["title"], "published_at_ms": at_ms, "source": row["published_at"][:7]}
        await newsroom.post(row["id"], row["text"], **fields)
    items, _ = await newsroom.index.stream.read({}, len(rows))
    months = sorted(report_on(*items).sources, key=lambda source: source.name)
    print("\n".join(map(described, months)))

    failing = {month.name for month in months if month.extraction.failing}
    assert failing == {month.name for month in months if month.name >= FIRST_FAILING_MONTH}


def described(month: SourceStatistics) -> str:
    """Name, articles, shares above 0, problems in which it fails."""
    health = month.extraction
    shares = ", ".join(f"{name} {share:.0%}" for name, share in health.shares.items() if share)
    return f"{month.name} {month.articles:>4} {shares} {'FAILS: ' if health.failing else ''}{health.failing}"


def dated(n: int, delay_min: float, problems: Problem = NO_PROBLEM) -> StreamItem:
    """The n-th article of the Radio, this many minutes after its date."""
    late = Problem.late if delay_min > 240 else Problem(0)
    return dataclasses.replace(item(n, "Radio", minute=n - delay_min), problems=problems or late)


@pytest.mark.parametrize(
    ("delays", "believed_h", "late_by_h"),
    [
        ([3.0] * 30, 4.0, None),
        ([300.0 + n for n in range(30)], 10.87, 5.0),
        ([60.0 * n for n in range(30)], 54.0, None),
        ([5.0] * 28 + [30_000.0] * 2, 4.0, None),
        ([300.0] * 9, 4.0, None),
        ([29_000_000.0 + 1440 * n for n in range(30)], 4.0, None),
        ([300.0] * 20 + [29_000_000.0] * 10, 10.0, 5.0),
    ],
)
def test_a_source_is_believed_up_to_twice_its_usual_delay(
    delays: list[float], believed_h: float, late_by_h: float | None
) -> None:
    """Forged dates, and those of 1970, are no record; dates that are late by the same hours are reported."""
    found = health_of(*(dated(n, delay) for n, delay in enumerate(delays)))["Radio"]

    assert found.believed_ms / HOUR_MS == pytest.approx(believed_h, abs=0.1)
    assert found.late_by_hours == late_by_h


def test_what_was_declared_as_past_says_nothing_of_delays() -> None:
    """It is long before its arrival and not late; undated articles neither."""
    declared = [dated(n, 30_000, Problem.cut) for n in range(30)]

    assert (
        health_of(*declared, *(with_problems(90 + n, "Radio", Problem.undated) for n in range(30)))[
            "Radio"
        ].dated
        == 0
    )
