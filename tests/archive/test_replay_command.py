"""``aggregator replay``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aggregator.runtime import demo
from tests.cli.helpers import ROWS, run, write_jsonl

EVENT_FIELDS = {
    "id",
    "title",
    "detected_at",
    "first_seen",
    "last_seen",
    "size",
    "peak",
    "sources",
    "expected",
    "items",
}


def test_the_events_of_a_dated_stream_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dam of the demonstration is one event, detected at the sixteenth item by the timestamps."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    dated = write_jsonl(tmp_path / "dated.jsonl", *(demo.article_body(row, now) for row in ROWS.values()))
    out = tmp_path / "events.jsonl"

    assert run("replay", dated, "--out", str(out)) == 0

    events = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(events) == 1
    assert events[0]["size"] > 15
    assert set(events[0]) >= EVENT_FIELDS
    assert capsys.readouterr().err.endswith(", 1 event\n")


def test_a_stream_without_dates_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was replayed, so no number of events may be printed."""
    undated = write_jsonl(
        tmp_path / "undated.jsonl", {"title": "Dam breaks"}, {"title": "Dam", "published_at": "now"}
    )

    assert run("replay", undated) == run("replay", "--preview", "24h", undated) == 2

    captured = capsys.readouterr()
    assert captured.err.count("No article has a `published_at` that can be read") == 2
    assert "1970" not in captured.out
