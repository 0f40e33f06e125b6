"""Any number of articles with the distribution of real ones, in columns and in rounds. Pure.

Round 0 holds the real articles, each further round renamed copies of all of them (``renaming.py``). The
newest articles are those of round 0; the oldest round may be incomplete. Near-copies (a **cluster**) stay
near-copies within their round: their fingerprints keep the bits in which they differ. The cluster as a whole
gets a fingerprint whose blocks are drawn from those of the real articles, so that buckets are as unequally
filled as by real articles.

Exact copies have no entries in buckets, as in the index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import MAX_SKETCH_KEYS
from aggregator.domain import Analysis, article_number_at
from aggregator.index.keys import INDEXED_TERMS, index_keys
from tests.benchmarks.scale.renaming import (
    LONGEST_PERIOD,
    RENAMED_BELOW,
    RENAMED_BITS_OF_SHINGLES,
    mix,
    renamer,
)

POOL = 24  # smallest hashes that are renamed; the sketch keys are the smallest of these
CLUSTER_KEYS = 8  # smallest hashes; two articles that share two of them next to each other are joined
NO_KEY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
TERM_HASH_BITS = 36


@dataclass(frozen=True, slots=True)
class Round:
    """Articles ``start`` to ``stop`` of round ``number`` at positions ``first`` to ``last`` of all."""

    number: int
    start: int
    stop: int
    first: int

    @property
    def last(self) -> int:
        """The position after its last article."""
        return self.first + self.stop - self.start


class Replicas:
    """Columns of generated articles; ``held_out`` real ones (flags) are missing in round 0."""

    def __init__(
        self,
        analyses: Sequence[Analysis],
        held_out: npt.NDArray[np.bool_],
        *,
        longest_period: float = LONGEST_PERIOD,
        seed: int = 1,
    ) -> None:
        self.analyses = analyses
        self._seed = seed
        self.real = np.flatnonzero(~held_out)
        self.fingerprints = np.array([a.fingerprint for a in analyses], np.uint64)
        self.pool = np.full((len(analyses), POOL), NO_KEY)
        self.terms = np.zeros((len(analyses), INDEXED_TERMS), np.uint64)
        for i, analysis in enumerate(analyses):
            smallest = analysis.sketch.sample[:POOL]
            self.pool[i, : len(smallest)] = smallest
            own = index_keys(analysis)
            self.terms[i, : len(own)] = own
        hashes = [a.text_hash for a in analyses]
        first = {text_hash: i for i, text_hash in reversed(list(enumerate(hashes)))}
        self.is_copy = np.array([first[text_hash] != i for i, text_hash in enumerate(hashes)])
        self.clusters = clusters(self.pool[:, :CLUSTER_KEYS])
        apart = self.clusters == np.arange(len(analyses))  # count a phrase once per cluster
        known = self.pool[apart]
        self._rename_shingles = renamer(known[known != NO_KEY], RENAMED_BITS_OF_SHINGLES, longest_period)
        self._rename_terms = renamer(self.terms[apart].reshape(-1), TERM_HASH_BITS, longest_period)

    def rounds(self, count: int) -> list[Round]:
        """The rounds of an index of ``count`` articles, oldest first."""
        sizes = [min(count, len(self.real))]
        while sum(sizes) < count:
            sizes.append(min(count - sum(sizes), len(self.analyses)))
        found, first = [], 0
        for number, size in reversed(list(enumerate(sizes))):
            whole = len(self.analyses) if number else len(self.real)
            found.append(Round(number, whole - size, whole, first))
            first += size
        return found

    def members(self, round_: Round) -> npt.NDArray[np.int64]:
        """The real articles that the articles of a round are copies of, (n,)."""
        everyone = np.arange(len(self.analyses)) if round_.number else self.real
        return everyone[round_.start : round_.stop]

    def fingerprints_of(self, round_: Round) -> npt.NDArray[np.uint64]:
        """Their fingerprints, (n,)."""
        members = self.members(round_)
        if round_.number == 0:
            return self.fingerprints[members]
        rng = np.random.default_rng([self._seed, round_.number])
        own = np.zeros(len(self.analyses), np.uint64)
        for block in range(4):
            bits = np.uint64(0xFFFF << 16 * block)
            own |= self.fingerprints[rng.permutation(len(own))] & bits
        leaders = self.clusters[members]
        return own[leaders] ^ self.fingerprints[leaders] ^ self.fingerprints[members]

    def sketch_keys_of(self, round_: Round) -> npt.NDArray[np.uint64]:
        """Their sketch keys, (n, 8) ascending, with ``NO_KEY`` where an article has fewer."""
        pool = self.pool[self.members(round_)]
        if round_.number:
            renamed = self._rename_shingles(pool, round_.number)
            pool = np.sort(np.where(pool == NO_KEY, NO_KEY, renamed), axis=1)
            repeated = np.zeros(pool.shape, bool)
            repeated[:, 1:] = pool[:, 1:] == pool[:, :-1]
            pool[repeated] = NO_KEY
            pool.sort(axis=1)
        return pool[:, :MAX_SKETCH_KEYS]

    def term_keys_of(self, round_: Round) -> npt.NDArray[np.uint64]:
        """Their index keys of terms, (n, 6), 0 where an article has fewer."""
        terms = self.terms[self.members(round_)]
        return np.where(terms == 0, terms, self._rename_terms(terms, round_.number))

    def positions_of(self, round_: Round) -> npt.NDArray[np.int64]:
        """Their positions among all articles, (n,)."""
        return np.arange(round_.first, round_.last)

    def rename_samples(self, samples: Sequence[npt.NDArray[np.uint32]]) -> list[npt.NDArray[np.uint32]]:
        """The samples of the sketches of one renamed copy of each article, of at most the same size."""
        sizes = [len(sample) for sample in samples]
        joined = np.concatenate(samples).astype(np.uint64)
        known, frequency = np.unique(joined, return_counts=True)
        stays = frequency[known.searchsorted(joined)] >= RENAMED_BELOW
        low = np.uint64((1 << RENAMED_BITS_OF_SHINGLES) - 1)
        renamed = np.where(stays, joined, joined ^ mix(joined) & low).astype(np.uint32)
        return [np.unique(part) for part in np.split(renamed, np.cumsum(sizes)[:-1])]

    def text_hashes_of(self, round_: Round) -> npt.NDArray[np.uint64]:
        """Their text hashes as pairs of numbers, (n, 2); equal for the exact copies of a round."""
        joined = b"".join(self.analyses[i].text_hash for i in self.members(round_).tolist())
        hashes = np.frombuffer(joined, "<u8").reshape(-1, 2)
        return hashes if round_.number == 0 else mix(hashes + np.uint64(round_.number))


def article_numbers(count: int, newest_ms: int, spread_ms: int) -> npt.NDArray[np.uint64]:
    """Ascending article numbers of ``count`` arrivals, evenly within ``spread_ms`` before ``newest_ms``."""
    at = newest_ms - spread_ms + (np.arange(count) * (spread_ms / count)).astype(np.int64)
    low = np.random.default_rng(3).integers(0, 1 << 21, count, dtype=np.uint64)
    numbers = at.astype(np.uint64) * np.uint64(article_number_at(1)) + low
    numbers.sort()
    return numbers


def clusters(smallest: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The first article of each article's cluster, (n,): a chain of articles that share two smallest hashes.

    ``smallest``: (n, k), ascending; ``NO_KEY`` and set phrases (in 1 % of the articles) join nothing.
    """
    leader = list(range(len(smallest)))

    def root(i: int) -> int:
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    known, frequency = np.unique(smallest, return_counts=True)
    common = set(known[frequency > max(10, 0.01 * len(smallest))].tolist()) | {int(NO_KEY)}
    seen: dict[tuple[int, int], int] = {}
    for i, row in enumerate(smallest.tolist()):
        for pair in pairwise(row):
            if common.isdisjoint(pair):
                a, b = root(seen.setdefault(pair, i)), root(i)
                leader[max(a, b)] = min(a, b)
    return np.array([root(i) for i in range(len(smallest))])


def gather(replicas: Replicas, rounds: Sequence[Round], column: str) -> Iterator[npt.NDArray[np.uint64]]:
    """One column (name of a method, without ``_of``) of all rounds, with exact copies left out."""
    for round_ in rounds:
        yield getattr(replicas, f"{column}_of")(round_)[~replicas.is_copy[replicas.members(round_)]]
