"""Format version of the stored data, and the start-up check that this program reads it.

One key holds the format of the data, and the program version that wrote it. Each value also has its own
format byte (``store/decoding.py``); this key makes a version that cannot read the data refuse to start,
and change nothing, instead of failing article by article.
"""

from __future__ import annotations

import contextlib

from aggregator import __version__
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.index import keys
from aggregator.store.base import Put, Store, Transaction, ValueEquals

FORMAT_KEY = b"{format}"
CURRENT_FORMAT = 8
OWN_ENTRY = Put(FORMAT_KEY, b"%d %s" % (CURRENT_FORMAT, __version__.encode()))


async def check(store: Store) -> None:
    """Raise ConfigurationError if the data has a format that this version does not read; changes nothing."""
    await _read_checked(store)


async def write(store: Store) -> None:
    """``check``, then store this version's format; a read-only store gets it at the next start."""
    raw = await _read_checked(store)
    if raw is None:
        with contextlib.suppress(StoreUnavailable):
            await store.commit(Transaction((ValueEquals(FORMAT_KEY, raw),), (OWN_ENTRY,)))


async def _read_checked(store: Store) -> bytes | None:
    raw = (await store.read([FORMAT_KEY]))[0]
    if raw is not None:
        _check_format(raw)
        return raw
    async for found in store.scan_batches(keys.RECORD_PREFIX):
        if found:
            raise ConfigurationError(
                "store_url: the store holds articles without the format of its data, as an interrupted "
                "restore leaves them; run `aggregator restore BACKUP --replace`, or use another store."
            )
    return None


def _check_format(raw: bytes) -> None:
    number, _, writer = raw.decode("ascii", "replace").partition(" ")
    if not number.isdigit():
        raise ConfigurationError(
            f"store_url: the key {FORMAT_KEY.decode()} belongs to another program; "
            "give the service a separate store."
        )
    found = int(number)
    problem = (
        f"store_url: the data is of format {found}, written by version {writer or 'unknown'}; this version "
        f"({__version__}) reads {CURRENT_FORMAT}."
    )
    if found > CURRENT_FORMAT:
        raise ConfigurationError(f"{problem} Start that version again, or restore a backup from before it.")
    if found < CURRENT_FORMAT:
        raise ConfigurationError(
            f"{problem} Keep that version running, or give this one an empty store and fill it again with "
            "`aggregator ingest`."
        )
