"""Hypothesis strategy for random streams: items, duplicates, deletions and ticks."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from hypothesis import strategies as st

from aggregator.events.detection.detector import BurstDetector
from tests.support.detector_stream import DetectorStream, time_ms

Kind = Literal["new", "duplicate", "related", "deleted", "tick"]
# (quarter minutes since the last step, words, kind, number of the source)
Step: TypeAlias = tuple[int, str, Kind, int]
KINDS: list[Kind] = ["new", "duplicate", "related", "deleted", "tick"]
WORDS = ["harbour bridge", "election result", "ferry rescue harbour", "fund value share"]

steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.integers(0, 90), st.sampled_from(WORDS), st.sampled_from(KINDS), st.integers(0, 3)),
    max_size=120,
)


def feed_steps(detector: BurstDetector, stream: DetectorStream, given_steps: list[Step]) -> None:
    """Feed the steps to ``detector``; ``stream`` only builds the items."""
    minute = 0.0
    numbers: list[int] = []
    for gap, words, kind, source in given_steps:
        minute += gap / 4
        if kind == "tick":
            list(detector.tick(time_ms(minute)))
            continue
        item = stream.item(minute, words, source=f"s{source}")
        if kind == "deleted" and numbers:
            item = replace(item, kind="deleted", first_version=numbers[source % len(numbers)])
        elif kind in ("duplicate", "related") and numbers:
            item = replace(item, verdict=kind, matched_number=numbers[-1])
        numbers.append(item.first_version)
        detector.observe(item, item.arrived_ms)
