"""A real Chromium, when one is installed, over the application with the fake service."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "http"))

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
# As root and offline: without these Chromium refuses to start, or looks up hosts at every start.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
async def browser() -> AsyncIterator[object]:
    """A headless Chromium; the test is skipped by name where none is installed."""
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
    from fake_service import FakeService

    return FakeService()


@pytest.fixture
async def client(service: object) -> AsyncIterator[object]:
    """The application, served."""
    from fake_service import serving

    async with serving(service) as opened:
        yield opened
