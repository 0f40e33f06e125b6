"""A real Chromium, when one is installed, over the application with the fake service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.chromium import CHROMIUM, FLAGS


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[object]:
    """One headless Chromium for all; each test opens contexts of its own, or is skipped where none is installed."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian package: chromium)")
    api = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    async with api.async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        await opened.close()


@pytest.fixture
def service() -> object:
    """A fresh fake service."""
    from tests.support.fake_service import FakeService

    return FakeService()


@pytest_asyncio.fixture(loop_scope="session")
async def client(service: object) -> AsyncIterator[object]:
    """The application, served."""
    from tests.support.fake_service import serving

    async with serving(service) as opened:
        yield opened
