"""Totals over all processes of a service since their start, from the Prometheus exposition. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'\b(\w+)="((?:[^"\\]|\\.)*)"')


class Totals:
    """Samples of an exposition in Prometheus text format; unknown series are 0."""

    def __init__(self, exposition: bytes) -> None:
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for line in exposition.decode("utf-8", "replace").splitlines():
            found = _SAMPLE.match(line)
            if found is not None:
                labels = dict(_LABEL.findall(found["labels"] or ""))
                self._samples.setdefault(found["name"], []).append((labels, float(found["value"])))

    def sum(self, name: str) -> int:
        """Sum of all series of a metric."""
        return round(sum(value for _, value in self._of(name)))

    def by_label(self, name: str, label: str) -> dict[str, int]:
        """Sums by the value of a label, without zeros, in order of the value."""
        found: dict[str, float] = {}
        for labels, value in self._of(name):
            if value:
                key = labels.get(label, "")
                found[key] = found.get(key, 0.0) + value
        return {key: round(found[key]) for key in sorted(found)}

    def least(self, name: str) -> float | None:
        """The smallest value of a metric; None without one."""
        return min((value for _, value in self._of(name)), default=None)

    def _of(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        return iter(self._samples.get(name, ()))
