"""``aggregator keys``: who may use the service. Works on the store itself, beside a running service or without one."""

from __future__ import annotations

import argparse
import sys

from aggregator.auth.api_keys import Access, AccessKey
from aggregator.background.wiring import wall_clock_ms
from aggregator.cli.doctor import reachable
from aggregator.cli.doctor_contents import day
from aggregator.errors import ConfigurationError
from aggregator.index import format_version
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import OK
from aggregator.settings import Settings
from aggregator.store.factory import opened_store


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Carry out one change, or list. A new key is printed once and cannot be shown again."""
    if settings.in_memory:
        raise ConfigurationError(
            "store: keys in memory are forgotten at once; name the store of the service."
        )
    return run_loop(_run(args, reachable(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with opened_store(settings, format_version.claim) as store:
        access = Access(store, wall_clock_ms)
        if args.change == "list":
            keys = await access.list()
            for key in keys:
                print(_line(key, wall_clock_ms()))
            if not keys:
                print("No keys; `aggregator keys add NAME --role ROLE` makes one.", file=sys.stderr)
        elif args.change == "revoke":
            await access.revoke(args.id)
            print(f"{args.id} is revoked; running services follow within two seconds.")
        else:
            print(await _made(args, access))
    return OK


async def _made(args: argparse.Namespace, access: Access) -> str:
    if args.change == "rotate":
        return (await access.rotate(args.id, args.overlap))[1]
    expires_ms = None if args.expires is None else wall_clock_ms() + args.expires
    return (await access.add(args.name, args.role, expires_ms=expires_ms, sources=tuple(args.source)))[1]


def _line(key: AccessKey, now_ms: int) -> str:
    until = "for ever"
    if key.expires_ms is not None:
        until = f"{'until' if key.lives(now_ms) else 'expired'} {day(key.expires_ms)}"
    only = f"  only {', '.join(key.sources)}" if key.sources else ""
    return f"{key.id}  {key.role:7}  {until}  {key.name}{only}"
