"""Scoring the detector against known events, on windows we wrote ourselves."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aggregator.errors import InvalidInput
from aggregator.events.detection import BurstRule
from aggregator.offline.evaluation.event_metrics import format_table
from aggregator.offline.evaluation.events import evaluate, read_known_events
from aggregator.offline.evaluation.plot_window import draw_windows

DAY = datetime(2031, 3, 1, tzinfo=UTC)
ASPECTS = ("mayor", "rescue", "inquiry", "traffic", "hospital", "witness", "insurance", "ferry", "repair")


def titles(words: str, start_h: float, count: int = 20) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{words}{start_h}{i}",
            "title": f"{words} {ASPECTS[i % 9]} {chr(97 + i) * 3}",
            "published_at": (DAY + timedelta(hours=start_h, minutes=i)).isoformat(),
            "lang": "en",
        }
        for i in range(count)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One window: an event, a routine alert, an alert in the history; and a window without a t16."""
    rows = (
        titles("Old volcano eruption", -40)
        + titles("Harbour bridge collapse", 10)
        + titles("Quarterly dividend surprise", 12)
        + titles("Quiet day", 47.9, 1)
    )
    with gzip.open(tmp_path / "w.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    known = {
        "name": "Bridge",
        "date": "2031-03-01",
        "regex": "bridge",
        "window_file": "w.jsonl.gz",
        "first": "2031-03-01T10:00:00Z",
        "t16": "2031-03-01T10:20:00Z",
    }
    unasked = {**known, "name": "Spread", "t16": None}
    missed = {**known, "name": "Other", "regex": "volcano"}
    (tmp_path / "events.json").write_text(json.dumps([known, unasked, missed]))
    return tmp_path


def test_the_figures_are_those_of_the_definitions(data: Path) -> None:
    """Detected, delay, alerts a day and routine on a window whose answers are known."""
    report = evaluate(data, data / "events.json", BurstRule())

    assert (report.detected, report.windows_with_t16) == (1, 2)
    assert report.median_delay_min == -5.0
    assert [w.judged_days for w in report.windows] == pytest.approx([71.9 / 24] * 3)
    assert (report.alert_count, report.routine_alerts) == (6, 3)
    bridge = report.windows[0]
    assert [alert.is_routine for alert in bridge.alerts] == [False, True]
    assert bridge.hit is bridge.alerts[0] and bridge.hit.matching_share == 1.0


def test_rules_stand_side_by_side_in_the_table_and_in_json(data: Path) -> None:
    """The literal rule beside ours, and all of it as plain JSON."""
    rules = [BurstRule(), BurstRule(mode="neighbours")]
    reports = [evaluate(data, data / "events.json", rule) for rule in rules]

    text = format_table(reports)

    assert "stories" in text and "neighbours" in text and "1 of 2" in text
    assert "-5 min, 2 alerts" in text and "not asked" in text and "missed" in text
    again = json.loads(json.dumps(reports[0].as_json()))
    assert again["detected"] == 1 and len(again["windows"][0]["alerts"]) == 2
    assert again["windows"][0]["alerts"][0]["hit"] is True


def test_a_t16_that_is_late_by_a_missing_day_is_left_out_of_the_delay(data: Path) -> None:
    """First title a day after the date: the day itself is missing at the source."""
    path = data / "events.json"
    entry = {**json.loads(path.read_text())[0], "first": "2031-03-02T01:00:00Z"}
    path.write_text(json.dumps([entry]))

    report = evaluate(data, path, BurstRule())

    assert report.detected == 1 and report.median_delay_min is None


def test_wrong_files_are_named(data: Path) -> None:
    """A clear sentence for a file that is no list of events, and for missing windows."""
    (data / "bad.json").write_text('[{"name": "x"}]')
    with pytest.raises(InvalidInput, match=r"none\.json cannot be read: No such file or directory\."):
        read_known_events(data / "none.json")
    with pytest.raises(InvalidInput, match=r"bad\.json: not a list of known events \(KeyError: "):
        read_known_events(data / "bad.json")
    (data / "w.jsonl.gz").unlink()
    with pytest.raises(InvalidInput, match=r"lacks w\.jsonl\.gz"):
        evaluate(data, data / "events.json", BurstRule())


def test_big_events_are_those_of_the_paper(data: Path) -> None:
    """Over 30 titles; an alert that stays smaller is none."""
    path = data / "events.json"
    entries = [
        {**entry, "matches": matches}
        for entry, matches in zip(json.loads(path.read_text()), (31, 30, 30), strict=True)
    ]
    path.write_text(json.dumps(entries))

    report = evaluate(data, path, BurstRule())

    assert (len(report.big_events), report.big_detected, report.big_alerts) == (1, 1, 0)
    assert report.as_json()["big_events"] == 1


def test_every_window_is_left_out_once(data: Path) -> None:
    """Without the window that has the hit nothing is detected, and the table says how far the figures move."""
    report = evaluate(data, data / "events.json", BurstRule())

    assert [(part.detected, part.windows_with_t16) for part in report.jackknife] == [(0, 1), (1, 2), (1, 1)]
    line = next(li for li in format_table([report]).splitlines() if li.startswith("stories") and ".." in li)
    assert line.split() == ["stories", "0..1", "-5..-5", "min", "0.67..0.67", "50%..50%"]


def test_every_window_gets_its_timeline(data: Path, tmp_path: Path) -> None:
    """One picture per known event, named after it and the rule."""
    pytest.importorskip("matplotlib")
    report = evaluate(data, data / "events.json", BurstRule(), label="stories")
    assert len(report.windows[0].matching_times_ms) == 20

    files = draw_windows(report, tmp_path / "pictures")

    assert [file.name for file in files] == ["bridge-stories.png", "spread-stories.png", "other-stories.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
