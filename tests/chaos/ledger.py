"""What the service has acknowledged, and what must hold of it whatever happens."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ledger:
    """Articles by id; ``groups`` are near-copies of one another.

    acknowledged  id -> (verdict, when it was answered, in s of the monotonic clock)
    posted        id -> its group; -1 for a report of an event, which is like nothing else
    lost          acknowledged articles that could not be found
    changed       ids that were found with another verdict than was answered
    """

    acknowledged: dict[str, tuple[str, float]] = field(default_factory=dict)
    posted: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    refusals: int = 0
    _unread: list[str] = field(default_factory=list)

    def enter(self, id_: str, verdict: str) -> None:
        """An answer came."""
        self.acknowledged[id_] = verdict, time.monotonic()
        self._unread.append(id_)

    def within(self, seconds: float) -> int:
        """How many were acknowledged so lately."""
        since_s = time.monotonic() - seconds
        count = 0
        for _, at_s in reversed(self.acknowledged.values()):
            if at_s < since_s:
                break
            count += 1
        return count

    def unread(self) -> list[str]:
        """What was acknowledged since this was last asked."""
        ids, self._unread = self._unread, []
        return ids

    def found(self, id_: str, verdict: str | None) -> None:
        """What the service says of an id now; None: it does not know it."""
        if verdict is None:
            self.lost.add(id_)
        elif verdict != self.acknowledged[id_][0]:
            self.changed.add(id_)

    def doubled(self) -> list[int]:
        """Groups of which more than one member was called new."""
        return [group for group, news in self._news().items() if news > 1]

    def missing(self) -> list[int]:
        """Groups that were acknowledged whole, none of them as new: news that nobody would have stored."""
        waiting = {self.posted[id_] for id_ in self.posted.keys() - self.acknowledged.keys()}
        return [group for group, news in self._news().items() if not news and group not in waiting]

    def _news(self) -> dict[int, int]:
        news: dict[int, int] = defaultdict(int)
        for id_, (verdict, _) in self.acknowledged.items():
            if self.posted[id_] >= 0:
                news[self.posted[id_]] += verdict != "duplicate"
        return news
