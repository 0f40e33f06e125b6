"""Lookup of near-duplicate candidates: two round trips for many articles at once.

The first reads buckets: by fingerprint blocks (``blocks.py``) and by sketch keys; the second reads the
records and states of the articles found there. A lookup covers all live segments of a space: a bucket is the
sum of the values under its key in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from operator import add

import numpy as np

from aggregator.analysis.shingles import MAX_QUERY_KEYS
from aggregator.domain import Analysis, ArticleRecord, Match
from aggregator.index import keys, untrusted
from aggregator.index.blocks import PLAN, ProbePlan
from aggregator.index.codec.postings import (
    NO_COUNTS,
    NO_NUMBERS,
    NUMBER_BYTES,
    ArticleNumbers,
    Counts,
    Distances,
    KeyMatches,
    appended_sharing,
    appended_within,
    merge_matches,
    numbers_sharing_each,
    numbers_within_each,
)
from aggregator.index.codec.record_codec import CandidateRecord, decode_candidates
from aggregator.index.segments import Segments
from aggregator.index.snapshot import SegmentBuckets, SketchWidth, Snapshot, unchanged_checks
from aggregator.index.takedowns import Takedowns, text_of_id
from aggregator.store.base import Check, LengthsUnchanged, Store, ValueEquals
from aggregator.store.identity import StoreMemory

# Limit for candidates per article: the nearest and those that share most sketch keys come first.
MAX_CANDIDATES = 64
# Limit for candidates that share only one sketch key: usually a common phrase, so their number grows with the
# corpus. Those whose key says most come first (``rank_single_key_matches``).
MAX_SINGLE_KEY_MATCHES = 8
# A key says less than the one before it by this factor: the candidate has none of the lookup's smaller keys.
KEY_RANK_FACTOR = 1.25


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What one lookup found, each array (n,): numbers with distances, numbers with shared sketch keys.

    ``by_single_key``: those that shared a single key, best first (``rank_single_key_matches``).
    """

    by_bits: tuple[ArticleNumbers, Distances]
    by_sketch: tuple[ArticleNumbers, Counts]
    by_single_key: ArticleNumbers = field(default_factory=lambda: NO_NUMBERS)

    @property
    def ranked_numbers(self) -> list[int]:
        """The nearest and those that share most sketch keys, at most ``MAX_CANDIDATES``; ties: earlier first.

        Both lists alternate, so that neither hides the other. Of those that share one key, the latest of the
        batch come first, then ``by_single_key``.
        """
        (near, distances), (sharing, shared) = self.by_bits, self.by_sketch
        if not len(near) and not len(sharing):  # true of most articles
            return []
        by_distance: list[int] = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        several = shared > 1
        by_keys: list[int] = sharing[several][np.argsort(-shared[several], kind="stable")].tolist()
        ranked: list[int] = self.by_single_key.tolist()
        left = set(sharing[~several].tolist())
        by_single_key = [*sorted(left.difference(ranked), reverse=True), *(n for n in ranked if n in left)]
        by_keys = [*by_keys, *by_single_key[:MAX_SINGLE_KEY_MATCHES]][:MAX_CANDIDATES]
        if not by_distance or not by_keys:
            return by_distance or by_keys
        alternating = (n for pair in zip_longest(by_distance, by_keys) for n in pair if n is not None)
        return list(dict.fromkeys(alternating))[:MAX_CANDIDATES]


EMPTY_RESULT = LookupResult((NO_NUMBERS, NO_COUNTS), (NO_NUMBERS, NO_COUNTS))


def rank_single_key_matches(found: KeyMatches) -> ArticleNumbers:
    """Those that share a single key, the likeliest copies first; ties: latest first.

    Rare keys first, and the lookup's first keys: a copy is likely to share the smallest hashes.
    """
    (single,) = (found.counts == 1).nonzero()
    single = single[::-1]  # latest first
    commonness = found.key_entries[single] * KEY_RANK_FACTOR ** found.key_ranks[single]
    best_first: ArticleNumbers = found.numbers[single[commonness.argsort(kind="stable")]]
    return best_first


RADIUS_BITS = 7
# Lookups evaluated in one pass; the buckets of twice as many do not fit into the processor's cache.
PROBES_PER_PASS = 8


@dataclass(frozen=True, slots=True)
class Probe:
    """What the lookup of one article reads in its space: block buckets, then sketch buckets."""

    analysis: Analysis | ArticleRecord
    space: str
    id: str
    probe_plan: ProbePlan
    block_bucket_count: int
    sketch_keys: tuple[int, ...]
    binding_key: bytes  # without a tag


class Lookup:
    """Finds near-duplicate candidates."""

    def __init__(
        self,
        store: Store,
        segments: Segments,
        spaces: Sequence[str],
        takedowns: Takedowns,
        memory: StoreMemory,
    ) -> None:
        self._store, self._takedowns, self._memory = store, takedowns, memory
        self._segments = segments
        self._spaces = tuple(spaces)
        # Totals since the start, for metrics; the entries are those of block buckets.
        self.lookups = self.entries_read = self.largest_bucket_entries = 0

    def probe(self, analysis: Analysis | ArticleRecord, id_: str, radius: int = RADIUS_BITS) -> Probe:
        """What to read for one article: 68 block buckets at radius 7, and its sketch buckets."""
        space = analysis.space
        probe_plan = PLAN.probe_plan(analysis.fingerprint, radius)
        return Probe(
            analysis,
            space,
            id_,
            probe_plan,
            len(probe_plan.flipped_bits),
            keys.wording_keys(analysis, MAX_QUERY_KEYS),
            keys.binding(id_),
        )

    async def read_snapshot(self, probes: Sequence[Probe]) -> Snapshot:
        """Read buckets, bindings and equal texts in every space, and what was taken down: one round trip."""
        text_hashes = [probe.analysis.text_hash for probe in probes]
        text_hashes += [text_of_id(probe.analysis.text_hash, probe.id) for probe in probes]
        binding_keys = [probe.binding_key for probe in probes]
        probes_by_space: dict[str, list[Probe]] = {space: [] for space in self._spaces}
        for probe in probes:
            probes_by_space[probe.space].append(probe)

        bucket_keys: dict[tuple[str, bytes], list[bytes]] = {}  # by article id and tag

        def build_keys(space: str, tag: bytes, width: SketchWidth) -> list[bytes]:
            built = [tag + key for key in binding_keys]
            own = probes_by_space[space]
            others = [probe.analysis.text_key for probe in probes if probe.space != space]
            for bits in width.bits_to_read:
                built += keys.sketch_buckets(tag, others, bits)
            block_buckets = keys.block_buckets(tag, [probe.probe_plan for probe in own]) if own else []
            for i, probe in enumerate(own):
                count = probe.block_bucket_count
                buckets = block_buckets[i * count : (i + 1) * count]
                for bits in width.bits_to_read:
                    buckets += keys.sketch_buckets(tag, probe.sketch_keys, bits)
                bucket_keys[probe.id, tag] = buckets
                built += buckets
            return built

        snapshot = await self._segments.read_keys(
            {space: partial(build_keys, space) for space in self._spaces},
            [*self._takedowns.keys_to_read(text_hashes), *self._memory.keys, untrusted.KEY],
        )
        if await self._memory.is_outdated(snapshot.values):
            return await self.read_snapshot(probes)
        taken_down = await self._takedowns.find(snapshot, text_hashes)
        ids = [probe.id for probe in probes]
        snapshot.taken_down = frozenset(id_ for id_, taken in zip(ids * 2, taken_down, strict=True) if taken)
        for probe in probes:
            read = [bucket_keys[probe.id, tag] for tag in snapshot.stacks[probe.space].tags]
            snapshot.buckets[probe.id] = [
                SegmentBuckets(own, list(map(snapshot.values.__getitem__, own))) for own in read
            ]
        return snapshot

    async def read_bindings(self, snapshot: Snapshot, ids: Sequence[str]) -> None:
        """Add the bindings of more ids, in every space, to the snapshot: one round trip."""
        wanted = [keys.binding(id_) for id_ in ids]
        read = await self._segments.read(dict.fromkeys(self._spaces, wanted))
        for key in (
            tag + suffix for stack in read.stacks.values() for tag in stack.tags for suffix in wanted
        ):
            snapshot.values.setdefault(key, read.values[key])

    def move(self, snapshot: Snapshot, probe: Probe, id_: str) -> Probe:
        """The probe of the same article under another id, whose binding has been read."""
        snapshot.buckets[id_] = snapshot.buckets[probe.id]
        snapshot.taken_down |= {id_} if probe.id in snapshot.taken_down else set()
        return replace(probe, id=id_, binding_key=keys.binding(id_))

    def probe_groups(self, probes: Sequence[Probe]) -> Iterator[list[int]]:
        """The positions of probes in groups for ``evaluate_probes``."""
        by_space: dict[str, list[int]] = {}
        for i, probe in enumerate(probes):
            by_space.setdefault(probe.space, []).append(i)
        for positions in by_space.values():
            yield from (positions[i : i + PROBES_PER_PASS] for i in range(0, len(positions), PROBES_PER_PASS))

    def evaluate_probes(self, snapshot: Snapshot, probes: Sequence[Probe]) -> list[LookupResult]:
        """What each lookup, of one space and radius, found in ``snapshot``; many at once halve the time."""
        floor = snapshot.stacks[probes[0].space].floor
        block_bucket_count = probes[0].block_bucket_count
        entry_bytes = probes[0].probe_plan.remainder_bytes + NUMBER_BYTES
        values = [segment.values for probe in probes for segment in snapshot.buckets[probe.id]]
        block_values = [value for buckets in values for value in buckets[:block_bucket_count]]
        sketch_values = [value for buckets in values for value in buckets[block_bucket_count:]]
        sizes = list(map(len, filter(None, block_values)))
        self.lookups += len(probes)
        self.entries_read += sum(sizes) // entry_bytes
        self.largest_bucket_entries = max(self.largest_bucket_entries, max(sizes, default=0) // entry_bytes)
        by_bits = numbers_within_each(block_values, [p.probe_plan for p in probes], RADIUS_BITS, floor)
        by_sketch = numbers_sharing_each(sketch_values, [p.sketch_keys for p in probes], floor)
        return [
            LookupResult(near, (found.numbers, found.counts), rank_single_key_matches(found))
            for near, found in zip(by_bits, by_sketch, strict=True)
        ]

    def extend_result(
        self, snapshot: Snapshot, probe: Probe, previous: LookupResult, changed: set[bytes]
    ) -> LookupResult:
        """``previous`` plus what the batch appended to ``changed`` buckets; itself if nothing is added."""
        floor = snapshot.stacks[probe.space].floor
        appended = snapshot.appended_to(probe.id, changed)
        near = appended_within(appended, probe.probe_plan, RADIUS_BITS, floor)
        sharing = appended_sharing(appended, probe.sketch_keys, probe.block_bucket_count, floor)
        if not near and not sharing:
            return previous
        return LookupResult(
            merge_matches(previous.by_bits, near, min),
            merge_matches(previous.by_sketch, sharing, add),
            previous.by_single_key,
        )

    async def load_into_snapshot(
        self,
        snapshot: Snapshot,
        spaces_by_number: Mapping[int, str],
        suffixes: Callable[[int], list[bytes]] = lambda number: [keys.state(number)],
        decode: Callable[[Sequence[tuple[bytes, str, int]]], list[CandidateRecord]] = decode_candidates,
    ) -> None:
        """Add records and ``suffixes`` of article numbers (with their spaces) to the snapshot: one trip."""
        missing = [n for n in spaces_by_number if n not in snapshot.records]
        if not missing:
            return
        record_keys = [keys.record(spaces_by_number[n], n) for n in missing]
        state_keys = [
            tag + suffix
            for n in missing
            for suffix in suffixes(n)
            for tag in snapshot.stacks[spaces_by_number[n]].tags
        ]
        values = await self._store.read(record_keys + state_keys)
        stored = [
            (data, spaces_by_number[number], number)
            for number, data in zip(missing, values, strict=False)
            if data is not None
        ]
        snapshot.records.update((record.number, record) for record in decode(stored))
        for key, value in zip(state_keys, values[len(missing) :], strict=True):
            snapshot.values.setdefault(key, value)

    def commit_checks(
        self,
        snapshot: Snapshot,
        probe: Probe,
        changed: set[bytes],
        numbers: Sequence[int],
        match: Match | None = None,
    ) -> list[Check]:
        """The checks that a verdict on this lookup still holds when it is committed.

        No bucket and not the binding of the id has changed, and the match is live. Earlier articles of the
        batch that the verdict has seen must be committed: an entry of another process would give the bucket
        the same length. ``changed``: buckets that the batch has appended to; ``numbers``: the candidates.
        """
        space, writers, read = probe.space, snapshot.writers, snapshot.buckets[probe.id][-1]
        tag = snapshot.stacks[space].writable_tag
        changed_states = writers.keys() & [tag + keys.state(n) for n in numbers] if writers else set()
        relied_on = {binding for key in changed | changed_states for binding in writers.get(key, ())}
        match_checks: list[Check] = []
        if match is not None:
            # Found by its terms, an earlier article of the batch may share no bucket.
            relied_on |= writers.keys() & {tag + keys.binding(match.id)}
            # The matched version is neither dead nor repointed, and its canonical article is not deleted.
            state = snapshot.unchanged_check(space, keys.state(match.number))
            match_checks = [state, ValueEquals(tag + keys.tombstone(match.canonical_first), None)]
        values = list(map(snapshot.values.__getitem__, read.keys)) if changed else read.values
        count = probe.block_bucket_count
        return [
            snapshot.unchanged_check(space, probe.binding_key),
            LengthsUnchanged(tuple(read.keys[:count]), tuple(values[:count])),
            *unchanged_checks(read.keys[count:], values[count:]),
            *(ValueEquals(binding, snapshot.values[binding]) for binding in sorted(relied_on)),
            *match_checks,
        ]
