"""After start-up: print the URL of the service, and replay the demonstration if the settings ask for it."""

from __future__ import annotations

import asyncio
import dataclasses
import http.client
import logging
from http import HTTPStatus
from urllib.parse import urlsplit

from aggregator.runtime.addresses import command, service_url
from aggregator.settings import Settings

DEMO_INTERVAL_S = 0.2
READINESS_TIMEOUT_S = 5.0

log = logging.getLogger("aggregator.serve")


async def announce(settings: Settings, port: int) -> None:
    """Print the URL and whether the service is ready; with ``settings.demo``, replay the demonstration."""
    url = service_url(settings.host, port)
    state = "ready" if await asyncio.to_thread(_is_ready, url) else "not ready"
    print(f"aggregator: {state} on {url}", flush=True)
    bound = dataclasses.replace(settings, port=port)
    print(f"aggregator: next: {next_step(bound, url, state)}", flush=True)
    if settings.demo:
        await run_demo(url, settings.key or settings.bootstrap_key)


def next_step(settings: Settings, url: str, state: str) -> str:
    """What a newcomer should do now, in one line."""
    doctor = command("doctor", settings)
    if state != "ready":
        return f"{doctor} names what is wrong"
    if settings.demo:
        return f"open {url}/ in a browser; news arrives for some seconds"
    return f"open {url}/, which shows how to send the first article; {doctor} checks the rest"


def _is_ready(url: str) -> bool:
    """Whether ``/readyz`` answers 200; the log says why it does not. True if nothing answers in time."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=READINESS_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return True
    finally:
        connection.close()


async def run_demo(url: str, key: str = "") -> None:
    """Replay the demonstration and print its report; a failure is logged and does not stop the service."""
    from aggregator.runtime import demo
    from aggregator.runtime.demo.history import live_rows

    try:
        rows = live_rows() if await demo.has_events(url, key) else None
        report = await demo.replay(url, pause_s=DEMO_INTERVAL_S, rows=rows, key=key)
    except Exception:
        log.exception("the demonstration failed; the service continues")
        return
    print(report.format_text(url), flush=True)
