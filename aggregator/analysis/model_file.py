"""Model file format: a header, plain arrays and a checksum. Unlike a pickle it cannot contain code.

    bytes     what (integers little-endian)
    8         magic "AGGMODEL"
    2         format version, uint16
    4         length h of the header, uint32
    h         header, MessagePack: {"fields": {...}, "arrays": [[name, dtype, shape], ...]}
    ...       the arrays in that order, C order, little-endian, without padding
    32        SHA-256 of all bytes before it

Every invalid file raises a ModelError that names the file and the remedy. The lab writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.errors import ModelError

FORMAT_VERSION = 1
MAGIC = b"AGGMODEL"
PREFIX = struct.Struct("<8sHI")
_CHECKSUM_BYTES = 32
_TRUNCATED, _CORRUPT = "truncated", "damaged, its checksum does not match"
ALLOWED_DTYPES = frozenset({"|u1", "<u2", "<u4", "<f2", "<f4", "<f8"})

Arrays = dict[str, npt.NDArray[Any]]


class Header(msgspec.Struct):
    """The header: informative fields, and name, type and shape of each array."""

    fields: dict[str, Any]
    arrays: list[tuple[str, str, list[int]]]


def read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the fields and the (read-only) arrays of a model file. Raises ModelError if it is invalid."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"{path}: the model cannot be read ({error.strerror}); check the path and its permissions."
        ) from error
    header, start = _parse_header(path, content)
    expected_bytes = start + sum(map(_array_bytes, header.arrays)) + _CHECKSUM_BYTES
    if len(content) < expected_bytes:
        raise _damage(path, _TRUNCATED)
    body, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if len(content) > expected_bytes or sha256(body).digest() != checksum:
        raise _damage(path, _CORRUPT)
    arrays: Arrays = {}
    for entry in header.arrays:
        name, dtype, shape = entry
        arrays[name] = np.frombuffer(content, dtype, prod(shape), start).reshape(shape)
        start += _array_bytes(entry)
    return header.fields, arrays


def pack_strings(strings: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Strings without line breaks as an array: UTF-8, one per line."""
    return np.frombuffer("\n".join(strings).encode("utf-8"), np.uint8)


def unpack_strings(array: npt.NDArray[Any]) -> tuple[str, ...]:
    """Inverse of ``pack_strings``. Raises UnicodeDecodeError."""
    return tuple(array.tobytes().decode("utf-8").split("\n"))


def _parse_header(path: Path, content: bytes) -> tuple[Header, int]:
    if content[: len(MAGIC)] != MAGIC[: len(content)] or not content:
        raise ModelError(f"{path}: this is not a feature model; `aggregator fit --help` says how to fit one.")
    if len(content) < PREFIX.size:
        raise _damage(path, _TRUNCATED)
    _, version, length = PREFIX.unpack_from(content)
    if version != FORMAT_VERSION:
        raise ModelError(
            f"{path}: the model has format version {version}, but this program reads version "
            f"{FORMAT_VERSION}; fit it again (`aggregator fit --help`)."
        )
    end = PREFIX.size + length
    if len(content) < end:
        raise _damage(path, _TRUNCATED)
    try:
        header = msgspec.msgpack.decode(content[PREFIX.size : end], type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damage(path, _CORRUPT) from error
    if any(dtype not in ALLOWED_DTYPES or min(shape, default=0) < 0 for _, dtype, shape in header.arrays):
        raise _damage(path, _CORRUPT)
    return header, end


def _array_bytes(entry: tuple[str, str, list[int]]) -> int:
    return np.dtype(entry[1]).itemsize * prod(entry[2])


def _damage(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: the file is {what}; copy it again or fit it again (`aggregator fit --help`).")
