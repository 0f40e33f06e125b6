"""Whole buckets made and written at once: what a rebuild costs when the fingerprints are at hand.

The values are those the index appends entry by entry, written in the compact form (``SET``, no room to grow).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import redis

from aggregator.blocks import BITS, BlockPlan

COMMANDS = 2_000  # per round trip


def buckets(
    plan: BlockPlan, fingerprints: npt.NDArray[np.uint64], first_number: int = 1
) -> Iterator[tuple[int, int, bytes]]:
    """(block, value, packed entries) of every bucket that is not empty; numbers count from ``first_number``."""
    entries = np.empty((len(fingerprints), 2), "<u8")
    entries[:, 0] = fingerprints
    entries[:, 1] = np.arange(first_number, first_number + len(fingerprints), dtype=np.uint64)
    shift = BITS
    for block, width in enumerate(plan.widths):
        shift -= width
        values = (fingerprints >> np.uint64(shift) & np.uint64((1 << width) - 1)).astype(
            np.uint16 if width <= 16 else np.uint32
        )
        order = np.argsort(values, kind="stable")  # a radix sort for 16 bits
        joined = entries[order].tobytes()
        present, starts = np.unique(values[order], return_index=True)
        ends = [*(starts[1:] * 16).tolist(), len(joined)]
        for value, start, end in zip(present.tolist(), (starts * 16).tolist(), ends, strict=True):
            yield block, value, joined[start:end]


def write(client: redis.Redis, commands: Iterator[tuple[object, ...]]) -> None:
    """Send commands in long pipelines; any error is raised."""
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
        if len(pipeline) >= COMMANDS:
            pipeline.execute()
    pipeline.execute()
