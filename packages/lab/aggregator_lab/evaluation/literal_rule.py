"""The event rule of Hu & You (MECS 2017), for comparison: articles within 7 bits of one, within a window.

An event has more than ``items`` articles within 7 bits of the last of them, which is included; later articles
within 7 bits of that one join while the event has one that is no older than the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.errors import AggregatorError
from aggregator.events.detection.model import BurstRule
from aggregator_archive.replay import parse_time_ms

RADIUS_BITS = 7


@dataclass(slots=True)
class LiteralEvent:
    """An event of this rule; ``title``: that of the article that made it. It has no terms and no history."""

    id: str
    title: str
    detected_at_ms: int
    latest_ms: int
    items: list[str]
    expected: float = 0.0
    terms: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of articles."""
        return len(self.items)

    peak = size


def literal_events(
    rows: Sequence[Mapping[str, Any]], rule: BurstRule, analyzer: Analyzer
) -> list[LiteralEvent]:
    """The events of rows in order of time, of those with a title, on the fingerprints of the service."""
    rows = [row for row in rows if str(row.get("title") or "").strip()]
    found = [_fingerprint(row, analyzer) for row in rows]
    spaces, bits = np.array([space for space, _ in found]), np.array([bits for _, bits in found], np.uint64)
    times = np.maximum.accumulate([parse_time_ms(row.get("published_at")) or 0 for row in rows] or [0])
    is_free, events, seeds = np.ones(len(rows), bool), list[LiteralEvent](), dict[int, LiteralEvent]()
    for number, row in enumerate(rows):
        now_ms = int(times[number])
        start = int(np.searchsorted(times, now_ms - rule.window_ms))
        seeds = {n: event for n, event in seeds.items() if event.latest_ms >= times[start]}
        near = np.bitwise_count(bits[: number + 1] ^ bits[number]) <= RADIUS_BITS
        near &= spaces[: number + 1] == spaces[number]
        neighbors = start + (near[start:] & is_free[start : number + 1]).nonzero()[0]
        if joined := next((event for n, event in seeds.items() if near[n]), None):
            joined.items.append(str(row["id"]))
            joined.latest_ms, is_free[number] = now_ms, False
        elif len(neighbors) > rule.items:
            ids = [str(rows[n]["id"]) for n in neighbors]
            seeds[number] = LiteralEvent(str(row["id"]), str(row["title"]), now_ms, now_ms, ids)
            events.append(seeds[number])
            is_free[neighbors] = False
    return events


def load_analyzer(models_dir: str) -> Analyzer:
    """The analyzer of the models in a directory; "": the shipped ones."""
    return Analyzer(load_models(Path(models_dir) if models_dir else None))


def _fingerprint(row: Mapping[str, Any], analyzer: Analyzer) -> tuple[str, int]:
    """Space and fingerprint of a row; ("", 0) if it has no words."""
    title, text, lang = (
        value if isinstance(value := row.get(f), str) else "" for f in ("title", "text", "lang")
    )
    try:
        analysis = analyzer.analyze(Article(id="row", title=title, text=text, lang=lang or None))
    except AggregatorError:
        return "", 0
    return analysis.space, analysis.fingerprint
