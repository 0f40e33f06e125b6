"""Fixtures: a headless Chromium, and the application over the fake service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.browser.chromium import CHROMIUM, FLAGS
from tests.support.fake_service import Client, FakeService, serving
from tests.support.hang_limit import HANG_LIMIT_S

if TYPE_CHECKING:
    from playwright.async_api import Browser


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One Chromium for all tests, each of which opens its own contexts; skips without Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian package: chromium)")
    api = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    api.expect.set_options(timeout=HANG_LIMIT_S * 1000)
    async with api.async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        await chromium.close()


@pytest.fixture
def service() -> FakeService:
    """A fresh fake service."""
    return FakeService()


@pytest_asyncio.fixture(loop_scope="session")
async def client(service: FakeService) -> AsyncIterator[Client]:
    """A client of the application over the fake service."""
    async with serving(service) as opened:
        yield opened
