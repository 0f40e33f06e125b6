"""How the event detector fares, for people: in this process, or in the one of the scheduled work."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from aggregator.background.scheduler import Jobs
from aggregator.http.app_keys import SERVICE, SIBLINGS
from aggregator.http.metrics.multiprocess import SCHEDULER


@dataclass(frozen=True, slots=True)
class Detector:
    """``leading``: no other replica does. ``last_tick_ms``: 0 for never. Counts are since the start of its process."""

    leading: bool
    last_tick_ms: int
    misfires: int
    errors: int


async def detector(app: web.Application) -> Detector | None:
    """As it says itself; None where it does not run, or does not answer."""
    scheduled = app[SERVICE].scheduled
    if scheduled is not None and scheduled.jobs.running:
        return of_jobs(scheduled.jobs)
    siblings = app.get(SIBLINGS)
    return of_exposition(await siblings.ask(SCHEDULER)) if siblings is not None else None


def of_jobs(jobs: Jobs) -> Detector:
    """Of this process."""
    return Detector(jobs.leading, jobs.last_tick_ms, jobs.misfires, jobs.errors)


def of_exposition(text: bytes) -> Detector | None:
    """Of a process that told its metrics; None when it told nothing."""
    found = dict(line.rpartition(b" ")[::2] for line in text.splitlines() if not line.startswith(b"#"))
    try:
        return Detector(
            leading=float(found[b"aggregator_leader"]) > 0,
            last_tick_ms=round(1000 * float(found[b"aggregator_detector_last_tick_seconds"])),
            misfires=int(float(found[b"aggregator_scheduler_misfires_total"])),
            errors=int(float(found[b"aggregator_detector_errors_total"])),
        )
    except KeyError:
        return None
