"""A client over the fake service, and sentences of our own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient

from tests.support.fake_service import FakeService, serving


@pytest.fixture
def service() -> FakeService:
    """A fresh fake service."""
    return FakeService()


@pytest.fixture
async def client(service: FakeService) -> AsyncIterator[TestClient]:
    """An HTTP client of an application over ``service``."""
    async with serving(service) as opened:
        yield opened
