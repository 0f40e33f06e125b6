"""Which format is the store's data of, and may this version touch it?

One key says it for the whole store: the highest format that was written into it, and by which version. Each record
also carries a byte of its own (``records.py``), so formats that are still read may stand side by side, and records
move on as their articles come again or expire. The stamp is for the other direction: a version that would meet
records it cannot read refuses at its start, and changes nothing, instead of failing article by article.

    format 1    data without a stamp
    format 2    samples of two bytes a hash, outcomes without field names (records); stamped
    format 3    entries and records without what their key says (``entries.py``, ``records.py``), samples of 12
                bits a hash; earlier ones are refused
"""

from __future__ import annotations

import contextlib

from aggregator import __version__
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.index import keys
from aggregator.store.base import Put, Store, Transaction, ValueEquals

FORMAT_KEY = b"{format}"
CURRENT_FORMAT = 3
OLDEST_READABLE_FORMAT = 3
_READABLE_FORMATS = (
    f"{OLDEST_READABLE_FORMAT} to {CURRENT_FORMAT}"
    if OLDEST_READABLE_FORMAT < CURRENT_FORMAT
    else f"{CURRENT_FORMAT}"
)


async def check(store: Store) -> None:
    """Raises ConfigurationError when the data is of a format that this version does not read; changes nothing."""
    await _read_checked(store)


async def write(store: Store) -> None:
    """``check``, then note that this version's format is written from now on.

    A store that takes no writes just now is stamped at the next start.
    """
    raw = await _read_checked(store)
    if raw is None or _check_format(raw) < CURRENT_FORMAT:
        own = b"%d %s" % (CURRENT_FORMAT, __version__.encode())
        with contextlib.suppress(StoreUnavailable):
            await store.commit(Transaction((ValueEquals(FORMAT_KEY, raw),), (Put(FORMAT_KEY, own),)))


async def _read_checked(store: Store) -> bytes | None:
    """The stamp, of a format that this version reads; None where nothing of ours is stored yet."""
    raw = (await store.read([FORMAT_KEY]))[0]
    if raw is not None:
        _check_format(raw)
        return raw
    async for found in store.scan_batches(keys.RECORD_PREFIX):
        if found:
            _check_format(b"1")
    return None


def _check_format(raw: bytes) -> int:
    """The format in the stamp, when it is one that this version reads."""
    number, _, writer = raw.decode("ascii", "replace").partition(" ")
    if not number.isdigit():
        raise ConfigurationError(
            f"store_url: the key {FORMAT_KEY.decode()} is not ours; give the service a store of its own."
        )
    found = int(number)
    if found > CURRENT_FORMAT:
        raise ConfigurationError(
            f"store_url: the data is of format {found}, written by version {writer or 'unknown'}; this version "
            f"({__version__}) reads {_READABLE_FORMATS}. Start that version again, or restore a backup from before it."
        )
    if found < OLDEST_READABLE_FORMAT:
        raise ConfigurationError(
            f"store_url: the data is of format {found}, written by version {writer or 'unknown'}; this version "
            f"({__version__}) reads {_READABLE_FORMATS}. Keep that version running, or give this one an empty store and fill it "
            "again with `aggregator ingest`."
        )
    return found
