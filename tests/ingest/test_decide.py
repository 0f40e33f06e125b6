"""Verdicts by origin: outlets, times, openings and boilerplate, through the ingest service; metadata."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import (
    NUMBER_RANDOM_BITS,
    Answer,
    Article,
    ArticleRecord,
    arrival_ms_of,
    build_record,
    copy_metadata,
)
from aggregator.ingest.decide import ArticleNumberGenerator, merge_metadata, metadata_of
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from tests.support.factories import START_MS, Core, core, story

LEAD, NEW_LEAD = story(1, 9), story(2, 9)
BACKGROUND = story(3, 40)
ARTICLE = Article("ferry", "", story(1), "", "https://example.org/ferry", "Example", 1_780_000_000_000)
ANALYSIS = replace(
    Analyzer({"xx": HashedModel()}).analyze(replace(ARTICLE, lang="eo", title="Ferry departs")), figures=(17,)
)
MORE_STORIES = "More stories: " + " ".join(f"Older headline {n} about {story(100 + n, 1)}" for n in range(13))


async def post(service: Core, id_: str, text: str, title: str, source: str, hours: float) -> Answer:
    """Post an article that its outlet published this many hours after the start."""
    return await service.post(
        id_, text, title=title, source=source, published_at_ms=START_MS + int(hours * HOUR_MS)
    )


async def test_pages_with_one_list_of_other_stories_are_new() -> None:
    """The list is longer than the story above it; the first two pages are already told apart."""
    service = core(MemoryStore())
    answers = [
        await post(service, f"a{n}", story(10 + n, 6) + "\n" + MORE_STORIES, story(200 + n, 1), "Gadgets", n)
        for n in range(12)
    ]

    assert [answer.outcome.match for answer in answers] == [None] * 12


@pytest.mark.parametrize("hours", [3, 24 * 60])
async def test_a_follow_up_with_the_same_background_is_no_duplicate(hours: float) -> None:
    """Another headline, another lead, and a background section of two thirds of the text."""
    service = core(MemoryStore())
    await post(service, "first", LEAD + " " + BACKGROUND, "Dam breaks above Brackwater", "Gazette", 0)
    text = NEW_LEAD + " " + BACKGROUND

    found = await post(service, "later", text, "Minister visits the valley", "Gazette", hours)
    assert found.outcome.match is None


async def test_an_update_of_a_report_stays_a_duplicate() -> None:
    """Same lead, other figures: a duplicate with updated figures, or another article by the policy."""
    report = "Rescuers count 40 houses under water and 12 missing. " + LEAD + " " + BACKGROUND
    update = report.replace("40 houses", "55 houses").replace("12 missing", "9 missing")
    for policy, verdict in ((Policy(), "duplicate"), (Policy(updates_are_new=True), "related")):
        service = core(MemoryStore(), policy=policy)
        await post(service, "first", report, "Dam breaks above Brackwater", "Gazette", 0)
        found = (await post(service, "update", update, "Brackwater: dam breaks", "Gazette", 2)).outcome
        assert (found.verdict, found.updated_figures) == (verdict, True)


async def test_another_outlet_may_shorten_and_retitle() -> None:
    """Half of an agency report under another headline, a day later."""
    service = core(MemoryStore())
    await post(service, "agency", LEAD + " " + BACKGROUND, "Dam breaks above Brackwater", "Agency", 0)
    cut = LEAD + " " + BACKGROUND[: len(BACKGROUND) // 3]

    found = await post(service, "paper", cut, "Valley under water", "Gazette", 24)
    assert found.outcome.match is not None and found.outcome.match.id == "agency"


async def test_a_weekly_column_is_no_duplicate() -> None:
    """One headline and one closing section, another text each week; the same text again is a duplicate."""
    service = core(MemoryStore())
    weeks = [story(50 + n, 12) + " " + BACKGROUND for n in range(4)]
    for n, text in enumerate(weeks):
        found = await post(service, f"week{n}", text, "The week in the harbour", "Gazette", 168 * n)
        assert found.outcome.match is None
    again = await post(service, "again", weeks[0], "The week in the harbour", "Gazette", 168 * 4)
    assert again.outcome.match is not None and again.outcome.match.id == "week0"


async def test_related_articles_are_those_that_the_caller_was_told_to_keep() -> None:
    """Two outlets print one headline, the second of which is dropped; a third one reports the contrary."""
    service = core(MemoryStore())
    headline = "Governor Tamsin Rook resigns"
    kept = await post(service, "kept", "", headline, "Gazette", 0)
    dropped = await post(service, "dropped", "", headline, "Courier", 1)
    contrary = await post(service, "contrary", "", "Governor Tamsin Rook does not resign", "Times", 2)

    assert (kept.outcome.keep, dropped.outcome.keep) == (True, False)
    assert [related.id for related in contrary.related] == ["kept"]


async def test_a_footer_alone_is_no_duplicate_of_the_pages_above_it() -> None:
    """The pages have their own news above it."""
    service = core(MemoryStore())
    footer = "Subscribe to our channel for news of the harbour every morning and write to the editors"
    for n in range(5):
        await post(service, f"page{n}", story(70 + n, 12) + " " + footer, f"Report {n}", "Channel", n)

    found = await post(service, "footer", footer + " today", "Subscribe", "Channel", 6)
    assert found.outcome.match is None


NOW_MS = 1_780_000_000_000


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=50))
def test_numbers_increase_when_the_clock_steps_back(steps: list[int]) -> None:
    """Later arrivals have larger numbers, whatever the clock says."""
    generator, now_ms, numbers = ArticleNumberGenerator(), NOW_MS, []
    for step in steps:
        now_ms += step
        numbers.append(generator.next(now_ms))

    assert all(a < b for a, b in pairwise(numbers))
    assert numbers[-1] < 1 << 64


def test_the_arrival_time_can_be_decoded() -> None:
    """To the millisecond, or within 2 ms if thousands arrive in one."""
    generator = ArticleNumberGenerator()

    assert arrival_ms_of(generator.next(NOW_MS)) == NOW_MS
    many = [generator.next(NOW_MS) for _ in range(5_000)]
    assert arrival_ms_of(many[-1]) - NOW_MS <= 2


def test_processes_draw_different_numbers() -> None:
    """In one millisecond processes draw from two million numbers."""
    drawn = {ArticleNumberGenerator().next(NOW_MS) for _ in range(50)}

    assert len(drawn) == 50
    assert max(drawn) - min(drawn) < 1 << NUMBER_RANDOM_BITS


def record(**changes: str | int | None) -> ArticleRecord:
    """The record of the article, with other fields."""
    return replace(build_record(ARTICLE, ANALYSIS, 9, 7), **changes)  # type: ignore[arg-type]


def test_a_record_has_the_analysis_under_the_assigned_number() -> None:
    """Its title is the one found in the text if the article was posted without."""
    built = build_record(ARTICLE, ANALYSIS, 9, 7)

    assert (built.number, built.first_version, built.id) == (9, 7, "ferry")
    assert metadata_of(built) == (ANALYSIS.title, ARTICLE.url, ARTICLE.source, ARTICLE.published_at_ms)
    others = ("text", "sketch", "problems")  # those of the date are added
    analysis = {name: value for name, value in asdict(ANALYSIS).items() if name not in others}
    assert {name: getattr(built, name) for name in analysis} == analysis
    assert built.sketch is ANALYSIS.sketch
    assert build_record(replace(ARTICLE, title="Posted"), ANALYSIS).title == "Posted"


@pytest.mark.parametrize(
    ("posted", "expected"),
    [
        (Article("ferry"), ("Old", "old.example", "Old source", 5)),
        (Article("ferry", title="New"), ("New", "old.example", "Old source", 5)),
        (Article("ferry", url="new.example", source="New source"), ("Old", "new.example", "New source", 5)),
        (Article("ferry", published_at_ms=0), ("Old", "old.example", "Old source", 0)),
    ],
)
def test_posted_metadata_replaces_stored_metadata(
    posted: Article, expected: tuple[str, str, str, int | None]
) -> None:
    """Empty fields keep the stored value; a date of 0 is a date."""
    stored = record(title="Old", url="old.example", source="Old source", published_at_ms=5)

    assert metadata_of(merge_metadata(stored, posted)) == expected
    assert merge_metadata(stored, posted).text_hash == stored.text_hash


def test_copied_metadata_includes_empty_fields() -> None:
    """The copy in a shadow space equals the serving record; its number stays its own."""
    source = record(title="", url="", source="", published_at_ms=None)
    target = record(number=11)

    copied = copy_metadata(source, target)

    assert metadata_of(copied) == ("", "", "", None)
    assert copied.number == 11
