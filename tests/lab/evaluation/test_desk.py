"""Streams at one desk: how they are mixed, and what is measured."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aggregator.errors import InvalidInput
from aggregator.events.detection.model import BurstRule
from aggregator.time_units import HOUR_MS
from aggregator_lab.evaluation.desk import Alert, Desk, Peak, run
from aggregator_lab.evaluation.desk_streams import Stream, align, mix, more_headlines, read_stream
from aggregator_lab.evaluation.event_metrics import KnownEvent
from aggregator_lab.evaluation.events import read_known_events
from tests.cli.helpers import run as run_command
from tests.support.factories import EVENT_MS, event

MONDAY = datetime(2031, 3, 3, tzinfo=UTC)
ASPECTS = ("mayor", "rescue", "inquiry", "traffic", "hospital", "witness", "insurance", "ferry", "repair")
ASPEKTE = ("Polizei", "Bürgermeister", "Klinik", "Zeugen", "Feuerwehr", "Fähre", "Händler", "Schule", "Bahn")


def titles(words: str, at: datetime, count: int = 20, lang: str = "en") -> list[dict[str, Any]]:
    """One row per minute whose titles begin with ``words``, each of another outlet; languages share none."""
    aspects, repeats = (ASPEKTE, 2) if lang == "de" else (ASPECTS, 3)
    return [
        {
            "id": f"{words[:3]}{at:%H}-{number}",
            "title": f"{words} {aspects[number % 9]} {chr(97 + number) * repeats}",
            "published_at": (at + timedelta(minutes=number)).isoformat(),
            "lang": lang,
            "source": f"outlet{number}.example",
            "cluster": words,
        }
        for number in range(count)
    ]


def write(path: Path, *rows: list[dict[str, Any]]) -> Path:
    """A file of rows."""
    path.write_text("".join(json.dumps(row) + "\n" for part in rows for row in part))
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """An English stream with an event at 10:00, a German one, nine days and an hour later, at 11:00."""
    later = MONDAY + timedelta(days=9, hours=1)
    return [
        write(
            tmp_path / "en.jsonl",
            titles("Quiet day", MONDAY, 1),
            titles("Harbour bridge collapse", MONDAY + timedelta(hours=10)),
            titles("Quiet evening", MONDAY + timedelta(hours=20), 1),
        ),
        write(
            tmp_path / "de.jsonl",
            titles("Ruhige Nacht", later, 1, "de"),
            titles("Explosion im Stahlwerk", later + timedelta(hours=10), lang="de"),
            titles("Ruhiger Abend", later + timedelta(hours=20), 1, "de"),
        ),
    ]


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """One event of each stream."""
    bridge = {"name": "Bridge", "date": "2031-03-03", "regex": "bridge", "due": "2031-03-03T10:20:00Z"}
    steel = {"name": "Werk", "date": "2031-03-12", "regex": "stahl", "due": "2031-03-12T11:10:00Z"}
    events = [bridge | {"file": "en.jsonl"}, steel | {"file": "de.jsonl"}]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(events))
    return path


def test_streams_are_measured_each(files: list[Path], known: Path) -> None:
    """Both events are found, at their own time, with their places."""
    streams = align([read_stream(path) for path in files], [0, (9 * 24 + 1) * HOUR_MS])

    desk = run(streams, BurstRule(), read_known_events(known), {("de.jsonl", "Exp11-3"): "news"})

    english, german = desk.as_json()["streams"]
    assert [english["lang"], german["lang"]] == ["en", "de"]
    assert [english["found"], german["found"], english["median_delay_min"]] == [1, 1, -5.0]
    assert german["median_delay_min"] == 5.0 and german["marks"] == {"news": 1}
    assert (german["stories_found"], german["purity"], german["alerts_per_story"]) == (1, 1.0, 1.0)
    places = {entry["name"]: (entry["place"], entry["open"]) for entry in desk.as_json()["known"]}
    assert {place for place, _ in places.values()} == {1, 2} and {n for _, n in places.values()} == {2}
    alerts = [desk.alert_json(alert) for alert in desk.alerts]
    assert [alert["at"] for alert in alerts] == ["2031-03-03T10:15:00Z", "2031-03-12T11:15:00Z"]
    assert [alert["file"] for alert in alerts] == ["en.jsonl", "de.jsonl"]
    assert len(alerts[0]["headlines"]) == 3 and alerts[0]["id"] == "Har10-0"


def test_a_split_story_and_a_missed_event_are_counted(tmp_path: Path, known: Path) -> None:
    """Two alerts about one known event: one extra; an event without an alert has no place."""
    path = write(
        tmp_path / "en.jsonl",
        titles("Harbour bridge collapse", MONDAY + timedelta(hours=10)),
        titles("Bridge engineers resign", MONDAY + timedelta(hours=17)),
    )
    known.write_text(known.read_text().replace("de.jsonl", "en.jsonl").replace("-12", "-03"))

    result = run([read_stream(path)], BurstRule(), read_known_events(known)).as_json()

    assert (result["streams"][0]["found"], result["streams"][0]["extra"]) == (1, 1)
    assert [(k["alerts"], k["place"]) for k in result["known"]] == [(2, 1), (0, None)]


def test_other_streams_move_by_whole_weeks_into_the_first(files: list[Path]) -> None:
    """Nine days and an hour later: one week earlier, so most of it lies outside of the first."""
    streams = align([read_stream(path) for path in files])

    assert [stream.shift_ms for stream in streams] == [0, -7 * 24 * HOUR_MS]
    assert all(row["id"].startswith("0:") for row in mix(streams))
    with pytest.raises(InvalidInput, match="2 files need 2 moments, not 1"):
        align(streams, [0])


def test_more_headlines_come_evenly(files: list[Path]) -> None:
    """Drawn from all of a file; one with fewer headlines is refused."""
    stream = read_stream(files[0])

    more = more_headlines(stream, 10, 0, 2 * HOUR_MS)

    assert more.times_ms == tuple(n * HOUR_MS // 10 for n in range(20))
    assert len({row["id"] for row in more.rows}) == 20
    with pytest.raises(InvalidInput, match=r"has 22 headlines, and 30 are to be added"):
        more_headlines(stream, 10, 0, 3 * HOUR_MS)


def test_the_command_keeps_analyses_and_writes_alerts(
    files: list[Path], known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run reads the kept analyses and prints the same."""
    arguments = (
        "evaluate",
        "desk",
        *map(str, files),
        "--events",
        str(known),
        "--cache",
        str(tmp_path / "kept"),
    )
    aligned = ("--align", "2031-03-03T10:00:00Z,2031-03-12T11:00:00Z")
    outputs = []
    for _ in range(2):
        assert run_command(*arguments, *aligned, "--json", "--alerts", str(tmp_path / "alerts.json")) == 0
        outputs.append(capsys.readouterr().out)

    assert outputs[0] == outputs[1] and len(list((tmp_path / "kept").iterdir())) == 2
    assert len(json.loads((tmp_path / "alerts.json").read_text())) == 2
    marks = write(tmp_path / "marks.jsonl", [{"file": "en.jsonl", "id": "Har10-5", "mark": "news"}])
    assert run_command(*arguments, "--marks", str(marks)) == 0
    assert "news 1" in capsys.readouterr().out
    more = ("--more", str(files[0]), "3", "--more-hours", "1", "--page", str(tmp_path / "page.html"))
    assert run_command(*arguments, *aligned, *more) == 0
    assert "3 an hour of en.jsonl" in capsys.readouterr().out
    assert (tmp_path / "page.html").read_text().count("<tr>") == 2
    assert run_command(*arguments, "--align", "noon,noon") == 2


@pytest.mark.parametrize("name", ["subjects_headlines_en", "more_subjects_headlines_en"])
def test_committed_lists_of_subjects_are_known_events(name: str) -> None:
    """Each is due after its day begins."""
    known = read_known_events(Path(__file__).parents[3] / f"packages/lab/lists/{name}.json")

    assert len(known) >= 20 and all(k.t16_ms and k.t16_ms > k.day_ms for k in known)


def test_developments_are_counted_at_later_peaks() -> None:
    """Apart from alerts: one at a new fact does not count as another; an alert meets new facts only."""
    hours = [EVENT_MS + n * HOUR_MS for n in range(49)]
    stream = Stream("en.jsonl", tuple({"analyzed": ("en", ())} for _ in hours), tuple(hours))
    known = KnownEvent("Bridge", EVENT_MS, re.compile("bridge"), "en.jsonl", EVENT_MS)
    told = event("e1", "Bridge", ["a"], developments=tuple((hours[n], ("toll",)) for n in (20, 30, 40)))
    later = event("e2", "Bridge", ["b"], detected_at_ms=hours[45])
    alerts = [Alert(each, ({"id": "0:a"},), 0, (0,), "", is_impure=False, mark="") for each in (told, later)]
    marks = {21: "new fact", 31: "same", 38: "new fact", 46: "new fact", 47: "same", 10: "new fact"}
    peaks = [Peak("en.jsonl", "Bridge", hours[hour], mark) for hour, mark in marks.items()]
    peaks += [Peak("en.jsonl", "Ferry", hours[21], "new fact"), Peak("de.jsonl", "Bridge", hours[21], "same")]

    (found,) = Desk([stream], [known], alerts, [()], peaks).as_json()["streams"]

    assert (found["alerts"], found["developments"], found["other_a_day"]) == (2, 3, 1.0)
    assert found["peaks_met"] == "2 of 5 new fact, 1 of 2 same"
