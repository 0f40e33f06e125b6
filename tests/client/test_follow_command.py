"""``aggregator follow``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import run
from tests.client.feed_server import opml, rss, rss_item
from tests.support.factories import story
from tests.support.server_fixture import serving_alone


@pytest.mark.services
def test_news_of_a_file_and_of_an_absent_server(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per feed and a summary; exit code 1, since one feed could not be read, else 0."""
    feed, subscriptions = tmp_path / "feed.rss", tmp_path / "feeds.opml"
    feed.write_bytes(rss([rss_item(str(n), f"Title {n}", story(n)) for n in range(3)]))
    absent = f"http://127.0.0.1:{free_port}/rss"
    subscriptions.write_text(opml([absent]))
    with serving_alone(tmp_path, "--store-url=memory") as (_, url):
        assert run("follow", str(feed), "--once", "--server", url) == 0
        first = capsys.readouterr().out
        assert run("follow", str(feed), str(subscriptions), "--once", "--server", url) == 1
        second = capsys.readouterr().out

    counted = "3 articles: 3 new, 0 related, 0 duplicate; 3 kept"
    assert first.splitlines()[0] == f"{feed}: {counted}"
    assert first.splitlines()[1].startswith(f"1 polls: 0 unchanged, 0 failed, 0 gone, 0 broken; {counted}; ")
    assert set(second.splitlines()[:3]) == {
        f"{feed}: 3 articles: 0 new, 0 related, 0 duplicate; 3 kept, 3 already stored",
        f"{subscriptions}: a list of 1 feeds",
        f"{absent}: error: Connection refused; next poll in 30 min.",
    }


def test_what_is_neither_a_file_nor_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    """A usage error."""
    assert run("follow", "gazette.example/rss") == 2
    assert capsys.readouterr().err == (
        "aggregator: 'gazette.example/rss' is neither a file nor an http:// or https:// address.\n"
    )


@pytest.mark.integration
def test_a_service_that_is_not_there(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3, before a feed is read."""
    url = f"http://127.0.0.1:{free_port}"
    assert run("follow", f"{url}/rss", "--once", "--server", url) == 3
    assert capsys.readouterr().err == (f"aggregator: The service is not ready: {url}: Connection refused.\n")
