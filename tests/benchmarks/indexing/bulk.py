"""Generation and bulk loading of whole buckets from an array of fingerprints, as in a rebuild.

The values are those that the index appends entry by entry, written compactly (``SET``, without spare room).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import redis

from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import NUMBER_BYTES
from tests.support.index_layout import block_column

COMMANDS = 2_000  # per round trip


def buckets(
    plan: BlockPlan, fingerprints: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint64] | int = 1
) -> Iterator[tuple[int, int, bytes]]:
    """(block, value, packed entries) of every non-empty bucket.

    ``numbers``: those of the articles, (n,), or the first of consecutive ones.
    """
    packed = np.empty((len(fingerprints), plan.remainder_bytes + NUMBER_BYTES), np.uint8)
    packed[:, plan.remainder_bytes :] = (
        _numbers(fingerprints, numbers) if isinstance(numbers, int) else _bytes(numbers)
    )
    shift = FINGERPRINT_BITS
    for block, width in enumerate(plan.widths):
        shift -= width
        above = fingerprints >> np.uint64(shift) >> np.uint64(width) << np.uint64(shift)
        rests = above | fingerprints & np.uint64((1 << shift) - 1)
        packed[:, : plan.remainder_bytes] = _bytes(rests)[:, : plan.remainder_bytes]
        yield from _of_block(
            packed, block, fingerprints >> np.uint64(shift) & np.uint64((1 << width) - 1), width
        )


def members(
    plan: BlockPlan, fingerprints: npt.NDArray[np.uint64], first_number: int = 1
) -> Iterator[tuple[int, int, bytes]]:
    """The same as set members of 16 bytes: the whole fingerprint and the number."""
    packed = np.concatenate([_bytes(fingerprints), _numbers(fingerprints, first_number)], axis=1)
    for block, width in enumerate(plan.widths):
        yield from _of_block(packed, block, block_column(plan, fingerprints, block), width)


def _of_block(
    packed: npt.NDArray[np.uint8], block: int, values: npt.NDArray[np.uint64], width: int
) -> Iterator[tuple[int, int, bytes]]:
    for value, content in grouped(packed, values.astype(np.uint16 if width <= 16 else np.uint32)):
        yield block, value, content


def packed_entries(
    remainders: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint64], remainder_bytes: int
) -> npt.NDArray[np.uint8]:
    """Postings, (n, remainder_bytes + 8)."""
    return np.concatenate([_bytes(remainders)[:, :remainder_bytes], _bytes(numbers)], axis=1)


def grouped(
    packed: npt.NDArray[np.uint8], values: npt.NDArray[np.unsignedinteger[Any]]
) -> Iterator[tuple[int, bytes]]:
    """The entries, (n, b), of each of ``values``, (n,), in their order."""
    order = np.argsort(values, kind="stable")  # a radix sort for 16 bits
    joined = packed[order].tobytes()
    present, starts = np.unique(values[order], return_index=True)
    starts = starts * packed.shape[1]
    ends = [*starts[1:].tolist(), len(joined)]
    for value, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
        yield value, joined[start:end]


def _numbers(fingerprints: npt.NDArray[np.uint64], first: int) -> npt.NDArray[np.uint8]:
    return _bytes(np.arange(first, first + len(fingerprints), dtype=np.uint64))


def _bytes(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)


def write(client: redis.Redis, commands: Iterator[tuple[object, ...]]) -> None:
    """Execute commands in pipelines of ``COMMANDS``; raises any error."""
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)  # type: ignore[no-untyped-call]  # redis-py
        if len(pipeline) >= COMMANDS:
            pipeline.execute()
    pipeline.execute()
