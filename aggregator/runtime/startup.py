"""After start-up: print the URL of the service, and replay the demonstration if the settings ask for it."""

from __future__ import annotations

import logging

from aggregator.runtime.addresses import service_url
from aggregator.settings import Settings

DEMO_INTERVAL_S = 0.2

log = logging.getLogger("aggregator.serve")


async def announce(settings: Settings, port: int) -> None:
    """Print the URL; with ``settings.demo`` also replay the demonstration stream."""
    url = service_url(settings.host, port)
    print(f"aggregator: ready on {url}", flush=True)
    if settings.demo:
        await run_demo(url, settings.key or settings.bootstrap_key)


async def run_demo(url: str, key: str = "") -> None:
    """Replay the demonstration and print its report; a failure is logged and does not stop the service."""
    from aggregator.runtime import demo

    try:
        report = await demo.replay(url, pause_s=DEMO_INTERVAL_S, key=key)
    except Exception:
        log.exception("the demonstration failed; the service continues")
        return
    print(report.format_text(url), flush=True)
