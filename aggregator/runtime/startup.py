"""What follows when requests are answered: the line with the address, then the demonstration if it is wanted."""

from __future__ import annotations

import logging

from aggregator.runtime.addresses import service_url
from aggregator.settings import Settings

DEMO_INTERVAL_S = 0.2

log = logging.getLogger("aggregator.serve")


async def announce(settings: Settings, port: int) -> None:
    """Print where the service is, and show the demonstration if the settings say so."""
    url = service_url(settings.host, port)
    print(f"aggregator: ready on {url}", flush=True)
    if settings.demo:
        await run_demo(url, settings.key or settings.bootstrap_key)


async def run_demo(url: str, key: str = "") -> None:
    """Replay the demonstration and print what came of it; its failure does not end the service."""
    from aggregator.runtime import demo

    try:
        report = await demo.replay(url, pause_s=DEMO_INTERVAL_S, key=key)
    except Exception:
        log.exception("the demonstration failed; the service goes on")
        return
    print(report.format_text(url), flush=True)
