"""Cache of rendered pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from aggregator.http.pages import MAX_VIEWS, RenderCache


class Renderer:
    """Counts renderings; each waits until ``ready``."""

    def __init__(self) -> None:
        self.rendered: list[str] = []
        self.ready = asyncio.Event()
        self.ready.set()

    def page(self, text: str) -> Callable[[], Coroutine[Any, Any, bytes]]:
        async def render() -> bytes:
            self.rendered.append(text)
            await self.ready.wait()
            if text == "broken":
                raise RuntimeError(text)
            return text.encode()

        return render


async def test_a_page_is_rendered_once_per_version() -> None:
    """Each view on its own."""
    cache, renderer = RenderCache(), Renderer()

    assert await cache.get("/", 1, renderer.page("a")) == b"a"
    assert await cache.get("/", 1, renderer.page("b")) == b"a"
    assert await cache.get("/?sort=size", 1, renderer.page("c")) == b"c"
    assert await cache.get("/", 2, renderer.page("d")) == b"d"
    assert renderer.rendered == ["a", "c", "d"]


async def test_simultaneous_readers_share_a_rendering() -> None:
    """Also when the reader who caused it disconnects."""
    cache, renderer = RenderCache(), Renderer()
    renderer.ready.clear()
    readers = [asyncio.create_task(cache.get("/", 1, renderer.page(f"a{n}"))) for n in range(9)]
    await asyncio.sleep(0)
    readers[0].cancel()
    await asyncio.sleep(0)
    renderer.ready.set()

    assert await asyncio.gather(*readers[1:]) == [b"a0"] * 8
    assert renderer.rendered == ["a0"]


async def test_a_failure_is_not_kept() -> None:
    """The next reader tries again."""
    cache, renderer = RenderCache(), Renderer()

    with pytest.raises(RuntimeError):
        await cache.get("/", 1, renderer.page("broken"))
    assert await cache.get("/", 1, renderer.page("whole")) == b"whole"


async def test_the_least_recently_used_view_is_dropped() -> None:
    """Filters are typed by readers, so there may be any number."""
    cache, renderer = RenderCache(), Renderer()
    for n in range(MAX_VIEWS):
        await cache.get(n, 1, renderer.page("a"))
    await cache.get(0, 1, renderer.page("a"))
    await cache.get("more", 1, renderer.page("a"))
    before = len(renderer.rendered)
    await cache.get(0, 1, renderer.page("again"))
    await cache.get(1, 1, renderer.page("again"))

    assert len(renderer.rendered) == before + 1
