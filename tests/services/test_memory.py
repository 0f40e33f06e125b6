"""Memory of a service at rest."""

from __future__ import annotations

import sys
from pathlib import Path

import aiohttp
import pytest

from tests.support.processes import descendants, own_bytes
from tests.support.server_fixture import serving

MAX_BYTES = 350e6  # 0.27e9 measured; each process that loads its own dictionaries takes 0.1e9 more
ENGLISH = "The ferry to the island runs again, the mayor said on Monday. " * 9
CHINESE = "市议会星期三投票决定修建一座新的大桥，市长表示成本自春天以来已经上升。" * 9
PAGE = f"<article><h1>Ferry</h1><p>{'The bridge is closed. ' * 40}</p></article>"
ARTICLES = ({"text": ENGLISH}, {"text": CHINESE}, {"html": PAGE})


@pytest.mark.services
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked from the web process on Linux only")
async def test_the_processes_of_a_service_share_their_memory(tmp_path: Path) -> None:
    """Proportional set size of web, analysis and background process and store: pages are counted once."""
    pids: dict[int, str] = {}
    async with serving(data_dir=tmp_path, pids=pids) as url, aiohttp.ClientSession() as session:
        for number, content in enumerate(ARTICLES):
            article = {"url": f"https://a.example/{number}"} | content
            async with session.post(f"{url}/v1/articles", json=article) as response:
                assert response.status == 201, await response.text()
        (service,) = pids
        sizes = {pid: own_bytes(pid) for pid in (service, *descendants(service))}
    assert len(sizes) == 5  # web, fork server, analysis worker, background, store
    assert sum(sizes.values()) < MAX_BYTES, sizes
