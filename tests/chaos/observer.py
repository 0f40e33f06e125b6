"""What stands in the store itself: every event told once, every article announced once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aggregator.app import build_analyzers
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.settings import Settings
from aggregator.store.base import Store

REPORTS = 18  # of one matter; more than fifteen make an event
PATIENCE_S = 60.0
FEW = 4  # articles of another matter that an event may have by a word they share
STRAGGLERS_S = 3.0  # many ticks of the detector
STEP = 500


@dataclass(slots=True)
class Witness:
    """Follows the changes of events as a reader would, past the faulty connection.

    matters  event id -> the matters that its articles are about
    """

    store: Store
    fired: Counter[str] = field(default_factory=Counter)
    matters: dict[str, set[int]] = field(default_factory=dict)
    _position: bytes = b""
    _spaces: Sequence[str] = field(default_factory=lambda: build_analyzers(Settings())[0].spaces)

    async def read_on(self) -> None:
        """What was told since the last time."""
        log = EventRepository(self.store)
        while changes := await log.changes(self._position, STEP):
            self._position = changes[-1][0]
            self.fired.update(change.event_id for _, change in changes if change.kind == "fired")

    async def settle(self, matters: Iterable[int]) -> None:
        """Wait until all of these have become events, or for so long as patience lasts; then for stragglers."""
        wanted = set(matters)
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            await self.read_on()
            events = await EventRepository(self.store).get_many(list(self.fired))
            self.matters = {id_: _matters(event.items) for id_, event in events.items()}
            if wanted <= self.told():
                deadline_s = min(deadline_s, time.monotonic() + STRAGGLERS_S)
            await asyncio.sleep(0.2)

    def told(self) -> set[int]:
        """Matters that some event is about."""
        return set().union(*self.matters.values()) if self.matters else set()

    def doubled(self) -> int:
        """Tellings beyond the first of each event, and events beyond the first of each matter."""
        again = sum(count - 1 for count in self.fired.values())
        of_matter = Counter(matter for about in self.matters.values() for matter in about)
        return again + sum(count - 1 for count in of_matter.values())

    async def verdicts(self, ids: Sequence[str]) -> dict[str, str]:
        """What is stored of these; those that are not are left out."""
        index, found = self._index(), {}
        for start in range(0, len(ids), STEP):
            stored = await index.articles.get_many(ids[start : start + STEP])
            found.update({id_: one.outcome.verdict for id_, one in stored.items()})
        return found

    async def announced(self) -> Counter[str]:
        """How often each id stands in the article stream."""
        index = self._index()
        counted: Counter[str] = Counter()
        positions: dict[bytes, bytes] = {}
        while True:
            items, positions = await index.stream.read(positions, STEP)
            counted.update(item.id for item in items)
            if not items:
                return counted

    def _index(self) -> Index:
        return Index(self.store, self._spaces)


def _matters(ids: Iterable[str]) -> set[int]:
    """What an event with these articles is about."""
    counted = Counter(int(id_[1:].partition("-")[0]) for id_ in ids if id_.startswith("m"))
    return {matter for matter, count in counted.items() if count >= FEW}
