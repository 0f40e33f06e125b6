"""Analyses that outlast their request: they continue, and a repetition of the request gets the result.

A request is cancelled at its deadline and answered 503. An article that always takes longer, on a slow or
busy machine, would never be answered if each repetition began again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b

from aggregator.analysis.pool.fork_server_main import AnalysisResult
from aggregator.concurrency import current_caller
from aggregator.domain import Analysis, Article
from aggregator.errors import RateLimited

# Analyses without a waiting request; each holds its article. Beyond that the analysis ends with its request.
MAX_CONTINUED = 16
MAX_CONTINUED_PER_CALLER = 4
# Results kept for repetitions: the newest, with this many characters in all, and always one.
MAX_KEPT_RESULTS = 64
MAX_KEPT_CHARS = 4_000_000

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Running:
    task: asyncio.Task[AnalysisResult]
    caller: str
    waiting: int = 0  # requests


class Continuation:
    """Runs analyses that survive the cancellation of their requests, which are compared by their content.

    ``analyze`` is called in the context of the first request, so it counts for the caller of that one.
    """

    def __init__(self, analyze: Callable[[Article], Awaitable[AnalysisResult]]) -> None:
        self._analyze = analyze
        self._running: dict[bytes, _Running] = {}
        self._kept: dict[bytes, AnalysisResult] = {}  # the newest is last
        self._kept_chars = 0

    async def run(self, article: Article) -> AnalysisResult:
        """Return the result of ``analyze``, which runs once for concurrent and repeated requests."""
        caller = current_caller.get()
        key = _content_key(caller, article)
        if (kept := self._kept.get(key)) is not None:
            return kept
        running = self._running.get(key)
        if running is None:
            running = _Running(asyncio.create_task(self._run(article)), caller)
            self._running[key] = running
            running.task.add_done_callback(lambda _: self._on_done(key, running))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1
            if not running.waiting and not running.task.done() and not self._may_continue(caller):
                del self._running[key]
                running.task.cancel()

    def close(self) -> None:
        """Cancel what is running. Idempotent."""
        for running in self._running.values():
            running.task.cancel()

    async def _run(self, article: Article) -> AnalysisResult:
        return await self._analyze(article)

    def _may_continue(self, caller: str) -> bool:
        continued = [running.caller for running in self._running.values() if not running.waiting]
        return len(continued) <= MAX_CONTINUED and continued.count(caller) <= MAX_CONTINUED_PER_CALLER

    def _on_done(self, key: bytes, running: _Running) -> None:
        if self._running.get(key) is running:
            del self._running[key]
        if running.task.cancelled() or running.waiting:
            return
        if (error := running.task.exception()) is not None:
            log.error("an analysis that had outlasted its request failed", exc_info=error)
            return
        result = running.task.result()
        if isinstance(result, RateLimited):  # not an answer about the article
            return
        self._kept[key] = result
        self._kept_chars += _chars(result)
        while len(self._kept) > MAX_KEPT_RESULTS or (
            self._kept_chars > MAX_KEPT_CHARS and len(self._kept) > 1
        ):
            self._kept_chars -= _chars(self._kept.pop(next(iter(self._kept))))


def _content_key(caller: str, article: Article) -> bytes:
    """A digest of what an analysis depends on, and of the caller, so that no caller waits for another's."""
    digest = blake2b(digest_size=16)
    for part in (caller, article.title, article.text, article.html, article.lang or ""):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8))
        digest.update(encoded)
    return digest.digest()


def _chars(result: AnalysisResult) -> int:
    return len(result.title) + len(result.text) if isinstance(result, Analysis) else 0
