"""Other people's indexes, driven as their documentation says. Installed with the dependency group ``bench`` only."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import redis


class FaissFlat:
    """faiss.IndexBinaryFlat: compares with all, one thread; the limit of brute force."""

    client = None

    def __init__(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._index = faiss.IndexBinaryFlat(64)

    def load(self, fingerprints: np.ndarray) -> None:
        """Its only way."""
        self._index.add(_bytes(fingerprints))

    def insert(self, fingerprints: np.ndarray, first_number: int) -> None:
        """One by one."""
        rows = _bytes(fingerprints)
        for i in range(len(rows)):
            self._index.add(rows[i : i + 1])

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """Numbers count from 1."""
        # A radius of faiss is exclusive.
        _, _, found = self._index.range_search(_bytes(np.array([fingerprint], np.uint64)), radius + 1)
        return np.unique(found) + 1  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Nothing to let go of."""


class FaissMultiHash(FaissFlat):
    """faiss.IndexBinaryMultiHash with four hashes of 16 bits; exact to 3 (nflip 0) or 7 bits (nflip 1)."""

    def __init__(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._index = faiss.IndexBinaryMultiHash(64, 4, 16)

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """The same pigeonhole principle as ours."""
        self._index.nflip = 0 if radius <= 3 else 1
        return await super().near(fingerprint, radius)


class SimhashIndex:
    """1e0ng simhash: a dictionary per block, sets of strings, one loop over candidates in Python."""

    client = None

    def __init__(self) -> None:
        logging.getLogger("simhash").setLevel(logging.ERROR)  # it warns of every big bucket

    def load(self, fingerprints: np.ndarray) -> None:
        """For k = 7, which its index is built for."""
        from simhash import Simhash
        from simhash import SimhashIndex as Index

        self._index = Index([(str(i), Simhash(f)) for i, f in enumerate(fingerprints.tolist(), 1)], k=7)

    def insert(self, fingerprints: np.ndarray, first_number: int) -> None:
        """One by one."""
        from simhash import Simhash

        for number, fingerprint in enumerate(fingerprints.tolist(), first_number):
            self._index.add(str(number), Simhash(fingerprint))

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """Its answers are names."""
        from simhash import Simhash

        return [int(name) for name in self._index.get_near_dups(Simhash(fingerprint))]

    async def close(self) -> None:
        """Nothing to let go of."""


class MinHashLsh:
    """datasketch.MinHashLSH on Redis (threshold .8, 128 permutations): another method, for the same question.

    A fingerprint stands for a document: its signature is drawn from it, and a query repeats a stored one.
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

    def load(self, fingerprints: np.ndarray) -> None:
        """Its bulk way: a session that buffers."""
        with self._index.insertion_session(buffer_size=10_000) as session:
            for number, fingerprint in enumerate(fingerprints.tolist(), 1):
                session.insert(number, self._signature(fingerprint))

    def insert(self, fingerprints: np.ndarray, first_number: int) -> None:
        """One by one."""
        for number, fingerprint in enumerate(fingerprints.tolist(), first_number):
            self._index.insert(number, self._signature(fingerprint))

    async def near(self, fingerprint: int, radius: int) -> Sequence[int]:
        """A radius means nothing to it."""
        return self._index.query(self._signature(fingerprint))  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Let go of the connection."""
        self.client.close()

    @staticmethod
    def _signature(fingerprint: int) -> object:
        from datasketch import MinHash

        values = np.random.default_rng(fingerprint).integers(0, 2**32, 128, np.uint64)
        return MinHash(num_perm=128, hashvalues=values, scheme="legacy")  # whichever, but the same


def _bytes(fingerprints: np.ndarray) -> np.ndarray:
    return fingerprints.astype("<u8").view(np.uint8).reshape(-1, 8)
