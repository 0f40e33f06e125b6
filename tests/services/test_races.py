"""Exactly one of several simultaneous near-duplicates is new, over HTTP and with several processes."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import aiohttp
import pytest

from aggregator.analysis.simhash import hamming_distance
from aggregator.domain import Analysis, Article
from tests.support.factories import core, edited, story
from tests.support.server_fixture import serving
from tests.support.stores import open_patient_store

COPIES = 8


@pytest.mark.services
@pytest.mark.usefixtures("without_analysis_processes")
@pytest.mark.parametrize(("kind", "bursts"), [("valkey", 50), ("cluster", 30)])
async def test_every_burst_has_exactly_one_new(
    kind: str, bursts: int, request: pytest.FixtureRequest
) -> None:
    """Bursts of 8 edited copies, posted simultaneously to two processes.

    The words are invented, in a language without a fitted model, so different bursts are far apart and any
    wrong number of "new" verdicts comes from the commit.
    """
    store_url = request.getfixturevalue(f"{kind}_url")
    async with serving(store_url=store_url) as first, serving(store_url=store_url) as second:
        connector = aiohttp.TCPConnector(limit=64)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def post(burst: int, copy: int) -> str:
                text = edited(story(burst, sentences=25), copy, changes=5)
                body = {"id": f"{burst}-{copy}", "text": text, "title": f"Report {burst}", "lang": "eo"}
                url = (first, second)[copy % 2] + "/v1/articles"
                async with session.post(url, json=body) as response:
                    assert response.status in (200, 201), await response.text()
                    return str((await response.json())["verdict"])

            verdicts = []
            for burst in range(bursts):
                verdicts.append(Counter(await asyncio.gather(*(post(burst, c) for c in range(COPIES)))))

    assert [v["new"] for v in verdicts] == [1] * bursts
    assert [v["duplicate"] for v in verdicts] == [COPIES - 1] * bursts


async def test_copies_with_distant_fingerprints_are_found_by_their_wording(valkey_url: str) -> None:
    """3/4 of the words are common and all fingerprints differ by more than 7 bits; exactly one is new.

    2,000 bursts were tried once (decision 0039).
    """
    cores = [core(open_patient_store(valkey_url)) for _ in range(2)]
    distant_bursts = 0
    for burst in range(24):
        texts = [f"{story(5_000 + 64 * burst + c, 10)} {story(burst, 30)}" for c in range(4)]
        analyzed = await cores[0].ingest.analyze_many(
            [Article(id="", text=text, lang="en") for text in texts]
        )
        prints = [item.fingerprint for item in analyzed if isinstance(item, Analysis)]
        if any(hamming_distance(a, b) <= 7 for a, b in itertools.combinations(prints, 2)):
            continue
        distant_bursts += 1
        sent = (cores[c % 2].post(f"{burst}-{c}", text) for c, text in enumerate(texts))
        verdicts = Counter(answer.outcome.verdict for answer in await asyncio.gather(*sent))

        assert verdicts["duplicate"] == 3, verdicts
    assert distant_bursts >= 12
    for opened in cores:
        await opened.index.store.close()
