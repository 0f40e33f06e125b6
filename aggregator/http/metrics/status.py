"""What the health page reads of the metrics: totals over all processes, and the status of the detector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web

from aggregator.http.app_keys import PEER_METRICS, SERVICE
from aggregator.http.metrics.multiprocess import BACKGROUND_PROCESS

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


@dataclass(frozen=True, slots=True)
class DetectorStatus:
    """Detector status since the start of its process."""

    leading: bool  # this replica runs the detector
    last_tick_ms: int  # time of the last completed run, 0: none
    misfires: int
    errors: int


async def detector_status(app: web.Application) -> DetectorStatus | None:
    """Status of the detector; None if it does not run or its process does not answer."""
    background = app[SERVICE].background
    if background.scheduler.is_running:
        scheduler, detector = background.scheduler, background.scheduler.detector
        return DetectorStatus(detector.is_leader, detector.last_run_ms, scheduler.misfires, detector.errors)
    peers = app.get(PEER_METRICS)
    return status_from_metrics(await peers.scrape(BACKGROUND_PROCESS)) if peers is not None else None


def status_from_metrics(text: bytes) -> DetectorStatus | None:
    """Status from the exposition of another process; None if it does not contain the detector's metrics."""
    totals = Totals(text)
    last_run_s = totals.least("aggregator_detector_last_run_timestamp_seconds")
    if last_run_s is None:
        return None
    return DetectorStatus(
        leading=totals.sum("aggregator_leader") > 0,
        last_tick_ms=round(1000 * last_run_s),
        misfires=totals.sum("aggregator_scheduler_misfires_total"),
        errors=totals.sum("aggregator_detector_errors_total"),
    )
