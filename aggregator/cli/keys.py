"""``aggregator keys``: who may use the service. Works on the store itself, beside a running service or without one."""

from __future__ import annotations

import argparse
import sys

from aggregator.auth.api_keys import ApiKey, ApiKeys
from aggregator.background.wiring import wall_clock_ms
from aggregator.cli.doctor import with_running_store_url
from aggregator.cli.doctor_contents import format_utc_minute
from aggregator.errors import ConfigurationError
from aggregator.index import format_version
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings
from aggregator.store.factory import open_store


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Carry out one change, or list. A new key is printed once and cannot be shown again."""
    if settings.in_memory:
        raise ConfigurationError(
            "store: keys in memory are forgotten at once; name the store of the service."
        )
    return run_loop(_run(args, with_running_store_url(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_store(settings, format_version.write) as store:
        access = ApiKeys(store, wall_clock_ms)
        if args.change == "list":
            keys = await access.list_keys()
            for key in keys:
                print(_format_key(key, wall_clock_ms()))
            if not keys:
                print("No keys; `aggregator keys add NAME --role ROLE` makes one.", file=sys.stderr)
        elif args.change == "revoke":
            await access.revoke(args.id)
            print(f"{args.id} is revoked; running services follow within two seconds.")
        else:
            print(await _create_key(args, access))
    return EXIT_OK


async def _create_key(args: argparse.Namespace, api_keys: ApiKeys) -> str:
    if args.change == "rotate":
        return (await api_keys.rotate(args.id, args.overlap))[1]
    expires_ms = None if args.expires is None else wall_clock_ms() + args.expires
    return (await api_keys.add(args.name, args.role, expires_ms=expires_ms, sources=tuple(args.source)))[1]


def _format_key(key: ApiKey, now_ms: int) -> str:
    until = "for ever"
    if key.expires_ms is not None:
        until = f"{'until' if key.is_active(now_ms) else 'expired'} {format_utc_minute(key.expires_ms)}"
    only = f"  only {', '.join(key.sources)}" if key.sources else ""
    return f"{key.id}  {key.role:7}  {until}  {key.name}{only}"
