"""``aggregator audit``: what a source caused; it is declared untrusted, or trusted again."""

from __future__ import annotations

import argparse
import sys

import msgspec

from aggregator.analysis.text.normalization import source_key
from aggregator.app import open_service
from aggregator.auth.api_keys import audit_log
from aggregator.contract.encoding import article_ref
from aggregator.errors import EXIT_OK, EXIT_PARTIAL_FAILURE
from aggregator.provenance.audit import audit
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator.store.factory import with_running_store_url


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print copies by others as JSON lines, and a summary."""
    return run_loop(_run(args, with_running_store_url(settings, creates=False)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        index, delete = service.articles.index, service.articles.ingest.delete
        untrusted = True if args.distrust else False if args.trust else None
        event_ids_of = service.events.repository.event_ids_of
        was_distrusted = source_key(args.source) in await index.untrusted.read()
        found = await audit(index, args.source, event_ids_of, delete, untrusted=untrusted)
        if untrusted is not None:
            audit_log.info("source %r untrusted=%s articles=%d", args.source, untrusted, len(found.articles))
        for copy in found.copies:
            print(msgspec.json.encode(article_ref(copy)).decode())
        events = ", ".join(f"{count} in {id_}" for id_, count in found.events.items()) or "none in an event"
        deleted, new = (" deleted", " that are new now, to be sent again") if args.distrust else ("", "")
        listed = ", ".join(sorted(await index.untrusted.read())) or "no source"
        copies = f"{len(found.copies)} copies by others{new}. Untrusted: {listed}."
        print(f"{len(found.articles)} articles{deleted} ({events}); {copies}", file=sys.stderr)
        if not found.articles and was_distrusted:
            now = "stored from now on" if args.trust else "not stored"
            print(f"It had been distrusted; its articles are {now}.", file=sys.stderr)
        elif not found.articles:
            hint = f"; did you mean {found.similar}?" if found.similar else "."
            undo = " `--trust` undoes this." if untrusted else ""
            print(f"No article of this source is stored: check the name{hint}{undo}", file=sys.stderr)
            return EXIT_OK if args.trust or args.distrust else EXIT_PARTIAL_FAILURE
    return EXIT_OK
