"""Blocking client: the asyncio client on an event loop in its own thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from aggregator_client.client import Client
from aggregator_client.connection import CLOSED
from aggregator_client.decision import Decision
from aggregator_client.wire import (
    ArticleOut,
    CopiesOut,
    EventDetailOut,
    EventsOut,
    ExplainOut,
    RelatedBatchOut,
    RelatedOut,
    RelatedToManyOut,
    SearchOut,
)

T = TypeVar("T")


class SyncClient(AbstractContextManager["SyncClient"]):
    """Blocking ``Client`` with the same arguments and methods. Thread-safe; not usable after a fork.

    Use as ``with SyncClient(url) as client``, or call ``close``.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", **options: Any) -> None:
        self._client, self._process = Client(url, **options), os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aggregator-client", daemon=True)
        self._thread.start()

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread. Idempotent."""
        if self._loop.is_closed() or os.getpid() != self._process:
            return
        self._run(self._client.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, article: Mapping[str, Any]) -> Decision:
        """See ``Client.submit``."""
        return self._run(lambda: self._client.submit(article))

    def check(self, article: Mapping[str, Any]) -> Decision:
        """See ``Client.check``."""
        return self._run(lambda: self._client.check(article))

    def submit_many(self, articles: Iterable[Mapping[str, Any]], *, dry_run: bool = False) -> list[Decision]:
        """See ``Client.submit_many``."""
        return self._run(lambda: self._client.submit_many(articles, dry_run=dry_run))

    def undo(self, decision: Decision) -> bool:
        """See ``Client.undo``."""
        return self._run(lambda: self._client.undo(decision))

    @contextmanager
    def reservation(self, article: Mapping[str, Any]) -> Iterator[Decision]:
        """See ``Client.reservation``."""
        decision = self.submit(article)
        try:
            yield decision
        except BaseException:
            self.release(decision)
            raise

    def release(self, decision: Decision) -> bool:
        """See ``Client.release``."""
        return self._run(lambda: self._client.release(decision))

    def get(self, id: str) -> ArticleOut:
        """See ``Client.get``."""
        return self._run(lambda: self._client.get(id))

    def delete(self, id: str, *, undo: bool = False, take_down: bool | None = None) -> bool:
        """See ``Client.delete``."""
        return self._run(lambda: self._client.delete(id, undo=undo, take_down=take_down))

    def copies(self, id: str) -> CopiesOut:
        """See ``Client.copies``."""
        return self._run(lambda: self._client.copies(id))

    def related(self, id: str = "", **parameters: Any) -> Sequence[RelatedOut]:
        """See ``Client.related``."""
        return self._run(lambda: self._client.related(id, **parameters))

    def related_to(self, article: Mapping[str, Any], **parameters: Any) -> Sequence[RelatedOut]:
        """See ``Client.related_to``."""
        return self._run(lambda: self._client.related_to(article, **parameters))

    def related_to_ids(
        self, ids: Sequence[str | Mapping[str, Any]] | Mapping[str, datetime], **parameters: Any
    ) -> RelatedToManyOut:
        """See ``Client.related_to_ids``."""
        return self._run(lambda: self._client.related_to_ids(ids, **parameters))

    def related_to_each(self, ids: Sequence[str], **parameters: Any) -> RelatedBatchOut:
        """See ``Client.related_to_each``."""
        return self._run(lambda: self._client.related_to_each(ids, **parameters))

    def search(self, query: str, *, limit: int = 20) -> SearchOut:
        """See ``Client.search``."""
        return self._run(lambda: self._client.search(query, limit=limit))

    def explain(self, a: str, b: str, *, policy: str = "") -> ExplainOut:
        """See ``Client.explain``."""
        return self._run(lambda: self._client.explain(a, b, policy=policy))

    def events(self, query: str = "") -> EventsOut:
        """See ``Client.events``."""
        return self._run(lambda: self._client.events(query))

    def event(self, id: str) -> EventDetailOut:
        """See ``Client.event``."""
        return self._run(lambda: self._client.event(id))

    def ready(self) -> bool:
        """See ``Client.ready``."""
        return self._run(self._client.ready)

    def readiness_problem(self, deadline_s: float | None = None, *, policy: str = "") -> str:
        """See ``Client.readiness_problem``."""
        return self._run(lambda: self._client.readiness_problem(deadline_s, policy=policy))

    @property
    def counts(self) -> Counter[str]:
        """See ``Client.counts``."""
        return self._client.counts

    def _run(self, make_call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._loop.is_closed():
            raise RuntimeError(CLOSED)
        if os.getpid() != self._process:  # its thread is not here
            raise RuntimeError("The client was created before this process was forked; create a new one.")
        return asyncio.run_coroutine_threadsafe(make_call(), self._loop).result()


for _name, _member in vars(SyncClient).items():  # help() shows what ``Client`` says
    if (_member.__doc__ or "").startswith("See "):
        _member.__doc__ = getattr(Client, _name).__doc__
