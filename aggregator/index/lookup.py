"""Lookup of near-duplicate candidates: two round trips for many articles at once.

The first reads buckets: by fingerprint blocks (``blocks.py``) and by sketch keys; the second reads the
records and states of the articles found there. A lookup covers all live segments of a space: a bucket is the
sum of the values under its key in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice, zip_longest
from operator import add

import numpy as np

from aggregator.analysis.shingles import estimate_overlaps, query_keys
from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.boilerplate import SourceBoilerplate
from aggregator.dedup.evidence import Arrival, Evidence, hours_between, is_same_outlet
from aggregator.dedup.policy import Policy
from aggregator.dedup.similarity import cosine_to
from aggregator.dedup.verdict import Candidate
from aggregator.domain import Analysis, Match
from aggregator.index import keys, sketch_buckets
from aggregator.index.blocks import BlockPlan, ProbePlan
from aggregator.index.codec.bindings import CanonicalPointer, decode_pointer
from aggregator.index.codec.postings import (
    NO_COUNTS,
    NO_NUMBERS,
    NUMBER_BYTES,
    ArticleNumbers,
    Counts,
    Distances,
    appended_sharing,
    appended_within,
    merge_matches,
    numbers_sharing_each,
    numbers_within,
    numbers_within_each,
)
from aggregator.index.codec.records import CandidateRecord, decode_candidates
from aggregator.index.segments import Segments
from aggregator.index.sketch_width import SketchWidth
from aggregator.index.snapshot import SegmentBuckets, Snapshot
from aggregator.store.base import Check, LengthsUnchanged, Store, ValueEquals

RADIUS_BITS = 7
# Limit for candidates per article: the nearest and those that share most sketch keys come first.
MAX_CANDIDATES = 64
# Limit for candidates that share only one sketch key: usually a common phrase, so their number grows with the
# corpus.
MAX_SINGLE_KEY_MATCHES = 16
# Limit for those among them whose key is full: then nearly all are unrelated, and each is read and compared.
MAX_COMMON_KEY_MATCHES = 4
# Lookups evaluated in one pass; the buckets of twice as many do not fit into the processor's cache.
PROBES_PER_PASS = 8


@dataclass(frozen=True, slots=True)
class Probe:
    """What the lookup of one article reads in its space: block buckets and sketch buckets."""

    analysis: Analysis
    id: str
    probe_plan: ProbePlan
    sketch_keys: tuple[int, ...]
    binding_key: bytes  # without a tag

    @property
    def space(self) -> str:
        """The space to look into."""
        return self.analysis.space

    @property
    def block_bucket_count(self) -> int:
        """Number of block buckets; the sketch buckets follow them."""
        return len(self.probe_plan.flipped_bits)


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What one lookup found: article numbers, each array (n,).

    ``by_bits``: those within ``RADIUS_BITS``, and their distances. ``by_sketch``: those that share sketch
    keys, and how many. ``by_common_key``: those of them that share a single key, which is full or nearly so
    (``sketch_buckets.KEPT_KEY_ENTRIES``).
    """

    by_bits: tuple[ArticleNumbers, Distances]
    by_sketch: tuple[ArticleNumbers, Counts]
    by_common_key: ArticleNumbers = field(default_factory=lambda: NO_NUMBERS)

    @property
    def ranked_numbers(self) -> list[int]:
        """The nearest and those that share most sketch keys, at most ``MAX_CANDIDATES``; ties: earlier first.

        Both lists alternate, so that neither many near fingerprints hide a duplicate that only its wording
        reveals, nor common wording a near fingerprint. Of those that share one key the
        ``MAX_SINGLE_KEY_MATCHES`` latest: a duplicate arrives soon after its original. Among them the
        ``MAX_COMMON_KEY_MATCHES`` latest that share a common key.
        """
        (near, distances), (sharing, shared) = self.by_bits, self.by_sketch
        if not len(near) and not len(sharing):  # true of most articles
            return []
        by_distance: list[int] = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        several = shared > 1
        by_keys: list[int] = sharing[several][np.argsort(-shared[several], kind="stable")].tolist()
        older_common = set(self.by_common_key[:-MAX_COMMON_KEY_MATCHES].tolist())
        latest = (n for n in reversed(sharing[~several].tolist()) if n not in older_common)
        by_keys = [*by_keys, *islice(latest, MAX_SINGLE_KEY_MATCHES)][:MAX_CANDIDATES]
        if not by_distance or not by_keys:
            return by_distance or by_keys
        alternating = (n for pair in zip_longest(by_distance, by_keys) for n in pair if n is not None)
        return list(dict.fromkeys(alternating))[:MAX_CANDIDATES]


EMPTY_RESULT = LookupResult((NO_NUMBERS, NO_COUNTS), (NO_NUMBERS, NO_COUNTS))


@dataclass(slots=True)
class LookupCounters:
    """Totals since the start, for metrics; ``entries_read`` of block buckets."""

    lookups: int = 0
    entries_read: int = 0
    largest_bucket_entries: int = 0

    def add(self, lookups: int, buckets: Sequence[bytes | None], entry_bytes: int) -> None:
        """Count lookups and the block buckets they read."""
        sizes = list(map(len, filter(None, buckets)))
        self.lookups += lookups
        self.entries_read += sum(sizes) // entry_bytes
        self.largest_bucket_entries = max(self.largest_bucket_entries, max(sizes, default=0) // entry_bytes)


class Lookup:
    """Finds near-duplicate candidates. ``plan_of(space)`` returns the block plan of a space."""

    def __init__(
        self,
        store: Store,
        segments: Segments,
        spaces: Sequence[str],
        plan_of: Callable[[str], BlockPlan],
    ) -> None:
        self._store = store
        self._segments = segments
        self._spaces = tuple(spaces)
        self._plan_of = plan_of
        self.counters = LookupCounters()

    def probe(self, analysis: Analysis, id_: str, radius: int = RADIUS_BITS) -> Probe:
        """What to read for one article: 68 block buckets at radius 7 under 4x16, and its sketch buckets."""
        probe_plan = self._plan_of(analysis.space).probe_plan(analysis.fingerprint, radius)
        return Probe(analysis, id_, probe_plan, query_keys(analysis.sketch), keys.binding_by_id(b"", id_))

    async def read_snapshot(self, probes: Sequence[Probe]) -> Snapshot:
        """Read the buckets of all probes, and the bindings of their ids in every space: one round trip."""
        binding_keys = [probe.binding_key for probe in probes]
        probes_by_space: dict[str, list[Probe]] = {space: [] for space in self._spaces}
        for probe in probes:
            probes_by_space[probe.space].append(probe)

        def build_keys(space: str, tag: bytes, width: SketchWidth) -> list[bytes]:
            built = [tag + key for key in binding_keys]
            own = probes_by_space[space]
            for probe, block_buckets in zip(own, _block_bucket_keys(tag, own), strict=True):
                built += block_buckets
                for bits in width.bits_to_read:
                    built += keys.sketch_buckets(tag, probe.sketch_keys, bits)
            return built

        read = await self._segments.read_keys({space: partial(build_keys, space) for space in self._spaces})
        snapshot = read.to_snapshot()
        for space, own in probes_by_space.items():
            stack = read.stacks[space]
            parts = [read.by_tag[tag] for tag in stack.tags]
            widths = [len(width.bits_to_read) for width in stack.sketch_widths]
            starts = [len(binding_keys)] * len(parts)
            for probe in own:
                blocks, wording = probe.block_bucket_count, len(probe.sketch_keys)
                ends = [start + blocks + count * wording for start, count in zip(starts, widths, strict=True)]
                snapshot.buckets[probe.id] = [
                    SegmentBuckets(part.keys[start:end], part.values[start:end])
                    for part, start, end in zip(parts, starts, ends, strict=True)
                ]
                starts = ends
        return snapshot

    def probe_groups(self, probes: Sequence[Probe]) -> Iterator[list[int]]:
        """The positions of probes in groups for ``evaluate_probes``."""
        by_space: dict[str, list[int]] = {}
        for i, probe in enumerate(probes):
            by_space.setdefault(probe.space, []).append(i)
        for positions in by_space.values():
            yield from (positions[i : i + PROBES_PER_PASS] for i in range(0, len(positions), PROBES_PER_PASS))

    def evaluate_probes(self, snapshot: Snapshot, probes: Sequence[Probe]) -> list[LookupResult]:
        """What each lookup found when ``snapshot`` was read. All probes of one space and radius.

        Evaluating ``PROBES_PER_PASS`` at once halves the time per lookup.
        """
        floor = snapshot.stacks[probes[0].space].floor
        block_bucket_count = probes[0].block_bucket_count
        entry_bytes = probes[0].probe_plan.remainder_bytes + NUMBER_BYTES
        block_values = _values_read(snapshot, probes, slice(block_bucket_count))
        sketch_values = _values_read(snapshot, probes, slice(block_bucket_count, None))
        self.counters.add(len(probes), block_values, entry_bytes)
        by_bits = numbers_within_each(block_values, [p.probe_plan for p in probes], RADIUS_BITS, floor)
        by_sketch = numbers_sharing_each(sketch_values, [p.sketch_keys for p in probes], floor)
        return [
            LookupResult(
                near, (numbers, shared), numbers[(shared == 1) & (sizes >= sketch_buckets.KEPT_KEY_ENTRIES)]
            )
            for near, (numbers, shared, sizes) in zip(by_bits, by_sketch, strict=True)
        ]

    def extend_result(
        self, snapshot: Snapshot, probe: Probe, previous: LookupResult, changed: set[bytes]
    ) -> LookupResult:
        """``previous`` plus what the batch appended to ``changed`` buckets (``Snapshot.changed_buckets``).

        Returns ``previous`` itself if nothing is added.
        """
        floor = snapshot.stacks[probe.space].floor
        appended = snapshot.appended_to(probe.id, changed)
        near = appended_within(appended, probe.probe_plan, RADIUS_BITS, floor)
        sharing = appended_sharing(appended, probe.sketch_keys, probe.block_bucket_count, floor)
        if not near and not sharing:
            return previous
        return LookupResult(
            merge_matches(previous.by_bits, near, min),
            merge_matches(previous.by_sketch, sharing, add),
            previous.by_common_key,
        )

    async def load_into_snapshot(
        self,
        snapshot: Snapshot,
        spaces_by_number: Mapping[int, str],
        decode: Callable[[Sequence[tuple[bytes, str, int]]], list[CandidateRecord]] = decode_candidates,
    ) -> None:
        """Add records and states of article numbers (with their spaces) to the snapshot: one round trip."""
        missing = [n for n in spaces_by_number if n not in snapshot.records]
        if not missing:
            return
        record_keys = [_record_key(spaces_by_number[n], n) for n in missing]
        state_keys = [
            tag + _state_key(n) for n in missing for tag in snapshot.stacks[spaces_by_number[n]].tags
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

    def build_candidates(
        self,
        snapshot: Snapshot,
        probe: Probe,
        numbers: Sequence[int],
        policy: Policy,
        arrival: Arrival,
    ) -> list[Candidate]:
        """The live articles among ``numbers``, compared: canonical article and evidence.

        Only those that can matter to the verdict by ``policy`` or its related articles: nearly all articles
        that share a sketch key share a common phrase and no more. ``arrival``: where and when the article was
        published.
        """
        subject = probe.analysis
        # The flag: an exact copy, or a member of the group of the article's own id. Always a candidate.
        live: list[tuple[CandidateRecord, CanonicalPointer | None, bool]] = []
        states = snapshot.newest_values(probe.space, list(map(_state_key, numbers)))
        for stored, state in zip(map(snapshot.records.get, numbers), states, strict=True):
            if stored is None or state == keys.DEAD:
                continue
            pointer = decode_pointer(state) if state else None
            is_certain = stored.text_hash == subject.text_hash or (
                pointer is not None and pointer.id == probe.id
            )
            if is_certain and stored.record.id == probe.id:
                continue
            live.append((stored, pointer, is_certain))
        if not live:
            return []
        min_containment = 0.0 if any(flag for *_, flag in live) else policy.containment_floor
        overlaps = estimate_overlaps(subject.sketch, [stored.sketch for stored, *_ in live], min_containment)
        found = []
        for (stored, pointer, is_certain), overlap in zip(live, overlaps, strict=True):
            distance = hamming_distance(subject.fingerprint, stored.fingerprint)
            needs_terms = policy.needs_term_similarity(distance, overlap)
            # Only now, of few, the whole record: the article's own id may be among them.
            if (needs_terms or is_certain) and (record := stored.record).id != probe.id:
                canonical = (
                    (pointer.id, pointer.first_version) if pointer else (record.id, record.first_version)
                )
                found.append((record, canonical, distance, overlap, needs_terms))
        if not found:
            return []
        similarity_to = cosine_to(subject.terms)
        sources = None
        if policy.name == "verified" and any(
            overlap.containment >= policy.containment_floor for *_, overlap, _ in found
        ):
            others = [(stored.record, overlap) for (stored, *_), overlap in zip(live, overlaps, strict=True)]
            others = [(record, overlap) for record, overlap in others if record.id != probe.id]
            sources = SourceBoilerplate(
                subject.sketch,
                [(record.source, record.sketch) for record, _ in others],
                [overlap for _, overlap in others],
                policy,
            )
        candidates = []
        for record, canonical, distance, overlap, needs_terms in found:
            own_overlap, boilerplate = overlap, 0.0
            if sources is not None:
                own_overlap, boilerplate = sources.remove_from(record.source, record.sketch, overlap)
            evidence = Evidence(
                own_overlap,
                similarity_to(record.terms) if needs_terms else 0.0,
                distance,
                is_same_outlet(arrival, record),
                hours_between(arrival, record, arrival.arrived_ms, record.arrived_ms),
                boilerplate,
            )
            candidates.append(Candidate(record, canonical, evidence))
        return candidates

    def commit_checks(
        self,
        snapshot: Snapshot,
        probe: Probe,
        changed: set[bytes],
        numbers: Sequence[int],
        match: Match | None = None,
    ) -> list[Check]:
        """The checks that a verdict on this lookup still holds when it is committed.

        No bucket has changed (those of frozen segments cannot), the binding of the id is unchanged, and the
        match is still live. Where the verdict has seen an earlier article of the batch, that article must
        have been committed: another process's entry in its place would give the bucket the same length.

        ``changed``: the article's buckets that the batch has appended to; ``numbers``: its candidates.
        """
        space, writers, read = probe.space, snapshot.writers, snapshot.buckets[probe.id][-1]
        tag = snapshot.stacks[space].writable_tag
        changed_states = writers.keys() & [tag + _state_key(n) for n in numbers] if writers else set()
        relied_on = {binding for key in changed | changed_states for binding in writers.get(key, ())}
        if match is not None:  # found by its terms, an earlier article of the batch may share no bucket
            binding = snapshot.writable_key(space, keys.binding_by_id(b"", match.id))
            relied_on |= writers.keys() & {binding}
        values = list(map(snapshot.values.__getitem__, read.keys)) if changed else read.values
        count = probe.block_bucket_count
        return [
            snapshot.unchanged_check(space, probe.binding_key),
            *_length_checks(read.keys[:count], values[:count]),
            *sketch_buckets.unchanged_checks(read.keys[count:], values[count:]),
            *(ValueEquals(binding, snapshot.values[binding]) for binding in sorted(relied_on)),
            *(self.match_checks(snapshot, space, match) if match else ()),
        ]

    def match_checks(self, snapshot: Snapshot, space: str, match: Match) -> list[Check]:
        """The matched version is neither dead nor repointed, and its canonical article is not deleted."""
        return [
            snapshot.unchanged_check(space, _state_key(match.number)),
            ValueEquals(snapshot.writable_key(space, keys.tombstone(b"", match.canonical_first)), None),
        ]

    async def find_within_radius(
        self, space: str, fingerprint: int, radius: int
    ) -> tuple[ArticleNumbers, Distances]:
        """Article numbers within ``radius`` bits, ascending, and their distances; both (n,), one round trip.

        By bits alone and from the buckets alone: deleted articles are included.
        """
        probe_plan = self._plan_of(space).probe_plan(fingerprint, radius)
        read = await self._segments.read_keys({space: lambda tag, _: keys.block_buckets(tag, probe_plan)})
        buckets = [value for part in read.by_tag.values() for value in part.values]
        return numbers_within(buckets, probe_plan, radius, read.stacks[space].floor)


def _values_read(snapshot: Snapshot, probes: Sequence[Probe], part: slice) -> list[bytes | None]:
    """A part of each lookup's bucket values as read, segment by segment, one lookup after another."""
    return [
        value for probe in probes for segment in snapshot.buckets[probe.id] for value in segment.values[part]
    ]


def _block_bucket_keys(tag: bytes, probes: Sequence[Probe]) -> Iterator[list[bytes]]:
    """The block buckets of each probe; all of one space and radius."""
    if probes:
        built, step = (
            keys.block_buckets_each(tag, [probe.probe_plan for probe in probes]),
            probes[0].block_bucket_count,
        )
        yield from (built[i : i + step] for i in range(0, len(built), step))


def _length_checks(bucket_keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[Check]:
    return [LengthsUnchanged(tuple(bucket_keys), tuple(values))] if bucket_keys else []


@lru_cache(maxsize=4096)  # asked for three times per candidate, and articles of a batch share candidates
def _state_key(number: int) -> bytes:
    return keys.state(b"", number)


@lru_cache(maxsize=4096)
def _record_key(space: str, number: int) -> bytes:
    return keys.record(space, number)
