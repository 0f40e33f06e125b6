"""``aggregator audit``: what a source caused; it is declared untrusted, or trusted again."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

import msgspec

from aggregator.app import open_service
from aggregator.errors import EXIT_OK, ConfigurationError
from aggregator.provenance.audit import audit, distrust
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator.store.factory import with_running_store_url


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print the articles of others that are copies of the source's, as JSON lines, and a summary."""
    if settings.in_memory:
        raise ConfigurationError("store: a memory store is empty; name the store of the service.")
    return run_loop(_run(args, with_running_store_url(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        index, repository = service.articles.index, service.events.repository
        if args.trust:
            await index.untrusted.change(args.source, untrusted=False)
        if args.distrust:
            found = await distrust(
                index, args.source, repository.event_ids_of, service.articles.ingest.delete
            )
        else:
            found = await audit(index, args.source, repository.event_ids_of)
        for copy in found.copies:
            print(msgspec.json.encode(asdict(copy)).decode())
        events = await repository.get_many(list(found.events))
        deleted = "deleted" if args.distrust else "stored"
        print(
            f"{args.source}: {len(found.articles)} articles {deleted}, in {len(events)} events; "
            f"{len(found.copies)} copies by others, listed above: send again what was dropped",
            file=sys.stderr,
        )
        for id_, event in events.items():
            print(
                f"  {id_}: {found.events[id_]} articles of it; now {event.size}: {event.title}",
                file=sys.stderr,
            )
        names = ", ".join(await index.untrusted.all()) or "none"
        print(f"untrusted sources, of which nothing is stored: {names}", file=sys.stderr)
    return EXIT_OK
