"""``aggregator keys``: manage API keys in the store, with or without a running service."""

from __future__ import annotations

import argparse
import sys

from aggregator.auth.api_keys import ApiKey, ApiKeys
from aggregator.errors import EXIT_OK
from aggregator.index.upkeep import format_version
from aggregator.runtime.addresses import describe_store, with_options
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator.store.factory import open_store, with_running_store_url
from aggregator.time_units import format_minute, wall_clock_ms

HEADER = ("id", "role", "created", "last used", "expires", "name", "sources")
FIRST_KEY_NOTICE = (
    "This is the first key of {store}: from now on every caller needs a key, of running services too. Sign "
    "in with it, and create others with `aggregator keys add NAME --role ROLE`; commands read AGGREGATOR_KEY."
)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Add, list, revoke or rotate keys. A new key is printed once and cannot be shown again."""
    return run_loop(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    located = with_running_store_url(settings, creates=args.change == "add")
    async with open_store(located, format_version.write) as store:
        api_keys = ApiKeys(store, wall_clock_ms, bootstrap=settings.bootstrap_key)
        if args.change == "list":
            await _list_keys(api_keys, settings)
        elif args.change == "revoke":
            await api_keys.revoke(args.id, keep_admin=True)
            print(f"{args.id} is revoked; running services reject it within 2 s.")
        else:
            print(await _create_key(args, api_keys, settings))
    return EXIT_OK


async def _create_key(args: argparse.Namespace, api_keys: ApiKeys, settings: Settings) -> str:
    if args.change == "rotate":
        return (await api_keys.rotate(args.id, args.overlap))[1]
    expires_ms = None if args.expires is None else wall_clock_ms() + args.expires
    is_first = not settings.bootstrap_key and not await api_keys.list_keys()
    _, text = await api_keys.add(
        args.name, args.role, expires_ms=expires_ms, sources=tuple(args.source), keep_admin=True
    )
    if is_first:
        notice = FIRST_KEY_NOTICE.format(store=describe_store(settings))
        print(with_options(notice, settings), file=sys.stderr)
    return text


async def _list_keys(api_keys: ApiKeys, settings: Settings) -> None:
    keys = await api_keys.list_keys()
    if not keys:
        hint = "No keys; create one with `aggregator keys add NAME --role admin`."
        print(with_options(hint, settings), file=sys.stderr)
        return
    used = await api_keys.last_use.read([key.id for key in keys])
    rows = [_row(key, used_ms, wall_clock_ms()) for key, used_ms in zip(keys, used, strict=True)]
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    for row in (HEADER, *rows):
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(key: ApiKey, used_ms: int | None, now_ms: int) -> tuple[str, ...]:
    expiry = "never"
    if key.expires_ms is not None:
        expiry = f"{'' if key.is_active(now_ms) else 'expired '}{format_minute(key.expires_ms)}"
    used = "never" if used_ms is None else format_minute(used_ms)
    sources = ", ".join(key.sources) if key.sources else "all"
    return key.id, key.role, format_minute(key.created_ms), used, expiry, key.name, sources
