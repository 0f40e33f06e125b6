"""Lessons of archives: what each article is used for."""

from __future__ import annotations

import json
from pathlib import Path

from aggregator.events.detection import BurstRule
from aggregator.offline.lesson import MAX_REFUSALS, ArchiveReader, build_lesson
from aggregator.offline.replay import parse_time_ms, rfc3339
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS
from tests.cli.helpers import write_jsonl

NOW_MS = 20_000 * DAY_MS + 12 * HOUR_MS
RULE = BurstRule()


def row(age_ms: int, title: str = "Ferry late") -> dict[str, str]:
    return {"title": title, "published_at": rfc3339(NOW_MS - age_ms), "source": "one.example"}


def test_each_article_is_used_by_its_age(tmp_path: Path) -> None:
    """What cannot be used is counted, or refused with its line and the reason."""
    lines = [
        row(401 * DAY_MS),
        row(30 * DAY_MS),
        row(7 * DAY_MS + 1),
        row(7 * DAY_MS),
        row(4 * HOUR_MS + 1),
        row(4 * HOUR_MS),
        row(-1),
        {"title": "Undated"},
        {"title": "Undated", "published_at": None},
        {**row(DAY_MS), "title": " "},
        {**row(DAY_MS), "published_at": "yesterday"},
        {"title": "A date only", "published_at": "2024-09-28"},
        "{not json",
        "[]",
    ]
    file = write_jsonl(tmp_path / "a.jsonl", *lines)
    reader = ArchiveReader(NOW_MS, RULE)

    used = list(reader.rows([file]))

    assert [r["published_at"] for r in used] == [line["published_at"] for line in lines[1:5]]  # type: ignore[index]
    assert reader.counts == {"old": 1, "series": 2, "usual": 2, "recent": 1, "undated": 2, "refused": 6}
    assert [location for location, _ in reader.refusals] == [f"{file}:{n}" for n in (7, 10, 11, 12, 13, 14)]
    reasons = " ".join(reason for _, reason in reader.refusals)
    for expected in (
        "in the future",
        "title: missing",
        '"yesterday"',
        "time of day",
        "not JSON",
        "found list",
    ):
        assert expected in reasons


def test_files_are_merged_by_time_and_disorder_is_counted(tmp_path: Path) -> None:
    """Two files of one time; an article over one window older than an earlier one teaches no series."""
    first = write_jsonl(tmp_path / "a", *(row(age * HOUR_MS) for age in (90, 61, 80, 30)))
    second = write_jsonl(tmp_path / "b", *(row(age * HOUR_MS) for age in (100, 70, 20)))
    reader = ArchiveReader(NOW_MS, RULE)

    times = [parse_time_ms(r["published_at"]) or 0 for r in reader.rows([first, second])]
    hours = [round((NOW_MS - at_ms) / HOUR_MS) for at_ms in times]

    assert sorted(hours) == [20, 30, 61, 70, 80, 90, 100] and hours[:2] == [100, 90]
    assert reader.disordered == 1


def test_only_the_first_refused_lines_are_kept(tmp_path: Path) -> None:
    """A file of another format must not fill the screen."""
    file = write_jsonl(tmp_path / "a.jsonl", *["nothing"] * (MAX_REFUSALS + 5))
    reader = ArchiveReader(NOW_MS, RULE)

    assert list(reader.rows([file])) == []
    assert (reader.counts["refused"], len(reader.refusals)) == (MAX_REFUSALS + 5, MAX_REFUSALS)


def test_a_lesson_has_the_hours_of_a_week_and_bursts_of_a_year() -> None:
    """A burst 30 days ago, routine since; repeated headlines of a source count once, as in the service."""
    rows = [
        {
            **row(30 * DAY_MS - i * MINUTE_MS, f"Harbour bridge collapse, witness {i}"),
            "source": f"{i}.example",
        }
        for i in range(20)
    ]
    rows += [row(age * HOUR_MS, f"Topic{age} in place{age}") for age in range(100, 5, -1)]
    rows += [row(5 * HOUR_MS, "Ferry late")] * 3

    lesson = build_lesson(rows, RULE, NOW_MS)

    hours = [hour - NOW_MS // HOUR_MS for hour, _, _ in lesson.hours]
    assert (min(hours), max(hours), len(hours)) == (-100, -5, 96)
    assert lesson.hours[-1][1] == 1
    assert [burst.peak >= 16 and "bridg" in json.dumps(burst.terms) for burst in lesson.bursts] == [True]
