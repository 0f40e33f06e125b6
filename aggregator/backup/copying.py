"""Copies keys from one server to another, or to a cluster: strings with their times to live, and streams.

Values are read and written as they are, so the two may be of different versions. A key that exists already is
replaced. Both must be unused by other programs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aggregator.store.client import RedisClient, open_client

_KEYS_PER_SCAN = 1000
_ENTRIES_PER_READ = 1000
_STREAMS, _STRINGS = b"stream", b"string"

# Called with the number of keys that were copied so far.
OnProgress = Callable[[int], None]


async def copy_keys(
    source_url: str, target_url: str, select: Callable[[bytes], bool], on_progress: OnProgress
) -> int:
    """Copy the strings and streams that ``select`` accepts; their number. Raises StoreUnavailable.

    The source must be a single server. Keys of other types are left out: the index has none.
    """
    source, target = open_client(source_url), open_client(target_url)
    copied = 0
    try:
        for kind, copy in ((_STREAMS, _copy_streams), (_STRINGS, _copy_strings)):
            cursor: Any = 0
            while True:
                scan = ("SCAN", cursor, "COUNT", _KEYS_PER_SCAN, "TYPE", kind)
                ((cursor, keys),) = await source.send([scan])
                chosen = [key for key in keys if select(key)]
                await copy(source, target, chosen)
                copied += len(chosen)
                on_progress(copied)
                if int(cursor) == 0:
                    break
    finally:
        await source.close()
        await target.close()
    return copied


async def _copy_strings(source: RedisClient, target: RedisClient, keys: Sequence[bytes]) -> None:
    if not keys:
        return
    values, *lifetimes = await source.send([("MGET", *keys), *(("PTTL", key) for key in keys)])
    commands: list[tuple[Any, ...]] = []
    for key, value, lifetime_ms in zip(keys, values, lifetimes, strict=True):
        if value is not None and lifetime_ms != -2:  # expired since it was scanned
            lifetime = ("PX", max(1, lifetime_ms)) if lifetime_ms >= 0 else ()
            commands.append(("SET", key, value, *lifetime))
    await target.send(commands)


async def _copy_streams(source: RedisClient, target: RedisClient, keys: Sequence[bytes]) -> None:
    for key in keys:
        (report,) = await source.send([("XINFO", "STREAM", key)])
        last = dict(zip(report[::2], report[1::2], strict=True))[b"last-generated-id"]
        await target.send([("DEL", key)])
        after = b"-"
        while True:
            (entries,) = await source.send([("XRANGE", key, after, b"+", b"COUNT", _ENTRIES_PER_READ)])
            if not entries:
                break
            await target.send([("XADD", key, position, *pairs) for position, pairs in entries])
            after = b"(" + entries[-1][0]
        # Also for a stream without entries: positions of later entries must not repeat earlier ones.
        if after != b"-":
            await target.send([("XSETID", key, last)])
        elif last != b"0-0":
            await target.send([("XADD", key, "MAXLEN", 0, last, b"-", b"-")])
