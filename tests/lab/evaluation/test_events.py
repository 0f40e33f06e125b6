"""Scores of the detector on known events, with generated windows."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aggregator.errors import InvalidInput
from aggregator.events.detection.model import BurstRule
from aggregator_lab.evaluation.event_metrics import format_table
from aggregator_lab.evaluation.events import evaluate, read_known_events

DAY = datetime(2031, 3, 1, tzinfo=UTC)
ASPECTS = ("mayor", "rescue", "inquiry", "traffic", "hospital", "witness", "insurance", "ferry", "repair")


def titles(words: str, start_h: float, count: int = 20) -> list[dict[str, Any]]:
    """One row per minute whose titles begin with ``words``."""
    return [
        {
            "id": f"{words}{start_h}{i}",
            "title": f"{words} {ASPECTS[i % 9]} {chr(97 + i) * 3}",
            "published_at": (DAY + timedelta(hours=start_h, minutes=i)).isoformat(),
            "lang": "en",
            "source": f"outlet{i}.example",
        }
        for i in range(count)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One window with an event, a routine alert and an alert in the history, for three known events."""
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
    without_t16 = {**known, "name": "Spread", "t16": None}
    missed = {**known, "name": "Other", "regex": "volcano"}
    (tmp_path / "events.json").write_text(json.dumps([known, without_t16, missed]))
    return tmp_path


def test_measures_follow_their_definitions(data: Path) -> None:
    """Detected, delay, alerts and routine alerts of a window with known results."""
    report = evaluate(data, [data / "events.json"], BurstRule())

    assert (report.detected, report.windows_with_t16) == (1, 2)
    assert report.median_delay_min == -5.0
    assert [w.judged_days for w in report.windows] == pytest.approx([71.9 / 24] * 3)
    assert (report.alert_count, report.routine_alerts) == (6, 3)
    bridge = report.windows[0]
    assert [alert.is_routine for alert in bridge.alerts] == [False, True]
    assert bridge.hit is bridge.alerts[0] and bridge.hit.matching_share == 1.0


def test_table_compares_two_rules_and_the_report_is_json(data: Path) -> None:
    """Both burst modes are columns of the table; ``as_json`` has only JSON values."""
    reports = [evaluate(data, [data / "events.json"], BurstRule(), label=m) for m in ("stories", "literal")]

    text = format_table(reports)

    assert "stories" in text and "literal" in text and "1 of 2" in text
    assert "-5 min, 2 alerts" in text and "not asked" in text and "missed" in text
    decoded = json.loads(json.dumps(reports[0].as_json()))
    assert decoded["detected"] == 1 and len(decoded["windows"][0]["alerts"]) == 2
    assert decoded["windows"][0]["alerts"][0]["hit"] is True


def test_a_late_t16_does_not_count_in_the_delay(data: Path) -> None:
    """The first title is a day after the date, because the source lacks that day."""
    path = data / "events.json"
    entry = {**json.loads(path.read_text())[0], "first": "2031-03-02T01:00:00Z"}
    path.write_text(json.dumps([entry]))

    report = evaluate(data, [path], BurstRule())

    assert report.detected == 1 and report.median_delay_min is None


def test_repeated_titles_do_not_make_an_event_due(data: Path) -> None:
    """``t16d`` replaces ``t16``; several lists are scored together."""
    (data / "more.json").write_text(
        json.dumps([{**json.loads((data / "events.json").read_text())[0], "t16d": "2031-03-01T10:25:00Z"}])
    )

    report = evaluate(data, [data / "events.json", data / "more.json"], BurstRule())

    assert [w.delay_min for w in report.windows] == [-5.0, None, None, -10.0]


def test_wrong_files_are_named_in_the_error(data: Path) -> None:
    """A missing list of events, a file in another format, and a missing window."""
    (data / "bad.json").write_text('[{"name": "x"}]')
    with pytest.raises(InvalidInput, match=r"none\.json cannot be read: No such file or directory\."):
        read_known_events(data / "none.json")
    with pytest.raises(InvalidInput, match=r"bad\.json: not a list of known events \(KeyError: "):
        read_known_events(data / "bad.json")
    (data / "w.jsonl.gz").unlink()
    with pytest.raises(InvalidInput, match=r"lacks w\.jsonl\.gz"):
        evaluate(data, [data / "events.json"], BurstRule())


def test_jackknife_leaves_every_window_out_once(data: Path) -> None:
    """Without the window that has the hit nothing is detected; the table shows the range of each measure."""
    report = evaluate(data, [data / "events.json"], BurstRule())

    assert [(part.detected, part.windows_with_t16) for part in report.jackknife] == [(0, 1), (1, 2), (1, 1)]
    line = next(x for x in format_table([report]).splitlines() if x.startswith("stories") and ".." in x)
    assert line.split() == ["stories", "0..1", "-5..-5", "min", "0.67..0.67", "50%..50%"]
