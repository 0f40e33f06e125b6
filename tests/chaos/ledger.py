"""Acknowledged articles and their verdicts, with the invariants that must hold for them."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.chaos.api import Refused

UNREADY_CODES = ("store_unavailable", "not_ready", "configuration", "model", "clock")


@dataclass(slots=True)
class Ledger:
    """Posted and acknowledged articles by id; a group consists of near-copies.

    acknowledged  id -> (verdict, time of the answer in s of the monotonic clock)
    posted        id -> its group; -1 for a report, which has no copies
    lost          acknowledged articles that were not found
    changed       ids that were found with another verdict than was answered
    refusals      number of posts that were not acknowledged, by problem code ("": no answer)
    unexplained   refusals without a reason, or without Retry-After where one is due
    final         refusals that a caller takes as final, although every posted article is valid
    while_ready   refusals for lack of a store or of readiness, sent while every service said it was ready
    """

    acknowledged: dict[str, tuple[str, float]] = field(default_factory=dict)
    posted: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    refusals: Counter[str] = field(default_factory=Counter)
    unexplained: list[Refused] = field(default_factory=list)
    final: list[Refused] = field(default_factory=list)
    while_ready: list[Refused] = field(default_factory=list)
    ready_since_s: float = math.inf
    _unchecked: list[str] = field(default_factory=list)
    _acknowledged_s: float = math.inf
    _longest_gap_s: float = 0.0

    def acknowledge(self, id_: str, verdict: str) -> None:
        """Add an answer."""
        now_s = time.monotonic()
        self.acknowledged[id_] = verdict, now_s
        self._longest_gap_s = max(self._longest_gap_s, now_s - self._acknowledged_s)
        self._acknowledged_s = now_s
        self._unchecked.append(id_)

    def refuse(self, refused: Refused) -> None:
        """Add a post that was not acknowledged; it is repeated by the caller."""
        self.refusals[refused.code] += 1
        if refused.is_final:
            self.final.append(refused)
        elif not refused.is_explained:
            self.unexplained.append(refused)
        elif refused.code in UNREADY_CODES and refused.sent_s > self.ready_since_s:
            self.while_ready.append(refused)

    def acknowledged_within(self, seconds: float) -> int:
        """Number of articles acknowledged within the last ``seconds``."""
        since_s = time.monotonic() - seconds
        count = 0
        for _, at_s in reversed(self.acknowledged.values()):
            if at_s < since_s:
                break
            count += 1
        return count

    def take_longest_gap(self) -> float:
        """The longest time between two acknowledgements since the last call, in s."""
        gap_s, self._longest_gap_s = self._longest_gap_s, 0.0
        return gap_s

    def take_unchecked(self) -> list[str]:
        """Ids acknowledged since the last call."""
        ids, self._unchecked = self._unchecked, []
        return ids

    def check(self, id_: str, verdict: str | None) -> None:
        """Compare the verdict that an article has now with the answer; None: not found."""
        if verdict is None:
            self.lost.add(id_)
        elif verdict != self.acknowledged[id_][0]:
            self.changed.add(id_)

    def groups_with_several_new(self) -> list[int]:
        """Groups with more than one new article."""
        return [group for group, new in self._new_by_group().items() if new > 1]

    def groups_without_new(self) -> list[int]:
        """Completely acknowledged groups without a new article: no client would have stored the story."""
        waiting = {self.posted[id_] for id_ in self.posted.keys() - self.acknowledged.keys()}
        return [group for group, new in self._new_by_group().items() if not new and group not in waiting]

    def _new_by_group(self) -> dict[int, int]:
        new: dict[int, int] = defaultdict(int)
        for id_, (verdict, _) in self.acknowledged.items():
            if self.posted[id_] >= 0:
                new[self.posted[id_]] += verdict != "duplicate"
        return new
