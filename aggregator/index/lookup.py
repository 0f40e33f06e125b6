"""Which stored articles are near this one? Two round trips: buckets and bands, then what was found there.

Look-ups of many articles travel together, and through all live segments of a space at once: a bucket is
what stands under its key in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import zip_longest
from operator import add

import numpy as np

from aggregator.analysis.shingles import estimate_overlaps, query_keys
from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.similarity import cosine_to
from aggregator.dedup.verdict import Candidate, Policy
from aggregator.domain import Analysis, ArticleRecord, Match
from aggregator.index import keys
from aggregator.index.base import IndexBase
from aggregator.index.blocks import ProbePlan
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
from aggregator.index.codec.records import CanonicalPointer, decode_pointer, decode_record
from aggregator.index.snapshot import Snapshot
from aggregator.store.base import Check, LengthsUnchanged, ValueEquals

RADIUS_BITS = 7
# How many proposals are examined per article: the nearest and those sharing most bands come first.
MAX_CANDIDATES = 64
# So many of those that share a single band: mostly a turn of phrase, which the more articles have the more there are.
MAX_SINGLE_KEY_MATCHES = 16
# So many look-ups are gone through at once: twice as many read more than the processor keeps at hand.
PROBES_PER_PASS = 8


@dataclass(frozen=True, slots=True)
class Probe:
    """What one article's look-up reads in its own space: buckets, and bands of the values ``wording``."""

    analysis: Analysis
    id: str
    probe_plan: ProbePlan
    sketch_keys: tuple[int, ...]
    binding_key: bytes  # the key of its id, without a tag

    @property
    def space(self) -> str:
        """The space it looks into."""
        return self.analysis.space

    @property
    def bucket_count(self) -> int:
        """How many."""
        return len(self.probe_plan.flipped_bits)


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Article numbers within ``RADIUS_BITS`` and how far they are; those that share bands and how many; each (n,)."""

    by_bits: tuple[ArticleNumbers, Distances]
    by_sketch: tuple[ArticleNumbers, Counts]

    @property
    def ranked_numbers(self) -> list[int]:
        """The nearest and those sharing most bands, at most ``MAX_CANDIDATES``; of equally good ones the earlier first.

        Turn and turn about: a crowd of near fingerprints must not hide a copy that only its wording betrays, nor
        common wording a near fingerprint. Of those that share a single band the ``MAX_SINGLE`` latest: a copy comes
        soon after what it repeats.
        """
        (near, distances), (alike, shared) = self.by_bits, self.by_sketch
        if not len(near) and not len(alike):  # most articles are like nothing that is stored
            return []
        by_distance: list[int] = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        several = shared > 1
        by_bands: list[int] = alike[several][np.argsort(-shared[several], kind="stable")].tolist()
        by_bands = (by_bands + alike[~several][: -MAX_SINGLE_KEY_MATCHES - 1 : -1].tolist())[:MAX_CANDIDATES]
        if not by_distance or not by_bands:
            return by_distance or by_bands
        turns = (n for pair in zip_longest(by_distance, by_bands) for n in pair if n is not None)
        return list(dict.fromkeys(turns))[:MAX_CANDIDATES]


EMPTY_RESULT = LookupResult((NO_NUMBERS, NO_COUNTS), (NO_NUMBERS, NO_COUNTS))


class Lookup(IndexBase):
    """Reading the index."""

    def probe(self, analysis: Analysis, id_: str, radius: int = RADIUS_BITS) -> Probe:
        """What to read for one article: 68 buckets at radius 7 under 4x16, and its bands."""
        around = self.plan(analysis.space).probe_plan(analysis.fingerprint, radius)
        return Probe(analysis, id_, around, query_keys(analysis.sketch), keys.binding_by_id(b"", id_))

    async def read_snapshot(self, probes: Sequence[Probe]) -> Snapshot:
        """Read all that the probes ask for, and their ids in every space, in one round trip."""
        ids = [probe.binding_key for probe in probes]
        asking: dict[str, list[Probe]] = {space: [] for space in self.spaces}
        ends = dict.fromkeys(self.spaces, len(ids))
        places: dict[str, slice] = {}
        for probe in probes:
            asking[probe.space].append(probe)
            start, ends[probe.space] = (
                ends[probe.space],
                ends[probe.space] + probe.bucket_count + len(probe.sketch_keys),
            )
            places[probe.id] = slice(start, ends[probe.space])

        def under(space: str, tag: bytes) -> list[bytes]:
            spelt = [tag + id_ for id_ in ids]
            for probe, buckets in zip(asking[space], _bucket_keys(tag, asking[space]), strict=True):
                spelt += buckets
                spelt += keys.sketch_buckets(tag, probe.sketch_keys)
            return spelt

        snapshot = await self.segments.read_built_keys(
            {space: partial(under, space) for space in self.spaces}
        )
        snapshot.lookup_slices = places
        return snapshot

    def evaluate_probes(self, snapshot: Snapshot, probes: Sequence[Probe], now_ms: int) -> list[LookupResult]:
        """What each look-up found. All of one space and radius; several at once (``ABREAST``) take half of the time."""
        floor = self.floor(snapshot.stacks[probes[0].space], now_ms)
        near, alike = (
            self._match_by_bits(snapshot, probes, floor),
            self._match_by_sketch(snapshot, probes, floor),
        )
        return [LookupResult(by_bits, by_bands) for by_bits, by_bands in zip(near, alike, strict=True)]

    def extend_result(
        self, snapshot: Snapshot, probe: Probe, now_ms: int, previous: LookupResult, changed_keys: set[bytes]
    ) -> LookupResult:
        """What it would find now that ``touched`` of its keys (``Snapshot.touched``) have grown; ``before`` if the same."""
        floor = self.floor(snapshot.stacks[probe.space], now_ms)
        grown = snapshot.appended(probe.space, probe.id, changed_keys)
        near = appended_within(grown, probe.probe_plan, RADIUS_BITS, floor)
        alike = appended_sharing(grown, probe.sketch_keys, probe.bucket_count, floor)
        if not near and not alike:
            return previous
        return LookupResult(
            merge_matches(previous.by_bits, near, min), merge_matches(previous.by_sketch, alike, add)
        )

    def _match_by_bits(
        self, snapshot: Snapshot, probes: Sequence[Probe], floor: int
    ) -> list[tuple[ArticleNumbers, Distances]]:
        buckets = _values_read(snapshot, probes, slice(probes[0].bucket_count))
        self._count_read_entries(len(probes), buckets, probes[0].probe_plan.remainder_bytes + NUMBER_BYTES)
        return numbers_within_each(buckets, [probe.probe_plan for probe in probes], RADIUS_BITS, floor)

    def _match_by_sketch(
        self, snapshot: Snapshot, probes: Sequence[Probe], floor: int
    ) -> list[tuple[ArticleNumbers, Counts]]:
        buckets = _values_read(snapshot, probes, slice(probes[0].bucket_count, None))
        return numbers_sharing_each(buckets, [probe.sketch_keys for probe in probes], floor)

    def probe_groups(self, probes: Sequence[Probe]) -> Iterator[list[int]]:
        """The places of look-ups that ``found`` takes at once."""
        by_space: dict[str, list[int]] = {}
        for i, probe in enumerate(probes):
            by_space.setdefault(probe.space, []).append(i)
        for places in by_space.values():
            yield from (places[i : i + PROBES_PER_PASS] for i in range(0, len(places), PROBES_PER_PASS))

    def _count_read_entries(self, lookups: int, buckets: Sequence[bytes | None], entry_bytes: int) -> None:
        sizes = list(map(len, filter(None, buckets)))
        self.lookups += lookups
        self.entries_read += sum(sizes) // entry_bytes
        self.largest_bucket_entries = max(self.largest_bucket_entries, max(sizes, default=0) // entry_bytes)

    async def load_into_snapshot(self, snapshot: Snapshot, spaces_by_number: Mapping[int, str]) -> None:
        """Add records and states of article numbers (with their spaces) to the snapshot."""
        missing = [n for n in spaces_by_number if n not in snapshot.records]
        if not missing:
            return
        states = [tag + _state_key(n) for n in missing for tag in snapshot.stacks[spaces_by_number[n]].tags]
        values = await self.store.read([*[_record_key(spaces_by_number[n], n) for n in missing], *states])
        for number, data in zip(missing, values, strict=False):
            if data is not None:
                snapshot.records[number] = decode_record(data, spaces_by_number[number], number)
        for key, value in zip(states, values[len(missing) :], strict=True):
            snapshot.values.setdefault(key, value)

    def build_candidates(
        self, snapshot: Snapshot, probe: Probe, numbers: Sequence[int], policy: Policy | None = None
    ) -> list[Candidate]:
        """The live ones among ``numbers``, examined: distance, overlap, canonical article, similarity.

        With a policy only those that can matter to a verdict or to what it names: nearly all that have a band in
        common share a turn of phrase and no more.
        """
        subject = probe.analysis
        live: list[
            tuple[ArticleRecord, CanonicalPointer | None, bool]
        ] = []  # the last: an exact copy, or its group bears this id
        states = snapshot.newest_values(probe.space, list(map(_state_key, numbers)))
        for record, state in zip(map(snapshot.records.get, numbers), states, strict=True):
            if record is None or record.id == probe.id or state == keys.DEAD:
                continue
            pointer = decode_pointer(state) if state else None
            sure = record.text_hash == subject.text_hash or (pointer is not None and pointer.id == probe.id)
            live.append((record, pointer, sure))
        if not live:
            return []
        least = 0.0 if policy is None or any(sure for _, _, sure in live) else policy.containment_floor
        overlaps = estimate_overlaps(subject.sketch, [record.sketch for record, _, _ in live], least)
        found = []
        for (record, pointer, sure), overlap in zip(live, overlaps, strict=True):
            distance = hamming_distance(subject.fingerprint, record.fingerprint)
            asked = policy is None or policy.needs_term_similarity(distance, overlap)
            if asked or sure:
                canonical = (
                    (pointer.id, pointer.first_version) if pointer else (record.id, record.first_version)
                )
                found.append((record, canonical, distance, overlap, asked))
        if not found:
            return []
        similar_to = cosine_to(subject.terms)
        return [
            Candidate(record, canonical, distance, overlap, similar_to(record.terms) if asked else 0.0)
            for record, canonical, distance, overlap, asked in found
        ]

    async def find_within_radius(
        self, space: str, fingerprint: int, radius: int, now_ms: int
    ) -> tuple[ArticleNumbers, Distances]:
        """Article numbers within ``radius`` bits, ascending, and their distances; both (n,), one round trip.

        By bits alone, and as the buckets have it: deleted articles are still among them.
        """
        around = self.plan(space).probe_plan(fingerprint, radius)
        layers, buckets = await self.segments.read_all_segments(
            space, lambda tag: keys.block_buckets(tag, around)
        )
        return numbers_within(buckets, around, radius, self.floor(layers, now_ms))

    def commit_checks(
        self,
        snapshot: Snapshot,
        probe: Probe,
        writable_keys: Sequence[bytes],
        changed_keys: set[bytes],
        numbers: Sequence[int],
        match: Match | None = None,
    ) -> list[Check]:
        """The checks that what was looked at is as it was seen.

        No bucket has grown (those of frozen segments cannot), the id is bound as it was, and what it was
        matched to still lives. Where an earlier article of the batch was seen, it must have been committed
        just so: a stranger's entry in its place would give the same length.

        ``tops``: the probe's keys in the writable segment, of which the batch changed those ``touched``.
        """
        space, changed = probe.space, snapshot.writers_by_key
        top = snapshot.stacks[space].writable_tag
        states = changed.keys() & [top + _state_key(n) for n in numbers] if changed else set()
        relied_on = {binding for key in changed_keys | states for binding in changed.get(key, ())}
        values, cut = snapshot.writable_values(space, probe.id, changed_keys), probe.bucket_count
        return [
            snapshot.unchanged_check(space, probe.binding_key),
            *_length_checks(writable_keys[:cut], values[:cut]),
            *_length_checks(writable_keys[cut:], values[cut:]),
            *(ValueEquals(b, snapshot.values[b]) for b in sorted(relied_on)),
            *(self.match_checks(snapshot, space, match) if match else ()),
        ]

    def match_checks(self, snapshot: Snapshot, space: str, match: Match) -> list[Check]:
        """The matched version is neither dead nor re-pointed since, its canonical article not deleted."""
        return [
            snapshot.unchanged_check(space, _state_key(match.number)),
            ValueEquals(snapshot.writable_key(space, keys.tombstone(b"", match.canonical_first)), None),
        ]


def _values_read(snapshot: Snapshot, probes: Sequence[Probe], part: slice) -> list[bytes | None]:
    """A part of what each look-up read, layer by layer, one look-up after another."""
    return [
        value
        for probe in probes
        for layer in snapshot.lookup_values(probe.space, probe.id)
        for value in layer[part]
    ]


def _bucket_keys(tag: bytes, probes: Sequence[Probe]) -> Iterator[list[bytes]]:
    """The buckets of each, which are of one space and radius."""
    if probes:
        spelt, step = (
            keys.block_buckets_each(tag, [probe.probe_plan for probe in probes]),
            probes[0].bucket_count,
        )
        yield from (spelt[i : i + step] for i in range(0, len(spelt), step))


def _length_checks(writable_keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[Check]:
    return [LengthsUnchanged(tuple(writable_keys), tuple(values))] if writable_keys else []


@lru_cache(maxsize=4096)  # asked for three times of each candidate, and articles of a round share many
def _state_key(number: int) -> bytes:
    return keys.state(b"", number)


@lru_cache(maxsize=4096)
def _record_key(space: str, number: int) -> bytes:
    return keys.record(space, number)
