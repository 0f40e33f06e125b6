"""Routes of a user's read mark."""

from __future__ import annotations

import html

from aggregator.contract.encoding import to_datetime
from tests.support.fake_service import START_MS, Client, FakeService


async def test_a_mark_belongs_to_the_key(client: Client, service: FakeService) -> None:
    """Posts add to it; the front page has it; a time in the future counts as now."""
    (_, ada), (_, bea) = [await service.api_keys.add(name, "reader") for name in ("Ada", "Bea")]
    as_ada, as_bea = ({"Authorization": f"Bearer {key}"} for key in (ada, bea))
    early, late = (to_datetime(START_MS + ms).isoformat() for ms in (-5, 5))

    first = await (await client.get("/v1/read-mark", headers=as_ada)).json()
    page = await (await client.get("/", headers=as_ada)).text()
    await client.post("/v1/read-mark", json={"looked_at": early, "seen": ["e1"]}, headers=as_ada)
    answer = await (await client.post("/v1/read-mark", json={"seen": ["e2"]}, headers=as_ada)).json()
    future = await (await client.post("/v1/read-mark", json={"looked_at": late}, headers=as_bea)).json()
    marked = await (await client.get("/", headers=as_ada)).text()

    assert first == {"looked_at": None, "seen": []}
    assert 'data-read-mark="null"' in page
    assert answer["seen"] == ["e1", "e2"] and answer["looked_at"] == "2026-09-21T14:13:19.995000Z"
    assert future == {"looked_at": "2026-09-21T14:13:20Z", "seen": []}
    assert f'data-read-mark="{{"at": {START_MS - 5}, "seen": ["e1", "e2"]}}"' in html.unescape(marked)


async def test_without_keys_there_is_no_user(client: Client) -> None:
    """404 says where to keep it; the page has no mark of the server."""
    for response in (await client.get("/v1/read-mark"), await client.post("/v1/read-mark", json={})):
        assert response.status == 404
        assert "Keep the read mark in the client." in (await response.json())["detail"]
    assert "data-read-mark" not in await (await client.get("/")).text()
