"""Encoding of transactions as arguments of ``lua/commit.lua``, and parsing of replies. Pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import msgspec

from aggregator.store.base import (
    AdvanceVersion,
    Append,
    AppendCapped,
    AppendMany,
    Check,
    Delete,
    LengthEquals,
    LengthsUnchanged,
    Put,
    Transaction,
)

Command = tuple[Any, ...]

COMMIT_SCRIPT: Final = files("aggregator.store").joinpath("lua/commit.lua").read_bytes()
COMMIT_SCRIPT_SHA1: Final = hashlib.sha1(COMMIT_SCRIPT, usedforsecurity=False).hexdigest()

_ABSENT, _EQUALS_VALUE = -1, -2  # in the ``want`` list of the script
_APPEND, _PUT, _DELETE, _STREAM_ADD, _APPEND_CAPPED, _ADVANCE_VERSION = 1, 2, 3, 4, 5, 6  # in its ``steps``
_MULTI_KEY_WRITES: Final = (AppendMany, AppendCapped)
_GLOB_SPECIAL_BYTES: Final = b"\\*?[]^-"


def encode_transaction(transaction: Transaction) -> Command:
    """(number of keys, keys..., plan, values...) for commit.lua, whose head comment specifies the plan."""
    keys: list[bytes] = []
    values: list[bytes] = []
    want: list[int] = []
    steps: list[int] = []
    guard = transaction.version_guard
    for check in transaction.checks if guard is None else (guard, *transaction.checks):
        if isinstance(check, LengthsUnchanged):
            keys += check.keys
            want += check.lengths
            continue
        keys.append(check.key)
        if isinstance(check, LengthEquals):
            want.append(check.length)
        elif check.value is None:
            want.append(_ABSENT)
        else:
            want.append(_EQUALS_VALUE)
            values.append(check.value)
    for write in transaction.writes:
        if isinstance(write, _MULTI_KEY_WRITES):
            keys += write.keys
            values += write.values
            step = (
                (_APPEND, write.max_bytes)
                if isinstance(write, AppendMany)
                else (_APPEND_CAPPED, write.keep_bytes)
            )
            steps += step * len(write.keys)
            continue
        keys.append(write.key)
        if isinstance(write, Append):
            steps += (_APPEND, 0)
            values.append(write.value)
        elif isinstance(write, Put):
            steps += (_PUT, 0 if write.ttl_ms is None else max(1, write.ttl_ms))
            values.append(write.value)
        elif isinstance(write, Delete):
            steps += (_DELETE, 0)
        elif isinstance(write, AdvanceVersion):
            steps += (_ADVANCE_VERSION, 0)
            values.append(write.token)
        else:
            steps += (_STREAM_ADD, 0)
            values.append(write.payload)
    plan = msgspec.msgpack.encode((want, steps, guard is not None))
    return (len(keys), *keys, plan, *values)


def first_key(command: Command) -> bytes:
    """The first key of a command."""
    key: bytes = command[3 if command[0] in ("EVAL", "EVALSHA") else 1]
    return key


def set_command(item: Put) -> Command:
    """The SET command of ``item``."""
    lifetime = () if item.ttl_ms is None else ("PX", max(1, item.ttl_ms))
    return ("SET", item.key, item.value, *lifetime)


def parse_stream_entries(answer: Any) -> list[tuple[bytes, bytes]]:
    """A reply of XRANGE or XREVRANGE as (position, payload) pairs; an entry has one field, ``p``."""
    # Fields are a dictionary from redis-py's cluster client, a flat list from ``pipelining``.
    return [
        (position, fields[b"p"] if isinstance(fields, dict) else fields[1])
        for position, fields in answer or ()
    ]


def failed_checks(key_numbers: Sequence[int], checks: Sequence[Check]) -> tuple[int, ...]:
    """The reply of the script as indices of checks; the script numbers keys from 1."""
    if not key_numbers:
        return ()
    checked = [
        i
        for i, check in enumerate(checks)
        for _ in range(len(check.keys) if isinstance(check, LengthsUnchanged) else 1)
    ]
    return tuple(dict.fromkeys(checked[number - 1] for number in key_numbers))


def prefix_pattern(prefix: bytes) -> bytes:
    """A glob pattern for SCAN that matches ``prefix`` literally."""
    return b"".join(b"\\" + bytes([c]) if c in _GLOB_SPECIAL_BYTES else bytes([c]) for c in prefix) + b"*"


def decode_text(value: bytes | str) -> str:
    """A reply that is a name or a number, not data, as text."""
    return value.decode() if isinstance(value, bytes) else value
