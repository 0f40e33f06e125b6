"""Fixtures: an HTTP client of the application over a fake service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.fake_service import Client, FakeService, serving


@pytest.fixture
def service() -> FakeService:
    """A fresh fake service."""
    return FakeService()


@pytest.fixture
async def client(service: FakeService) -> AsyncIterator[Client]:
    """An HTTP client of an application over ``service``."""
    async with serving(service) as opened:
        yield opened


@pytest.fixture
async def stored(client: Client) -> None:
    """Two stored articles."""
    for id_ in ("a", "b"):
        await client.post(
            "/v1/articles", json={"id": id_, "title": f"Title {id_}", "text": f"Text of {id_}."}
        )
