"""Settings and item fields of the Scrapy pipeline, without a crawl."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from scrapy.exceptions import DropItem, NotConfigured
from scrapy.utils.test import get_crawler

from aggregator.clients.scrapy_pipeline import NewsDedupPipeline, _to_rfc3339
from tests.support.factories import story
from tests.support.server_fixture import serving


def pipeline(**settings: object) -> NewsDedupPipeline:
    """A pipeline with these settings."""
    return NewsDedupPipeline.from_crawler(
        get_crawler(settings_dict={f"NEWSDEDUP_{name}": value for name, value in settings.items()})
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"FIELDS": {"body": "maintext"}},
            "NEWSDEDUP_FIELDS: unknown article field 'body'; allowed: id, url, title, text",
        ),
        ({"DEADLINE": "soon"}, "NEWSDEDUP_DEADLINE: expected a number of seconds, found 'soon'."),
        ({"ON_FAILURE": "closed", "RETRY_SECONDS": "1m"}, "NEWSDEDUP_RETRY_SECONDS: expected a number"),
        ({"ON_FAILURE": "shut"}, "NEWSDEDUP_ON_FAILURE: expected one of open, closed, found 'shut'."),
        ({"DUPLICATES": "keep"}, "NEWSDEDUP_DUPLICATES: expected one of drop, tag, found 'keep'."),
        ({"URL": "localhost:8080"}, "NEWSDEDUP_URL: 'localhost:8080' is not an http:// or https:// URL."),
    ],
)
def test_an_invalid_setting_stops_the_start(settings: dict[str, object], message: str) -> None:
    """Otherwise thousands of items would pass unchecked."""
    with pytest.raises(NotConfigured) as raised:
        pipeline(**settings)

    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 11, 20, 8), "2026-11-20T08:00:00+00:00"),
        (datetime(2026, 11, 20, 8, tzinfo=timezone(timedelta(hours=1))), "2026-11-20T08:00:00+01:00"),
        (date(2026, 11, 20), "2026-11-20T00:00:00+00:00"),
        ("2026-11-20", "2026-11-20T00:00:00+00:00"),
        (" 2026-11-20 08:00:00 ", "2026-11-20T08:00:00+00:00"),
        ("2026-11-20T08:00:00Z", "2026-11-20T08:00:00+00:00"),
        ("Fri, 20 Nov 2026 08:00:00 +0100", "2026-11-20T08:00:00+01:00"),
        (int(datetime(2026, 11, 20, tzinfo=UTC).timestamp()), "2026-11-20T00:00:00+00:00"),
        ("last Friday", None),
        ("0001-01-01", None),
        (1e30, None),
    ],
)
def test_dates_are_parsed_in_several_forms(value: object, expected: str | None) -> None:
    """Feeds, metadata and databases use different forms; an invalid date is None."""
    assert _to_rfc3339(value) == expected


@pytest.mark.services
async def test_an_item_with_an_unreadable_date_is_checked(caplog: pytest.LogCaptureFixture) -> None:
    """The date is omitted and counted; an item without text is logged once."""
    async with serving(store_url="memory") as url:
        dedup = pipeline(URL=url, FIELDS={"text": "maintext"}, ON_FAILURE="closed")
        first = {"id": "a", "maintext": story(1), "published_at": "yesterday"}
        assert (await dedup.process_item(first))["dedup"]["verdict"] == "new"
        with pytest.raises(DropItem, match="duplicate of a"):
            await dedup.process_item({**first, "id": "b"})
        for id_ in ("c", "d"):
            await dedup.process_item({"id": id_, "title": f"Ferry {id_}", "text": story(2), "maintext": []})
        await dedup.close_spider()

    assert dedup._stats is not None and dedup._stats.get_value("newsdedup/undated") == 2
    assert [r.getMessage() for r in caplog.records if "checked by its headline" in r.getMessage()] == [
        "an item has neither 'maintext' nor 'html' and is checked by its headline only; "
        "map its fields with NEWSDEDUP_FIELDS"
    ]


@pytest.mark.services
@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_a_wrong_key_loses_no_item(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failing open it passes unchecked; failing closed it is held, as without an answer."""
    held = tmp_path / "held.jsonl"
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", "k" * 32)
    async with serving(store_url="memory") as url:
        dedup = pipeline(URL=url, KEY="wrong", ON_FAILURE=mode, HELD=str(held), DEADLINE=5)
        item = {"id": "a", "text": story(1)}
        if mode == "open":
            assert (await dedup.process_item(item))["dedup"]["verdict"] == "unknown"
        else:
            with pytest.raises(DropItem, match="held in"):
                await dedup.process_item(item)
            assert held.read_text().startswith('{"id": "a"')
        await dedup.close_spider()
