"""``aggregator ingest`` and ``aggregator check``: answer lines, exit codes, batches."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import time
from pathlib import Path

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.cli.ingest import BATCH_BYTES, BATCH_LINES, iter_batches
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection.model import BurstRule, EventChange
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.ingest.load_control import BEACON_KEY
from aggregator.jsonl import Line
from aggregator.time_units import HOUR_MS, format_rfc3339
from tests.cli.helpers import EDITED, ORIGINAL, OTHER, ROWS, article_body, run, write_jsonl
from tests.support.factories import story
from tests.support.stores import direct_client, open_patient_store


def test_each_line_is_answered_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Invalid lines are answered with their error, the others are processed; the exit code is 1."""
    articles = write_jsonl(
        tmp_path / "articles.jsonl",
        article_body(ORIGINAL),
        "{not json",
        "",
        article_body(EDITED),
        {**article_body(OTHER), "txet": "?"},
        {"id": "empty"},
        article_body(OTHER),
    )

    assert run("ingest", "--store", "memory", articles) == 1

    captured = capsys.readouterr()
    answers = [json.loads(line) for line in captured.out.splitlines()]
    assert [a.get("verdict") for a in answers] == ["new", None, "duplicate", None, None, "new"]
    assert answers[2]["duplicate_of"]["canonical_id"] == ORIGINAL["id"]
    assert [(a["line"], a["error"]["field"]) for a in answers if "error" in a] == [
        (2, "body"),
        (5, "txet"),
        (6, "text"),
    ]
    assert answers[1]["error"]["instance"] == f"{articles}:2"
    assert "6 lines: 2 new, 0 related, 1 duplicate, 3 bad" in captured.err
    assert f"The first bad line: {answers[1]['error']['detail']}\n" in captured.err


def test_duplicates_with_news_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A brief, the whole article, and a copy of the brief: the second is a duplicate that is kept."""
    brief = " ".join(story(1).split()[:120])
    texts = [brief, story(1), f"{brief} More soon."]
    rows = [{"id": str(n), "source": f"{n}.example", "text": text} for n, text in enumerate(texts)]
    articles = write_jsonl(tmp_path / "articles.jsonl", *rows)

    assert run("ingest", "--store", "memory", articles) == 0

    captured = capsys.readouterr()
    assert [json.loads(line)["keep"] for line in captured.out.splitlines()] == [True, True, False]
    assert "3 lines: 1 new, 0 related, 2 duplicate, 0 bad (1 duplicates with news); " in captured.err


def test_an_import_is_throttled_while_a_service_gets_single_articles(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service sets a beacon in the store; the import pauses, reports it, and gives the same answers."""
    articles = write_jsonl(tmp_path / "articles.jsonl", *(article_body(row) for row in ROWS.values()))
    with direct_client(valkey_url) as client:
        client.set(BEACON_KEY, b"now", px=60_000)

    assert run("ingest", "--store", valkey_url, articles) == 0

    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == len(ROWS)
    assert "0 bad" in captured.err and " throttled for interactive requests" in captured.err


def test_labels_of_evaluation_files_are_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The columns cluster and original are dropped; any other unknown field is an error."""
    labeled = {**article_body(OTHER), "cluster": "bees", "original": True, "published_at": None}
    articles = write_jsonl(tmp_path / "a.jsonl", labeled)

    assert run("ingest", "--store", "memory", articles) == 0

    assert json.loads(capsys.readouterr().out)["verdict"] == "new"


def test_a_row_is_sent_without_a_date_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dates of feeds and parsers are read, the others counted; none costs the row."""
    dates = ["Tue, 3 Feb 2026 13:50:00 +08:00", 1770097800000, "2026-02-03 14:50", "3/2/2026", "", None]
    rows = [{"title": f"{OTHER['title']} {n}", "published_at": date} for n, date in enumerate(dates)]
    articles = write_jsonl(tmp_path / "a.jsonl", *rows, '{"title": "Ferry \\ud83d", "published_at": "soon"}')

    assert run("ingest", "--store", "memory", articles) == 0
    assert (
        "3 rows had a date that could not be read, e.g. '2026-02-03 14:50'; they were sent without one"
        in (capsys.readouterr().err)
    )
    assert run("check", "--store", "memory", "--timezone", "Asia/Seoul", articles) == 0
    assert "2 rows had a date that could not be read" in capsys.readouterr().err
    assert run("ingest", "--store", "memory", "--timezone", "Seoul", articles) == 2


def test_files_of_other_formats_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is stored, in one sentence for each that names the right command."""
    good = write_jsonl(tmp_path / "good.jsonl", article_body(ORIGINAL))
    feed, table = tmp_path / "feed.xml", tmp_path / "table.csv"
    feed.write_text('<?xml version="1.0"?>\n<rss version="2.0"/>')
    table.write_text("id,title,text\n1,A,B\n")

    assert run("ingest", "--store", "memory", good, str(feed), str(table)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"aggregator: {feed}: The file is a feed; post its items by `aggregator follow FEED`. "
        f"{table}: The file is CSV; write JSON lines. "
        "`aggregator dedupe FILE.csv --out DIR` reads files named .csv.\n"
    )


def test_check_stores_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same article is new twice."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(ORIGINAL), article_body(ORIGINAL))

    assert run("check", "--store", "memory", articles) == 0

    assert [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()] == ["new", "new"]


def test_the_policy_option_selects_the_rule(tmp_path: Path) -> None:
    """An edited copy is a duplicate by overlap under verified; hamming compares fingerprints only."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(ORIGINAL), article_body(EDITED))
    verdicts = {}
    for policy in ("verified", "hamming"):
        out = tmp_path / policy
        assert run("ingest", "--store", "memory", "--policy", policy, "--out", str(out), articles) == 0
        verdicts[policy] = json.loads(out.read_text().splitlines()[1])

    assert verdicts["verified"]["duplicate_of"]["overlap"] > 0.75
    match = verdicts["hamming"]["duplicate_of"]
    assert match is None or match["overlap"] is None


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The file name - means standard input."""
    data = json.dumps(article_body(OTHER)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))

    assert run("ingest", "--store", "memory", "-") == 0

    assert json.loads(capsys.readouterr().out)["id"] == OTHER["id"]


def test_batches_are_limited_in_lines_and_bytes() -> None:
    """A line longer than the limit is a batch of one; no line is lost and the order is kept."""
    sizes = [10] * (BATCH_LINES + 3) + [BATCH_BYTES + 5, 7, BATCH_BYTES // 2, BATCH_BYTES // 2 + 1]
    lines = [Line("f", number, b"x" * size) for number, size in enumerate(sizes)]

    batches = list(iter_batches(lines))

    assert [line for batch in batches for line in batch] == lines
    assert all(len(batch) <= BATCH_LINES for batch in batches)
    assert all(len(batch) == 1 or sum(len(line.data) for line in batch) <= BATCH_BYTES for batch in batches)
    assert list(iter_batches([])) == []


@pytest.mark.integration
def test_an_unreachable_server_is_exit_code_3(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says how to start one."""
    articles = write_jsonl(tmp_path / "articles.jsonl", article_body(OTHER))

    assert run("ingest", "--server", f"http://127.0.0.1:{free_port}", articles) == 3

    assert "(Connection refused); start it with `aggregator serve`, or name" in capsys.readouterr().err


def test_the_policy_option_names_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It applies to lines that name none; without it the source selects the profile."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(
        f'[profiles.paper]\npolicy = "hamming"\nduplicate_bits = 0\n'
        f'[[rules]]\nsources = ["{EDITED["source"]}"]\nprofile = "paper"\n'
    )
    articles = write_jsonl(tmp_path / "a.jsonl", article_body(ORIGINAL), article_body(EDITED))
    own = write_jsonl(
        tmp_path / "b.jsonl", article_body(ORIGINAL), {**article_body(EDITED), "policy": "default"}
    )
    options = ("--store", "memory", "--policy-profiles-file", str(profiles))

    def second(*arguments: str) -> str:
        assert run("ingest", *options, *arguments) == 0
        return str(json.loads(capsys.readouterr().out.splitlines()[1])["verdict"])

    assert second(articles) != "duplicate"
    assert second("--policy", "paper", articles) != "duplicate"
    assert second("--policy", "default", articles) == "duplicate"
    assert second("--policy", "paper", own) == "duplicate"
    assert second(own) == "duplicate"


def test_a_backfill_teaches_the_baseline_and_fires_nothing(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dated headlines of two days, 20 an hour; repeating it changes nothing."""
    now_ms = int(time.time() * 1000)
    hour_ms = now_ms // HOUR_MS * HOUR_MS + 1
    rows = [
        {
            "id": f"{age}-{n}",
            "title": f"Ferry {age} late in harbour {age}",
            "published_at": format_rfc3339(hour_ms - age * HOUR_MS),
        }
        for age in range(48, 0, -1)
        for n in range(20)
    ]
    file = write_jsonl(tmp_path / "a.jsonl", *rows, "{bad")

    assert run("ingest", "--backfill", "--store", valkey_url, "--out", os.devnull, file) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "1 bad" in captured.err

    async def detect() -> tuple[list[EventChange], str]:
        store = open_patient_store(valkey_url)
        index = Index(store, Analyzer(load_models()).spaces)
        detector = DetectorRunner(EventRepository(store), BurstRule())
        changes = await detector.poll(index.stream, now_ms)
        changes += await detector.poll(index.stream, now_ms + HOUR_MS)  # totals are refreshed each minute
        await store.close()
        return changes, str(detector.learning)

    learned = asyncio.run(detect())
    assert learned in (([], "learning: 1 of 7 days"), ([], "learning: 2 of 7 days"))
    assert run("ingest", "--backfill", "--store", valkey_url, "--out", os.devnull, file) == 1
    assert asyncio.run(detect()) == learned
