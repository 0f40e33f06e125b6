"""Result of one chaos run: faults, recovery times, and violations of the invariants."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.resources import LARGEST

# Figures that are no violation.
SPLIT_TOPICS = "topics reported by a clock off by days, without an event"
WHILE_READY = "refusals while ready"  # with ``replicated`` expected: only a write shows what replicas confirm
INFORMATIVE = ("acknowledged", "refusals", "topics", "articles read again", SPLIT_TOPICS, LARGEST)


@dataclass(slots=True)
class ChaosReport:
    """Result of one run.

    before   kind -> articles acknowledged within 1 s before each of its faults
    seconds  kind -> time from the end of each fault until the deployment was ready again
    gaps     kind -> longest time without an acknowledgement from the start of each fault on
    left_out kind -> why it could not be injected here
    """

    setting: str
    before: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    gaps: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    figures: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)

    @property
    def failures(self) -> dict[str, int]:
        """Figures that should be zero and are not."""
        expected = {*INFORMATIVE, *((WHILE_READY,) if self.setting.endswith("replicated") else ())}
        return {name: count for name, count in self.figures.items() if count and name not in expected}

    def lines(self) -> list[str]:
        """Human-readable summary."""
        lines = [f"{self.setting}: {sum(map(len, self.before.values()))} faults"]
        for kind, counts in self.before.items():
            recovery_s, gap_s = statistics.median(self.seconds[kind]), max(self.gaps[kind], default=0.0)
            lines.append(
                f"  {kind:22} {len(counts):3} times, acknowledged within 1 s before: least {min(counts)}, "
                f"median {statistics.median(counts):g}; ready again after {recovery_s:.1f} s (median), "
                f"{max(self.seconds[kind]):.1f} s (most); no answer for {gap_s:.1f} s"
            )
        lines += [f"  {kind:22} left out: {reason}" for kind, reason in self.left_out.items()]
        lines += [f"  {name}: {count}" for name, count in self.figures.items()]
        return lines + [f"  ! {detail}" for detail in self.details]

    def as_dict(self) -> dict[str, Any]:
        """What ``--json`` writes."""
        return {
            "setting": self.setting,
            "before": dict(self.before),
            "seconds": dict(self.seconds),
            "gaps": dict(self.gaps),
            "left_out": self.left_out,
            "details": self.details,
            "figures": self.figures,
        }
