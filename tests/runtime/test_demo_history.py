"""The history of the demonstration: what there is to see after the start, and the live part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.app import Service, open_service
from aggregator.http.server import make_app
from aggregator.runtime import addresses, demo
from aggregator.runtime.demo import history
from aggregator.settings import Settings
from aggregator.store.factory import with_store_url
from aggregator.time_units import HOUR_MS
from aggregator_client import demonstration
from tests.support.hang_limit import HANG_LIMIT_S

LIVE = [row["id"] for row in demo.load_rows() if row["minutes_ago"] < history.LIVE_MINUTES]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[tuple[Settings, Service, str]]:
    """A service under the wall clock after the history was loaded, and its URL."""
    quick = Settings(data_dir=str(directory / "data"), demo=True, request_timeout_seconds=HANG_LIMIT_S)
    async with with_store_url(quick) as settings:
        assert await history.load_history(settings) == len(history.history_articles(NOW))
        async with open_service(settings) as service, TestServer(make_app(service)) as server:
            service.background.scheduler.start()
            try:
                yield settings, service, str(server.make_url("")).rstrip("/")
            finally:
                await service.background.scheduler.stop()


@pytest.mark.services
async def test_a_newcomer_sees_what_the_pictures_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Events in three languages, ended ones, a storyline, copies; then live articles, and where to look."""
    async with served(tmp_path) as (settings, service, url):
        before = {event.id: event for event in await service.events.repository.list_events(limit=50)}
        await addresses.run_demo(url)
        after = {event.id: event for event in await service.events.repository.list_events(limit=50)}
        repeated = await history.load_history(settings)
        times = {id_: (await service.articles.index.articles.get_many([id_]))[id_].record for id_ in LIVE}
        sent = capsys.readouterr().out
        await addresses.run_demo(url)  # as a restart with the same data directory does
        again = {id_: (await service.articles.index.articles.get_many([id_]))[id_].record for id_ in LIVE}

    languages = {language for event in before.values() for language in event.languages}
    ended = [event for event in before.values() if event.status == "closed"]
    assert {"en", "zh", "ar"} <= languages
    assert (len(before), len(ended)) == (5, 2)
    assert len({event.story_id or event.id for event in ended}) == 1
    first_ms = [event.first_seen_ms for event in before.values()]
    assert max(first_ms) - min(first_ms) > 12 * HOUR_MS
    assert sum(event.size for event in after.values()) > sum(event.size for event in before.values())
    assert repeated == 0
    assert f"storyline of two events: {url}/stories/{ended[0].story_id}" in sent
    assert f"who published a text first: {url}/articles/demo-event-" in sent
    assert f"demonstration: {len(LIVE)} articles sent" in sent
    assert again == times  # no article has two times
    assert "with the times of the first start" in capsys.readouterr().out


def test_history_and_live_articles_are_the_demonstration() -> None:
    """No article is in both; articles of earlier days arrive at the beginning."""
    articles = history.history_articles(NOW)
    stored = {article.id for _, article in articles}
    begin_ms = round((NOW - timedelta(milliseconds=history.SPAN_MS)).timestamp() * 1000)

    assert not stored.intersection(LIVE)
    assert stored.union(LIVE) >= {row["id"] for row in demo.load_rows()}
    assert articles[0][0] == begin_ms
    assert all(begin_ms <= at_ms < NOW.timestamp() * 1000 for at_ms, _ in articles)


@pytest.mark.integration
async def test_a_busy_service_is_asked_again() -> None:
    """503 is answered while a machine is busy with the start."""
    answers = iter([web.json_response({"detail": "busy"}, status=503, headers={"Retry-After": "0"})])

    async def events(_: web.Request) -> web.Response:
        return next(answers, web.json_response({"events": [], "next": None, "learning": None}))

    app = web.Application()
    app.router.add_get("/v1/events", events)
    async with TestServer(app) as server:
        assert not (await demonstration.replay(str(server.make_url("")), [])).events


@pytest.mark.parametrize(
    ("settings", "state", "step"),
    [
        (Settings(), "ready", "open http://127.0.0.1:8080/, which shows how to send the first article"),
        (Settings(demo=True), "ready", "open http://127.0.0.1:8080/ in a browser"),
        (
            Settings(public_url="https://news.example/desk/"),
            "ready",
            "open https://news.example/desk/, which",
        ),
        (Settings(), "not ready", "`aggregator doctor` names what is wrong"),
    ],
)
def test_the_start_ends_with_the_next_step(settings: Settings, state: str, step: str) -> None:
    """In one line."""
    assert addresses.next_step(settings, "http://127.0.0.1:8080", state).startswith(step)
