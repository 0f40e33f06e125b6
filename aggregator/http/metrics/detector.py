"""How the event detector fares, for people: in this process, or in the one of the scheduled work."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from aggregator.background.scheduler import Scheduler
from aggregator.http.app_keys import PEER_METRICS, SERVICE
from aggregator.http.metrics.multiprocess import BACKGROUND_PROCESS


@dataclass(frozen=True, slots=True)
class DetectorStatus:
    """``leading``: no other replica does. ``last_tick_ms``: 0 for never. Counts are since the start of its process."""

    leading: bool
    last_tick_ms: int
    misfires: int
    errors: int


async def detector_status(app: web.Application) -> DetectorStatus | None:
    """As it says itself; None where it does not run, or does not answer."""
    scheduled = app[SERVICE].background
    if scheduled is not None and scheduled.scheduler.is_running:
        return status_of_scheduler(scheduled.scheduler)
    siblings = app.get(PEER_METRICS)
    return status_from_metrics(await siblings.scrape(BACKGROUND_PROCESS)) if siblings is not None else None


def status_of_scheduler(scheduler: Scheduler) -> DetectorStatus:
    """Of this process."""
    return DetectorStatus(scheduler.is_leader, scheduler.last_tick_ms, scheduler.misfires, scheduler.errors)


def status_from_metrics(text: bytes) -> DetectorStatus | None:
    """Of a process that told its metrics; None when it told nothing."""
    found = dict(line.rpartition(b" ")[::2] for line in text.splitlines() if not line.startswith(b"#"))
    try:
        return DetectorStatus(
            leading=float(found[b"aggregator_leader"]) > 0,
            last_tick_ms=round(1000 * float(found[b"aggregator_detector_last_run_seconds"])),
            misfires=int(float(found[b"aggregator_scheduler_misfires_total"])),
            errors=int(float(found[b"aggregator_detector_errors_total"])),
        )
    except KeyError:
        return None
