"""Which format is the store's data of, and may this version touch it?

One key says it for the whole store: the highest format that was written into it, and by which version. Each record
also carries a byte of its own (``records.py``), so formats that are still read may stand side by side, and records
move on as their articles come again or expire. The stamp is for the other direction: a version that would meet
records it cannot read refuses at its start, and changes nothing, instead of failing article by article.

    format 1    data without a stamp
    format 2    samples of two bytes a hash, outcomes without field names (records); stamped
"""

from __future__ import annotations

import contextlib

from aggregator import __version__
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.base import Equals, Put, Store, Transaction

KEY = b"{format}"
WRITES = 2
READS_FROM = 1


async def check(store: Store) -> None:
    """Raises ConfigurationError when the data is of a format that this version does not read; changes nothing."""
    _judge((await store.read([KEY]))[0])


async def claim(store: Store) -> None:
    """``check``, then note that this version's format is written from now on.

    A store that takes no writes just now is stamped at the next start.
    """
    raw = (await store.read([KEY]))[0]
    if _judge(raw) < WRITES or raw is None:
        own = b"%d %s" % (WRITES, __version__.encode())
        with contextlib.suppress(StoreUnavailable):
            await store.commit(Transaction((Equals(KEY, raw),), (Put(KEY, own),)))


def _judge(raw: bytes | None) -> int:
    """The format in the stamp, when it is one that this version reads."""
    if raw is None:
        return 1
    number, _, writer = raw.decode("ascii", "replace").partition(" ")
    if not number.isdigit():
        raise ConfigurationError(
            f"store_url: the key {KEY.decode()} is not ours; give the service a store of its own."
        )
    found = int(number)
    if found > WRITES:
        raise ConfigurationError(
            f"store_url: the data is of format {found}, written by version {writer or 'unknown'}; this version "
            f"({__version__}) reads {READS_FROM} to {WRITES}. Start that version again, or restore a backup from before it."
        )
    if found < READS_FROM:
        raise ConfigurationError(
            f"store_url: the data is of format {found}, written by version {writer or 'unknown'}; this version "
            f"({__version__}) reads from {READS_FROM} on. Start a version in between first, or begin with an empty store."
        )
    return found
