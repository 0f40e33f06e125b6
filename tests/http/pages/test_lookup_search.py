"""The search page and what leads to it, over the real service."""

from __future__ import annotations

import pytest

from tests.http.handlers.test_search import client, service
from tests.support.fake_service import Client

__all__ = ["client", "service"]


async def page(client: Client, path: str) -> str:
    """The text of a page."""
    async with client.get(path) as response:
        assert response.status == 200
        return await response.text()


@pytest.mark.integration
async def test_events_come_before_articles_with_links_to_both(client: Client) -> None:
    """An article links to its look-up, to its own page, and to the event that it belongs to."""
    text = await page(client, "/search?q=dam")

    assert text.index("Dam above Kareth bursts") < text.index("Dam report 4")
    assert 'href="/events/dam"' in text
    assert 'href="/lookup?q=d4"' in text
    assert 'href="https://news.example/4"' in text
    assert "headlines and sources of 5 articles" in text


@pytest.mark.integration
async def test_filters_and_the_cursor_are_in_the_address_of_the_next_page(client: Client) -> None:
    """So that a page of results can be sent to a colleague."""
    for number in range(40):
        body = {"id": f"x{number}", "title": f"Otter {number}", "text": f"The otter {number} of the river."}
        await client.post("/v1/articles", json=body)
    text = await page(client, "/search?q=otter&hours=24&lang=en")

    assert 'rel="next"' in text
    assert "/search?q=otter&amp;lang=en&amp;hours=24&amp;cursor=" in text


@pytest.mark.integration
async def test_a_look_up_of_words_leads_to_the_search(client: Client) -> None:
    """It is for texts and ids; a text of several lines cannot be searched."""
    assert 'href="/search?q=river%20otter"' in await page(client, "/lookup?q=river+otter")
    assert "Search for these words" not in await page(client, "/lookup?q=" + "long+" * 60)


@pytest.mark.integration
async def test_an_empty_search_says_what_it_finds(client: Client) -> None:
    """And reads nothing."""
    text = await page(client, "/search")

    assert "Finds events, open and ended, and articles" in text
    assert "Articles <span" not in text
