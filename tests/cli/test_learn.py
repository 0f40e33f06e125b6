"""``aggregator learn``: with a stopped and a running service."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from pathlib import Path

import pytest

from aggregator.cli import learn
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import BurstRule
from aggregator.events.repository import EventRepository
from aggregator.index.article_stream import ArticleStream
from aggregator.index.segments import Segments
from aggregator.offline.replay import rfc3339
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.cli.helpers import run, write_jsonl
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving_alone
from tests.support.stores import open_patient_store


def archive(path: Path, days: int, *more: object) -> str:
    """A file with an article every hour of the last days up to five hours ago, and further lines."""
    now_ms = int(time.time() * 1000) // HOUR_MS * HOUR_MS + 1
    rows = [
        {"title": f"Ferry {age} late in harbour {age}", "published_at": rfc3339(now_ms - age * HOUR_MS)}
        for age in range(24 * days, 4, -1)
    ]
    return write_jsonl(path, *rows, *more)


def test_a_stopped_service_learns_when_it_starts(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says what each article is used for; nothing is stored of them but their counts."""
    monkeypatch.setattr(learn, "NO_LEADER_TIMEOUT_S", 0.1)
    file = archive(tmp_path / "a.jsonl", 3, "{bad", {"title": "Undated"})

    assert run("learn", "--store", valkey_url, file) == 1

    captured = capsys.readouterr()
    assert "No service is running" in captured.out
    assert f"{file}:69: not JSON" in captured.err
    for line in ("70 articles:", "       68 teach what is usual", "1 have no published_at", "1 are refused"):
        assert line in captured.err

    async def start() -> tuple[str, list[bytes]]:
        store = open_patient_store(valkey_url)
        detector = DetectorRunner(EventRepository(store), BurstRule())
        await detector.poll(ArticleStream(store, Segments(store), []), int(time.time() * 1000))
        keys = await store.scan(b"")
        await store.close()
        return str(detector.learning), keys

    status, keys = asyncio.run(start())
    assert status in ("learning: 2 of 7 days", "learning: 3 of 7 days")
    assert all(key.startswith((b"{events}", b"{format}")) for key in keys), keys


def test_nothing_to_learn_is_an_error(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only articles that teach nothing; a memory store; the literal rule."""
    old = {"title": "Long ago", "published_at": rfc3339(int(time.time() * 1000) - 401 * DAY_MS)}
    file = write_jsonl(tmp_path / "a.jsonl", old)

    assert run("learn", "--store", valkey_url, file) == 2
    captured = capsys.readouterr()
    assert "1 are older than 400 days and teach nothing" in captured.err
    assert "No article of the last 7 days: what is usual is not learned." in captured.err
    assert run("learn", "--store", "memory", file) == 2
    assert run("learn", "--store", valkey_url, "--event-rule", "literal", file) == 2
    assert run("learn", "--store", valkey_url, str(tmp_path / "absent")) == 2
    assert run("learn", "--store", valkey_url) == 2
    error = capsys.readouterr().err
    assert "memory store ends with its service" in error and "literal rule compares with nothing" in error


@pytest.mark.services
def test_a_running_service_learns_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its embedded store is found in --data-dir; a second run changes nothing; the API shows the status."""
    monkeypatch.setattr(learn, "TAKEN_TIMEOUT_S", HANG_LIMIT_S)
    file = archive(tmp_path / "a.jsonl", 2)
    with serving_alone(tmp_path, AGGREGATOR_DETECTOR_INTERVAL_SECONDS="0.2") as (_, url):
        for _ in range(2):
            assert run("learn", "--data-dir", str(tmp_path / "data"), file) == 0
            assert capsys.readouterr().out in ("learning: 1 of 7 days\n", "learning: 2 of 7 days\n")
        assert run("learn", "--data-dir", str(tmp_path / "data"), "--forget") == 0
        assert capsys.readouterr().out == "learning: 0 of 7 days\n"
        assert run("learn", "--data-dir", str(tmp_path / "data"), "--forget", file) == 0
        with urllib.request.urlopen(f"{url}/v1/events", timeout=learn.TAKEN_TIMEOUT_S) as answer:
            body = json.load(answer)

    assert body["events"] == [] and 1.5 < body["learning"]["known_days"] <= 2.1
