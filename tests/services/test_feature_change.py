"""Migration from the model of another feature extractor to the shipped one, under a running service."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aggregator.analysis.analyzer import space_name
from aggregator.analysis.models import BUNDLED_DIR
from aggregator.store.embedded import EmbeddedServer
from aggregator_lab.extractors.fitting import fit_extractor
from aggregator_lab.extractors.hashing import HashingExtractor
from tests.lab.extractors.corpus import TEXTS, mixed_texts
from tests.support.server_fixture import serving


@pytest.mark.services
async def test_a_service_moves_from_hashed_features_to_the_shipped_ones(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    """Fit, serve, post, migrate, switch: copies are found in each index; a worker analyzes the batch."""
    corpus = mixed_texts(100)
    model = fit_extractor(HashingExtractor, corpus, ["en"] * len(corpus), "en")
    model.save(tmp_path / "en.model")
    texts = {f"a{n}": text for n, text in enumerate(TEXTS[:12])}
    common: dict[str, Any] = {
        "store_url": own_server.url,
        "log_level": "ERROR",
        "analysis_processes": 1,
    }
    hashed = common | {"models_dir": tmp_path}
    moving = hashed | {"migration_models_dir": BUNDLED_DIR}

    async with aiohttp.ClientSession() as session:

        async def post(site: str, id_: str, text: str) -> tuple[str, str]:
            body = {"id": id_, "text": text, "lang": "en"}
            async with session.post(f"{site}/v1/articles", json=body) as response:
                assert response.status in (200, 201), await response.text()
                answer = await response.json()
                return answer["verdict"], answer["space"]

        async with serving("--store-texts", **hashed) as site:
            lines = [json.dumps({"id": id_, "text": text, "lang": "en"}) for id_, text in texts.items()]
            async with session.post(f"{site}/v1/articles/batch", data="\n".join(lines)) as response:
                assert response.status == 200, await response.text()
                answers = [json.loads(line) for line in (await response.text()).splitlines()]
            assert {answer["space"] for answer in answers} == {space_name("en", model)}
            # By a worker and by the process itself: one fingerprint, so the copy of a text is found.
            before = await post(site, "c0", texts["a0"] + " Corrected.")

        async with serving("--store-texts", **moving) as site:
            options = [f"--models-dir={tmp_path}", f"--migration-models-dir={BUNDLED_DIR}"]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "aggregator", "migrate", "--no-progress"),
                *("--store", own_server.url, *options),
            )
            assert await process.wait() == 0
            during = await post(site, "c1", texts["a1"] + " Corrected.")

        async with serving("--store-texts", **common) as site:
            after = await post(site, "c2", texts["a2"] + " Corrected.")

    assert [before[0], during[0], after[0]] == ["duplicate"] * 3
    assert before[1] == during[1] != after[1]
