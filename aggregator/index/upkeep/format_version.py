"""Format version of the stored data, and the start-up check that this program reads it.

One key holds the format of the data, and the program version that wrote it. Each value also has its own
format byte (``store/decoding.py``); this key makes a version that cannot read the data refuse to start,
and change nothing, instead of failing article by article. Data without the key is of format 1.
"""

from __future__ import annotations

import contextlib

from aggregator import __version__
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.index import keys
from aggregator.store.base import Put, Store, Transaction, ValueEquals

FORMAT_KEY = b"{format}"
# Value of the key while a backup is copied into the store, followed by the name of the backup.
RESTORE_MARK = b"restore "
CURRENT_FORMAT = 6


async def check(store: Store) -> None:
    """Raise ConfigurationError if the data has a format that this version does not read; changes nothing."""
    await _read_checked(store)


async def write(store: Store) -> None:
    """``check``, then store this version's format; a read-only store gets it at the next start."""
    raw = await _read_checked(store)
    if raw is None:
        own = b"%d %s" % (CURRENT_FORMAT, __version__.encode())
        with contextlib.suppress(StoreUnavailable):
            await store.commit(Transaction((ValueEquals(FORMAT_KEY, raw),), (Put(FORMAT_KEY, own),)))


async def _read_checked(store: Store) -> bytes | None:
    raw = (await store.read([FORMAT_KEY]))[0]
    if raw is not None:
        _check_format(raw)
        return raw
    async for found in store.scan_batches(keys.RECORD_PREFIX):
        if found:
            _check_format(b"1")
    return None


def _check_format(raw: bytes) -> None:
    if raw.startswith(RESTORE_MARK):
        raise ConfigurationError(
            f"store_url: the restore of {raw.removeprefix(RESTORE_MARK).decode(errors='replace')} into this "
            "store was interrupted; run `aggregator restore` with the same backup and store again."
        )
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
