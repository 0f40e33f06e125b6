"""Replay of dated rows: event records, determinism, bad rows, preview of sensitivities."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from aggregator.events.detection.model import BurstRule
from aggregator_archive.replay import parse_time_ms, preview, replay, rfc3339

START = datetime(2031, 3, 1, 8, tzinfo=UTC)
ASPECTS = ("mayor", "rescue", "inquiry", "traffic", "hospital", "witness", "insurance", "ferry", "repair")

WORDS = (
    "police", "court", "market", "school", "doctor", "engine", "summer", "winter", "question", "answer",
    "letter", "picture", "morning", "evening", "window", "garden", "mother", "father", "brother", "sister",
    "teacher", "student", "river", "mountain", "island", "village",
)  # fmt: skip


def row(minute: float, title: str, **fields: Any) -> dict[str, Any]:
    """Return a row at a minute after ``START``; ``fields`` override any field."""
    at = (START + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
    return {
        "id": f"{minute}-{title}",
        "title": title,
        "url": f"https://outlet{minute:g}.example/{minute}",
        "published_at": at,
        "lang": "en",
        **fields,
    }


def words(i: int) -> str:
    """Three words that fill a headline."""
    return " ".join(WORDS[(i + step) % len(WORDS)] for step in (0, 7, 12))


def story(count: int = 20, start: float = 0.0) -> list[dict[str, Any]]:
    """Return rows of one story, one a minute."""
    return [row(start + i, f"Harbour bridge collapse: {ASPECTS[i % 9]} {words(i)}") for i in range(count)]


def run(rows: list[dict[str, Any]], rule: BurstRule | None = None) -> list[dict[str, Any]]:
    return list(replay(rows, rule or BurstRule()))


def test_an_event_has_the_fields_of_the_contract() -> None:
    """Size and peak of the last version, detected_at of the first alert."""
    (event,) = run(story())

    contract = "id title detected_at first_seen last_seen size peak sources expected items"
    assert list(event)[:10] == contract.split()
    assert event["detected_at"] == "2031-03-01T08:15:00Z"
    assert (event["first_seen"], event["last_seen"]) == ("2031-03-01T08:00:00Z", "2031-03-01T08:19:00Z")
    assert (event["size"], event["peak"], len(event["items"])) == (20, 20, 20)
    assert event["sources"] == [f"outlet{i}.example" for i in range(20)]
    assert event["items"] == [r["id"] for r in story()]


def test_two_runs_give_the_same_bytes() -> None:
    """Ids, order and numbers depend on the rows alone."""
    rows = sorted(story() + story(20, 300.5), key=lambda r: parse_time_ms(r["published_at"]) or 0)

    assert json.dumps(run(rows)) == json.dumps(run(rows))


def test_events_come_in_order_of_detection() -> None:
    """An early, long event precedes a later one that closes sooner."""
    long = story(20) + [
        row(100 * i, f"Harbour bridge collapse again {'xyz'[i % 3] * 4}") for i in range(1, 7)
    ]
    other = [row(60.5 + i, f"Election result capital {ASPECTS[i % 9]} {words(i)}") for i in range(18)]
    rows = sorted(long + other, key=lambda r: parse_time_ms(r["published_at"]) or 0)

    found = [event["detected_at"] for event in run(rows)]

    assert len(found) == 2 and found == sorted(found)


def test_exact_repeats_of_one_source_count_once() -> None:
    """The same headline 30 times is one item; from 30 sources it is 30 items."""
    one = [row(i, "Harbour bridge collapse", source="one.example") for i in range(30)]
    assert run(one) == []
    many = [row(i, "Harbour bridge collapse", source=f"s{i}.example") for i in range(30)]
    assert [event["size"] for event in run(many)] == [30]


def test_invalid_dates_are_replaced_by_the_position_in_the_stream() -> None:
    """No date, text, a date in the far future or past."""
    rows = story(20)
    rows[3]["published_at"] = None
    rows[5]["published_at"] = "yesterday"
    rows[7]["published_at"] = "2131-01-01T00:00:00Z"
    rows[9]["published_at"] = "1890-01-01T00:00:00Z"

    (event,) = run(rows)

    assert event["size"] == 20
    assert event["detected_at"] in ("2031-03-01T08:15:00Z", "2031-03-01T08:16:00Z")


def test_rows_without_a_title_are_skipped() -> None:
    """Missing, null and blank titles; an invalid URL does no harm."""
    assert run([{"id": "1"}, {"title": None}, {"title": "  "}, {"title": "x", "url": "http://[bad"}]) == []


def test_times_are_parsed_and_formatted_as_rfc_3339() -> None:
    """Output is UTC, with milliseconds only if they are not 0; invalid times give None."""
    at_ms = parse_time_ms("2031-03-01T09:30:00.250+01:00")

    assert at_ms is not None
    assert rfc3339(at_ms) == "2031-03-01T08:30:00.250Z"
    assert parse_time_ms("2031-03-01") == parse_time_ms("2031-03-01T00:00:00Z")
    assert [parse_time_ms(bad) for bad in (None, 5, "", "0001-01-01T00:00:00+23:00")] == [None] * 4


@pytest.mark.integration
def test_a_preview_returns_the_alerts_of_the_last_part() -> None:
    """At half, once and twice the sensitivity; earlier events are not included."""
    rows = story() + [row(1500 + i, f"Election result capital {words(i)}") for i in range(20)]

    found = preview(rows, BurstRule(), 86_400_000)

    assert [p.sensitivity for p in found] == [0.5, 1.0, 2.0]
    assert [len(p.alerts) for p in found] == [1, 1, 1]
    assert found[1].alerts[0].size == 20
    assert found[1].until_ms - found[1].since_ms == 86_400_000


def test_a_higher_sensitivity_alerts_on_a_slightly_larger_routine() -> None:
    """12 items every day and 48 today, 4 times the usual, fire only at a higher sensitivity."""
    rows = [
        row(
            1440 * day + 3 * i,
            f"At least {i} in Thornby wait: {ASPECTS[i % 9]} and {ASPECTS[i // 9]} {chr(97 + day)}",
        )
        for day in range(8)
        for i in range(48 if day == 7 else 12)
    ]

    counts = [len(p.alerts) for p in preview(rows, BurstRule(), 3 * 3_600_000)]

    assert counts == sorted(counts) and counts[0] < counts[2]


def test_the_command_prints_a_preview(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line per sensitivity, the current one marked, and its alerts; an invalid span is rejected."""
    file = tmp_path / "titles.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in story()))

    assert main(["replay", "--preview", "24h", "--sensitivity", "2", "--no-progress", str(file)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "alerts from 2031-02-28T08:19:00Z to 2031-03-01T08:19:00Z"
    assert [line.split()[1:3] for line in lines[1:4]] == [["1", "1"], ["2", "1"], ["4", "1"]]
    assert lines[2].endswith("<- current setting") and "20 items" in lines[4]
    with pytest.raises(SystemExit):
        main(["replay", "--preview", "soon", str(file)])


def test_a_text_adds_the_names_of_its_opening() -> None:
    """Headlines that share nothing are one story when their openings name the same dam and town."""
    topics = [
        "Sirens",
        "Chaos",
        "Tears",
        "Prayers",
        "Silence",
        "Anger",
        "Relief",
        "Questions",
        "Mud",
        "Boats",
    ]
    rows = []
    for i in range(20):
        lead = f"The Lomm dam above Orvale burst on Sunday and flooded the valley, {WORDS[i]} said."
        rows.append(row(i, f"{topics[i % 10]} and {WORDS[i]}", text=lead, source=f"outlet{i}.example"))
    headlines = [{**each, "text": ""} for each in rows]

    assert [event["size"] for event in run(rows)] == [20]
    assert run(headlines) == []
