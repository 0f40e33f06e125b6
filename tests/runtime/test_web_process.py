"""Warm-up of the web process."""

from __future__ import annotations

import pytest

from aggregator.analysis.text import language, morphology
from aggregator.app import open_service
from aggregator.runtime.web_process import warm_up
from aggregator.settings import Settings


@pytest.mark.integration
async def test_the_warm_up_loads_the_dictionaries() -> None:
    """In this process too, which analyzes single articles; pages and batches are analyzed in another one."""
    language._identifier.cache_clear()
    morphology.segmenter.cache_clear()
    async with open_service(Settings(store_url="memory"), processes=1) as service:
        await warm_up(service)

    assert language._identifier.cache_info().currsize == 1
    assert morphology.segmenter.cache_info().currsize == 1
