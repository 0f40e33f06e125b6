"""Format version of the stored data, and the start-up check that this program reads it.

One key holds the highest format that was ever written into the store, and the program version that wrote it.
Each value also has its own format byte (``codec/format_byte.py``), so formats that are still readable
can coexist, and records are converted as their articles are posted again or expire. This key is for the
opposite direction: a version that would meet records it cannot read refuses to start, and changes nothing,
instead of failing article by article.

    format 1    no format key
    format 2    sketch hashes in 2 bytes, outcomes without field names; first format with a format key
    format 3    postings and records without what their key says, sketch hashes in 12 bits; earlier formats
                are refused
    format 4    records and bindings end with a checksum; those of format 3 are read as they are
    format 5    the sketch buckets of a segment may be named by more than 18 bits; segments of formats 3 and 4
                are read as they are
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
CURRENT_FORMAT = 5
OLDEST_READABLE_FORMAT = 3
_READABLE_FORMATS = (
    f"{OLDEST_READABLE_FORMAT} to {CURRENT_FORMAT}"
    if OLDEST_READABLE_FORMAT < CURRENT_FORMAT
    else f"{CURRENT_FORMAT}"
)


async def check(store: Store) -> None:
    """Raise ConfigurationError if the data has a format that this version does not read; changes nothing."""
    await _read_checked(store)


async def write(store: Store) -> None:
    """``check``, then store this version's format.

    A store that is read-only now gets it at the next start.
    """
    raw = await _read_checked(store)
    if raw is None or _check_format(raw) < CURRENT_FORMAT:
        own = b"%d %s" % (CURRENT_FORMAT, __version__.encode())
        with contextlib.suppress(StoreUnavailable):
            await store.commit(Transaction((ValueEquals(FORMAT_KEY, raw),), (Put(FORMAT_KEY, own),)))


async def _read_checked(store: Store) -> bytes | None:
    """The format key, checked; None if the store holds no article data yet."""
    raw = (await store.read([FORMAT_KEY]))[0]
    if raw is not None:
        _check_format(raw)
        return raw
    async for found in store.scan_batches(keys.RECORD_PREFIX):
        if found:
            _check_format(b"1")
    return None


def _check_format(raw: bytes) -> int:
    """The format in the format key. Raises ConfigurationError if this version does not read it."""
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
        f"({__version__}) reads {_READABLE_FORMATS}."
    )
    if found > CURRENT_FORMAT:
        raise ConfigurationError(f"{problem} Start that version again, or restore a backup from before it.")
    if found < OLDEST_READABLE_FORMAT:
        raise ConfigurationError(
            f"{problem} Keep that version running, or give this one an empty store and fill it again with "
            "`aggregator ingest`."
        )
    return found
