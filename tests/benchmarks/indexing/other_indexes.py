"""Indexes of other projects, used as documented; installed by the dependency group ``bench``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import redis

from tests.benchmarks.indexing.fingerprints import Fingerprints


class FaissFlat:
    """faiss.IndexBinaryFlat: exhaustive comparison with one thread."""

    client = None
    _index: Any

    def __init__(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._index = faiss.IndexBinaryFlat(64)

    def load(self, fingerprints: Fingerprints) -> None:
        """Add all at once."""
        self._index.add(_bytes(fingerprints))

    def insert(self, fingerprints: Fingerprints, first_number: int) -> None:
        """Add them one by one."""
        rows = _bytes(fingerprints)
        for i in range(len(rows)):
            self._index.add(rows[i : i + 1])

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """Numbers within the radius; they count from 1."""
        # The radius of faiss is exclusive.
        _, _, found = self._index.range_search(_bytes(np.array([fingerprint], np.uint64)), radius + 1)
        return [int(position) + 1 for position in np.unique(found)]

    async def close(self) -> None:
        """Nothing to close."""


class FaissMultiHash(FaissFlat):
    """faiss.IndexBinaryMultiHash with four hashes of 16 bits; exact to 3 (nflip 0) or 7 bits (nflip 1)."""

    def __init__(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._index = faiss.IndexBinaryMultiHash(64, 4, 16)

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """Numbers within the radius, by the same pigeonhole principle as the index of the service."""
        self._index.nflip = 0 if radius <= 3 else 1
        return await super().near(fingerprint, radius)


class SimhashIndex:
    """simhash.SimhashIndex: one dictionary per block, sets of strings, a Python loop over candidates."""

    client = None

    def __init__(self) -> None:
        logging.getLogger("simhash").setLevel(logging.ERROR)  # it warns about every large bucket

    def load(self, fingerprints: Fingerprints) -> None:
        """Build the index for k = 7, its only radius."""
        from simhash import Simhash
        from simhash import SimhashIndex as Index

        self._index = Index([(str(i), Simhash(f)) for i, f in enumerate(fingerprints.tolist(), 1)], k=7)

    def insert(self, fingerprints: Fingerprints, first_number: int) -> None:
        """Add them one by one."""
        from simhash import Simhash

        for number, fingerprint in enumerate(fingerprints.tolist(), first_number):
            self._index.add(str(number), Simhash(fingerprint))

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """Numbers within 7 bits, parsed from the names that it returns."""
        from simhash import Simhash

        return [int(name) for name in self._index.get_near_dups(Simhash(fingerprint))]

    async def close(self) -> None:
        """Nothing to close."""


class MinHashLsh:
    """datasketch.MinHashLSH on Redis (threshold 0.8, 128 permutations): another method of the same purpose.

    The signature of a document is generated from its fingerprint; a query repeats a stored one.
    """

    def __init__(self, url: str) -> None:
        from datasketch import MinHashLSH

        self.client = redis.Redis.from_url(url)
        where = {"unix_socket_path": url.removeprefix("unix://")}
        self._index = MinHashLSH(
            threshold=0.8,
            num_perm=128,
            storage_config={"type": "redis", "basename": b"bench", "redis": where},
        )

    def load(self, fingerprints: Fingerprints) -> None:
        """Bulk load with its buffering session."""
        with self._index.insertion_session(buffer_size=10_000) as session:
            for number, fingerprint in enumerate(fingerprints.tolist(), 1):
                session.insert(number, self._signature(fingerprint))

    def insert(self, fingerprints: Fingerprints, first_number: int) -> None:
        """Add them one by one."""
        for number, fingerprint in enumerate(fingerprints.tolist(), first_number):
            self._index.insert(number, self._signature(fingerprint))

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """Numbers of similar signatures; ``radius`` is ignored."""
        return [int(number) for number in self._index.query(self._signature(fingerprint))]

    async def close(self) -> None:
        """Close the connection."""
        self.client.close()

    @staticmethod
    def _signature(fingerprint: int) -> object:
        from datasketch import MinHash

        values = np.random.default_rng(fingerprint).integers(0, 2**32, 128, np.uint64)
        return MinHash(num_perm=128, hashvalues=values, scheme="legacy")  # any scheme, but the same for all


def _bytes(fingerprints: Fingerprints) -> npt.NDArray[np.uint8]:
    return fingerprints.astype("<u8").view(np.uint8).reshape(-1, 8)
