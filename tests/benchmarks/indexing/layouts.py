"""Layouts of fingerprints in Redis: the packed buckets of the index, and the sets of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import redis

from aggregator.index import Index, keys
from aggregator.index.blocks import PLAN, BlockPlan
from aggregator.index.codec.postings import numbers_within
from aggregator.store.redis import open_redis_store
from tests.benchmarks.indexing import bulk
from tests.benchmarks.indexing.fingerprints import Fingerprints
from tests.index.radius import find_within_radius
from tests.support.index_layout import block_values, bucket_probes, encode_posting

SPACE = "xx.0000"
INSERTS = 1_000  # fingerprints per round trip when they are added one by one


class Packed:
    """Packed entries in string buckets; under the plan of the service its look-ups."""

    def __init__(self, url: str, plan: BlockPlan) -> None:
        self.client = redis.Redis.from_url(url)
        self._plan = plan
        self._store = open_redis_store(url)
        self._index = Index(self._store, [SPACE])
        self._tag = keys.tag(SPACE, 0)

    def load(self, fingerprints: Fingerprints) -> None:
        """Store whole buckets."""
        made = bulk.buckets(self._plan, fingerprints)
        bulk.write(
            self.client, (("SET", keys.block_bucket(self._tag, b, v), packed) for b, v, packed in made)
        )

    def insert(self, fingerprints: Fingerprints, first_number: int) -> None:
        """Append them one by one, as the ingest does."""
        _execute_in_chunks(self.client, self._appends(fingerprints, first_number), len(self._plan.widths))

    def _appends(self, fingerprints: Fingerprints, first_number: int) -> Iterator[tuple[object, ...]]:
        for number, fingerprint in enumerate(fingerprints.tolist(), first_number):
            for block, (value, rest) in enumerate(self._plan.split(fingerprint)):
                yield (
                    "APPEND",
                    keys.block_bucket(self._tag, block, value),
                    encode_posting(rest, number, self._plan.remainder_bytes),
                )

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """One round trip."""
        if self._plan == PLAN:
            numbers, _ = await find_within_radius(self._index, SPACE, fingerprint, radius)
        else:
            probes = self._plan.probe_plan(fingerprint, radius)
            buckets = await self._store.read(keys.block_buckets(self._tag, [probes]))
            numbers, _ = numbers_within(buckets, probes, radius, 0)
        return numbers  # type: ignore[return-value]

    async def close(self) -> None:
        """Close the connections."""
        self.client.close()
        await self._store.close()


class Sets:
    """The paper's layout: a SET of (fingerprint, number) per block value, read by SMEMBERS pipelined."""

    def __init__(self, url: str, plan: BlockPlan, *, listpack: bool) -> None:
        self.client = redis.Redis.from_url(url)
        if not listpack and self.client.config_get("set-max-listpack-entries"):
            # Hash tables, as in servers before 7.2, and in every server for sets of more than 128 members.
            self.client.config_set("set-max-listpack-entries", 0)
        self._plan = plan
        self._async = redis.asyncio.Redis.from_url(url)

    def load(self, fingerprints: Fingerprints) -> None:
        """Add all members of a set with one command."""
        made = bulk.members(self._plan, fingerprints)
        bulk.write(self.client, (("SADD", b"b%x:%04x" % (b, v), *_members(packed)) for b, v, packed in made))

    def insert(self, fingerprints: Fingerprints, first_number: int) -> None:
        """Add them one by one."""
        _execute_in_chunks(self.client, self._adds(fingerprints, first_number), len(self._plan.widths))

    def _adds(self, fingerprints: Fingerprints, first_number: int) -> Iterator[tuple[object, ...]]:
        for number, fingerprint in enumerate(fingerprints.tolist(), first_number):
            entry = fingerprint.to_bytes(8, "little") + number.to_bytes(8, "little")
            for block, value in enumerate(block_values(self._plan, fingerprint)):
                yield "SADD", b"b%x:%04x" % (block, value), entry

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """One round trip; compares as ``Packed`` does, without a Python loop over candidates."""
        pipeline = self._async.pipeline(transaction=False)
        for block, value in bucket_probes(self._plan, fingerprint, radius):
            pipeline.execute_command("SMEMBERS", b"b%x:%04x" % (block, value))
        found = await pipeline.execute()
        table = np.frombuffer(b"".join(m for members in found for m in members), "<u8").reshape(-1, 2)
        near = np.bitwise_count(table[:, 0] ^ np.uint64(fingerprint)) <= radius
        return np.unique(table[near, 1])  # type: ignore[return-value]

    async def close(self) -> None:
        """Close the connections."""
        self.client.close()
        await self._async.aclose()


def _members(packed: bytes) -> Iterator[bytes]:
    return (packed[i : i + 16] for i in range(0, len(packed), 16))


def _execute_in_chunks(client: redis.Redis, commands: Iterator[tuple[object, ...]], blocks: int) -> None:
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)  # type: ignore[no-untyped-call]  # redis-py
        if len(pipeline) >= INSERTS * blocks:
            pipeline.execute()
    pipeline.execute()
