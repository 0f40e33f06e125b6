"""Status of the event detector for the health page, from this process or from the background process."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from aggregator.background.scheduler import Scheduler
from aggregator.http.app_keys import PEER_METRICS, SERVICE
from aggregator.http.metrics.multiprocess import BACKGROUND_PROCESS


@dataclass(frozen=True, slots=True)
class DetectorStatus:
    """Detector status since the start of its process.

    leading       whether this replica runs the detector
    last_tick_ms  time of the last completed run, 0: none
    """

    leading: bool
    last_tick_ms: int
    misfires: int
    errors: int


async def detector_status(app: web.Application) -> DetectorStatus | None:
    """Status of the detector; None if it does not run or its process does not answer."""
    background = app[SERVICE].background
    if background is not None and background.scheduler.is_running:
        return status_of_scheduler(background.scheduler)
    peers = app.get(PEER_METRICS)
    return status_from_metrics(await peers.scrape(BACKGROUND_PROCESS)) if peers is not None else None


def status_of_scheduler(scheduler: Scheduler) -> DetectorStatus:
    """Status from the scheduler of this process."""
    detector = scheduler.detector
    return DetectorStatus(detector.is_leader, detector.last_run_ms, scheduler.misfires, detector.errors)


def status_from_metrics(text: bytes) -> DetectorStatus | None:
    """Status from the exposition of another process; None if it does not contain the detector's metrics."""
    values = dict(line.rpartition(b" ")[::2] for line in text.splitlines() if not line.startswith(b"#"))
    try:
        return DetectorStatus(
            leading=float(values[b"aggregator_leader"]) > 0,
            last_tick_ms=round(1000 * float(values[b"aggregator_detector_last_run_timestamp_seconds"])),
            misfires=int(float(values[b"aggregator_scheduler_misfires_total"])),
            errors=int(float(values[b"aggregator_detector_errors_total"])),
        )
    except KeyError:
        return None
