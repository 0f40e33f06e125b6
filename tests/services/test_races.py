"""Exactly one of several simultaneous near-copies is new, over HTTP and several server processes."""

import asyncio
from collections import Counter

import aiohttp
import pytest
from newsroom import edited, story
from serving import serving

COPIES = 8


@pytest.mark.services
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "bursts"), [("valkey", 200), ("cluster", 80)])
async def test_every_burst_has_exactly_one_new(
    kind: str, bursts: int, request: pytest.FixtureRequest
) -> None:
    """Bursts of 8 edited copies, each copy its own request to one of two processes, at the same moment.

    Made-up words under a language without a fitted model: different bursts are then far apart, and any
    second "new", or none, comes from the commit.
    """
    store_url = request.getfixturevalue(f"{kind}_url")
    async with serving(store_url=store_url) as one, serving(store_url=store_url) as other:
        connector = aiohttp.TCPConnector(limit=64)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def post(burst: int, copy: int) -> str:
                text = edited(story(burst, sentences=25), copy, changes=5)
                body = {"id": f"{burst}-{copy}", "text": text, "title": f"Report {burst}", "lang": "eo"}
                url = (one, other)[copy % 2] + "/v1/articles"
                async with session.post(url, json=body) as response:
                    assert response.status in (200, 201), await response.text()
                    return str((await response.json())["verdict"])

            verdicts = []
            for burst in range(bursts):
                verdicts.append(Counter(await asyncio.gather(*(post(burst, c) for c in range(COPIES)))))

    assert [v["new"] for v in verdicts] == [1] * bursts
    assert [v["duplicate"] for v in verdicts] == [COPIES - 1] * bursts
