"""Numbers into shapes: what the drawings on the pages consist of. Pure; the templates write the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BIN_MS = 600_000
SPARKLINE_BINS = 24
MAX_BINS = 288


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar in a box of the chart's size; ``value`` and ``at_ms`` are what it stands for."""

    x: float
    y: float
    width: float
    height: float
    value: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: on the time axis ``at_ms`` counts, on the other ``value``."""

    position: float
    at_ms: int = 0
    value: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars over time, with marks for both axes."""

    width: float
    height: float
    bars: tuple[Bar, ...]
    time_ticks: tuple[Tick, ...]
    count_ticks: tuple[Tick, ...]
    largest: int
    from_ms: int
    to_ms: int
    bin_ms: int

    def x_of(self, at_ms: int) -> float | None:
        """Where a moment is on the time axis; None when it lies outside."""
        if not self.from_ms <= at_ms <= self.to_ms:
            return None
        return round(self.width * (at_ms - self.from_ms) / (self.to_ms - self.from_ms), 2)


def count_per_bin(
    timeline: Sequence[tuple[int, int]], from_ms: int, to_ms: int, bin_ms: int
) -> list[tuple[int, int]]:
    """(start, items) of every slot between two times, quiet ones too; nothing outside is counted."""
    counts = dict(timeline)
    first, last = from_ms // bin_ms, to_ms // bin_ms
    totals = dict.fromkeys(range(first, last + 1), 0)
    for at_ms, items in counts.items():
        if at_ms // bin_ms in totals:
            totals[at_ms // bin_ms] += items
    return [(slot * bin_ms, items) for slot, items in totals.items()]


def bars(values: Sequence[tuple[int, int]], width: float, height: float, gap: float = 1.0) -> tuple[Bar, ...]:
    """One bar per value, the largest as high as the box; a value above 0 can always be seen."""
    if not values:
        return ()
    step = width / len(values)
    largest = max(1, max(v for _, v in values))
    made = []
    for place, (at_ms, value) in enumerate(values):
        tall = max(1.5, height * value / largest) if value else 0.0
        made.append(
            Bar(
                round(place * step, 2),
                round(height - tall, 2),
                round(max(1.0, step - gap), 2),
                round(tall, 2),
                value,
                at_ms,
            )
        )
    return tuple(made)


def sparkline(
    timeline: Sequence[tuple[int, int]], until_ms: int, width: float, height: float
) -> tuple[Bar, ...]:
    """The last four hours before ``until_ms`` in steps of ten minutes."""
    from_ms = until_ms - (SPARKLINE_BINS - 1) * BIN_MS
    return tuple(
        b for b in bars(count_per_bin(timeline, from_ms, until_ms, BIN_MS), width, height) if b.value
    )


def timeline_chart(
    timeline: Sequence[tuple[int, int]],
    from_ms: int,
    to_ms: int,
    width: float,
    height: float,
    bin_ms: int = BIN_MS,
) -> Chart:
    """All of it; a long one in slots that are so many times wider that at most 288 are drawn."""
    while (to_ms - from_ms) // bin_ms >= MAX_BINS:
        bin_ms *= 2
    values = count_per_bin(timeline, from_ms, to_ms, bin_ms)
    largest = max((v for _, v in values), default=0)
    start_ms, end_ms = values[0][0], values[-1][0] + bin_ms
    return Chart(
        width=width,
        height=height,
        bars=tuple(b for b in bars(values, width, height, min(2.0, width / len(values) / 4)) if b.value),
        time_ticks=tuple(
            Tick(round(width * (t - start_ms) / (end_ms - start_ms), 2), at_ms=t)
            for t in _round_times(start_ms, end_ms)
        ),
        count_ticks=tuple(
            Tick(round(height - height * v / max(1, largest), 2), value=v) for v in _round_levels(largest)
        ),
        largest=largest,
        from_ms=start_ms,
        to_ms=end_ms,
        bin_ms=bin_ms,
    )


def _round_times(start_ms: int, end_ms: int) -> list[int]:
    """Round times for an axis, three to eight of them."""
    minute = 60_000
    steps = [m * minute for m in (5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080)]
    step = next((s for s in steps if (end_ms - start_ms) / s <= 8), steps[-1])
    first = -(-start_ms // step) * step
    return list(range(first, end_ms, step))


def _round_levels(largest: int) -> list[int]:
    """Round counts for an axis: at most four above zero."""
    step = next(s * 10**e for e in range(9) for s in (1, 2, 5) if largest <= 4 * s * 10**e)
    return list(range(step, largest + 1, step)) if largest else []
