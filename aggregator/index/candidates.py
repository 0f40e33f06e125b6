"""Comparison of an article with those that a lookup found: the candidates for its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import IGNORED_LOW_BITS, MAX_UINT32, NO_OVERLAP, estimate_overlaps
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.term_profile import cosines, profile_weights
from aggregator.dedup.copy_rule import Evidence, hours_between, is_same_outlet
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate, cosine
from aggregator.domain import Analysis, Article, ArticleRecord, RelatedItem, Sketch, arrival_ms_of
from aggregator.index import keys
from aggregator.index.bindings import Binding, CanonicalPointer, decode_binding, decode_pointer
from aggregator.index.codec.postings import entries_of_terms, numbers_within, shares_of_terms, top_by_terms
from aggregator.index.codec.record_codec import CandidateRecord, decode_record_summary
from aggregator.index.lookup import MAX_CANDIDATES, RADIUS_BITS, Lookup, Probe
from aggregator.index.segments import Segments, decode_samples
from aggregator.index.snapshot import Snapshot


class _LiveCandidate(NamedTuple):
    """``is_certain``: an exact copy, or in the group of the own id."""

    stored: CandidateRecord
    pointer: CanonicalPointer | None
    is_certain: bool


def build_candidates(
    snapshot: Snapshot, probe: Probe, numbers: Sequence[int], policy: Policy, article: Article, now_ms: int
) -> list[Candidate]:
    """The live ones of ``numbers`` that can matter to the verdict on ``article`` or its related articles."""
    live = _live_articles(snapshot, probe, numbers)
    if not live:
        return []
    subject = probe.analysis
    min_containment = 0.0 if any(each.is_certain for each in live) else policy.containment_floor
    overlaps = estimate_overlaps(subject.sketch, [each.stored.sketch for each in live], min_containment)
    candidates = []
    for (stored, pointer, is_certain), overlap in zip(live, overlaps, strict=True):
        distance = hamming_distance(subject.fingerprint, stored.fingerprint)
        needs_terms = distance <= policy.related_bits or (
            policy.name == "verified" and policy.copy_rule.may_match(overlap)
        )
        if not (is_certain or needs_terms) or stored.texts.id == probe.id:
            continue
        record = stored.record  # whole only now, of few
        evidence = Evidence(
            overlap,
            cosine(subject.terms, record.terms) if needs_terms else 0.0,
            distance,
            is_same_outlet(article.source, record.source),
            hours_between(
                article.published_at_ms, record.published_at_ms, now_ms, arrival_ms_of(record.number)
            ),
        )
        canonical = (pointer.id, pointer.first_version) if pointer else (record.id, record.first_version)
        candidates.append(Candidate(record, canonical, evidence, pointer is None or pointer.kept))
    return candidates


def rank(
    candidates: Iterable[Candidate], *, exclude_group: int | None, limit: int
) -> tuple[RelatedItem, ...]:
    """At most ``limit`` candidates, most similar first (ties: latest first), one of each duplicate group.

    By the cosine of their top terms; the fingerprint is too coarse. None of ``exclude_group``, its own.
    """
    groups = dict[int | None, Candidate]()
    for c in sorted(candidates, key=lambda c: (-round(c.evidence.similarity, 3), -c.record.number)):
        groups.setdefault(c.canonical[1], c)
    groups.pop(exclude_group, None)
    shown = list(groups.values())[:limit]
    return tuple([RelatedItem.of(c.record, c.evidence.distance, c.evidence.similarity) for c in shown])


def mark_unlike(
    snapshot: Snapshot, lookups: Sequence[tuple[Probe, Sequence[int]]], policies: Sequence[Policy]
) -> None:
    """Find those of each lookup's candidates that cannot matter unless the batch changes their state.

    They have another text, are too far by bits and share too little wording. Nearly all are rejected here,
    those of all lookups in one pass: 13 % of the CPU of ingest -> 4 %.
    """
    pairs = [
        (i, stored)
        for i, (probe, numbers) in enumerate(lookups)
        for stored in map(snapshot.records.get, numbers)
        if stored is not None and stored.text_hash != probe.analysis.text_hash
    ]
    if not pairs:
        return
    subjects, owners = [probe.analysis for probe, _ in lookups], np.array([i for i, _ in pairs])
    bounds = _containment_bounds([s.sketch for s in subjects], [stored.sketch for _, stored in pairs], owners)
    own_bits = np.array([subject.fingerprint for subject in subjects], np.uint64)[owners]
    distances = np.bitwise_count(own_bits ^ np.array([stored.fingerprint for _, stored in pairs], np.uint64))
    floors, radii = np.array([(p.containment_floor, p.related_bits) for p in policies])[owners].T
    for i, stored in map(pairs.__getitem__, ((bounds < floors) & (distances > radii)).nonzero()[0].tolist()):
        probe = lookups[i][0]
        state = snapshot.newest_value(probe.space, keys.state(stored.number))
        if not state or state == keys.DEAD or decode_pointer(state).id != probe.id:
            snapshot.unlike.setdefault(probe.id, set()).add(stored.number)


_KEY_BITS, _TABLE_BITS = 32 - IGNORED_LOW_BITS, 12  # of a hash: those compared, those that seem equal


def _containment_bounds(
    subjects: Sequence[Sketch], others: Sequence[Sketch], owners: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Upper bounds of the containment of ``others`` and the subject with the number in ``owners``, (n,).

    Hashes of which ``_TABLE_BITS`` are equal count as common, 3 % of those of another text.
    """
    own_hashes, own_ends = _joined_hashes(subjects, np.arange(len(subjects)))
    hashes, ends = _joined_hashes(others, owners)
    table = np.zeros(len(subjects) << _TABLE_BITS, np.bool_)
    own_rows, rows = (
        (each >> _KEY_BITS << _TABLE_BITS) + (each & (1 << _TABLE_BITS) - 1) for each in (own_hashes, hashes)
    )
    table[own_rows] = True
    # Up to the smaller of two samples' largest hashes both are complete.
    limits = np.minimum(_complete_up_to(subjects)[owners], _complete_up_to(others)) + (owners << _KEY_BITS)
    counted = own_hashes.searchsorted(limits, "right") - np.append(0, own_ends)[owners]
    counted = np.minimum(counted, _count_per_run(hashes <= limits.repeat(np.diff(ends, prepend=0)), ends))
    bounds: npt.NDArray[np.float64] = _count_per_run(table[rows], ends) / np.maximum(counted, 1)
    return bounds


def _joined_hashes(
    sketches: Sequence[Sketch], owners: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The sampled hashes without their low bits, each with its owner above; the end of each sketch."""
    sizes = np.array([len(sketch.sample) for sketch in sketches])
    hashes = np.concatenate([sketch.sample for sketch in sketches]) >> np.uint32(IGNORED_LOW_BITS)
    return (owners << _KEY_BITS).repeat(sizes) + hashes, sizes.cumsum()


def _complete_up_to(sketches: Sequence[Sketch]) -> npt.NDArray[np.int64]:
    """The largest hash up to which each sample is complete."""
    last = [int(s.sample[-1]) if 0 < len(s.sample) < s.size else MAX_UINT32 for s in sketches]
    return np.array(last) >> IGNORED_LOW_BITS


def _count_per_run(flags: npt.NDArray[np.bool_], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.diff(flags.nonzero()[0].searchsorted(ends), prepend=0)


def _live_articles(snapshot: Snapshot, probe: Probe, numbers: Sequence[int]) -> list[_LiveCandidate]:
    live = []
    unlike, tag = snapshot.unlike.get(probe.id, ()), snapshot.stacks[probe.space].writable_tag
    for number in numbers:
        if number in unlike and tag + keys.state(number) not in snapshot.writers:
            continue
        stored, state = snapshot.records.get(number), snapshot.newest_value(probe.space, keys.state(number))
        if stored is None or state == keys.DEAD:
            continue
        pointer = decode_pointer(state) if state else None
        is_certain = stored.text_hash == probe.analysis.text_hash or (
            pointer is not None and pointer.id == probe.id
        )
        if is_certain and stored.texts.id == probe.id:
            continue
        live.append(_LiveCandidate(stored, pointer, is_certain))
    return live


# Limit for candidates that share terms, those of largest weight first: 128 would find 2 to 5 % more of the
# nearest articles, and take a third more time (docs/benchmarks/related.md).
MAX_TERM_CANDIDATES = 96
RARE_SHARE = 0.002  # of the stored articles: a term of rarity 1


@dataclass(frozen=True, slots=True)
class RelatedCandidates:
    """Article numbers that ``find`` returned, and the newest binding of the subject's id while it is live.

    ``rarity``: of the subject's terms in this index, 0 (every article) to 1 (one of 500).
    """

    snapshot: Snapshot
    probe: Probe
    numbers: tuple[int, ...]
    own_binding: Binding | None
    rarity: Mapping[str, float]


class RelatedLookup:
    """Finds related articles (``queries/related.py``)."""

    def __init__(self, lookup: Lookup, segments: Segments, spaces: Sequence[str]) -> None:
        self._lookup = lookup
        self._segments = segments
        self._spaces = tuple(spaces)

    async def find(self, article: Analysis | ArticleRecord, id_: str) -> RelatedCandidates:
        """The articles that are near by bits or share terms that are rare in the index: one round trip."""
        probe = self._lookup.probe(article, id_)
        space, profile = probe.space, profile_weights(article)
        hashes = [keys.term_hash(term) for term, _ in profile]
        block_buckets = keys.block_buckets(b"", [probe.probe_plan])
        term_buckets = keys.term_buckets(b"", hashes)
        own_key = probe.binding_key
        wanted = {served: [own_key] for served in self._spaces}
        wanted[space] = [own_key, keys.SAMPLES, *block_buckets, *term_buckets]
        snapshot = await self._segments.read(wanted)
        floor = snapshot.stacks[space].floor
        near, distances = numbers_within(
            snapshot.values_in_all_segments(space, block_buckets), probe.probe_plan, RADIUS_BITS, floor
        )
        entries, terms = entries_of_terms(snapshot.values_in_all_segments(space, term_buckets), hashes, floor)
        samples = b"".join(filter(None, snapshot.values_in_all_segments(space, [keys.SAMPLES])))
        counts, full = np.bincount(terms, minlength=len(hashes)), keys.MAX_ARTICLES_PER_TERM
        shares = shares_of_terms(entries, terms, counts, decode_samples(samples), full)
        weights = np.array([weight for _, weight in profile]) * -np.log(shares)
        weights[counts >= full] /= 2  # else the newest articles would be ahead
        by_terms = top_by_terms(entries, terms, weights)
        rarity = np.clip(np.log(shares) / np.log(RARE_SHARE), 0, 1).tolist()
        by_distance = near[np.lexsort((near, distances))]
        numbers = by_distance[:MAX_CANDIDATES].tolist() + by_terms[:MAX_TERM_CANDIDATES].tolist()
        bound = [
            decode_binding(raw) for s in wanted if (raw := snapshot.newest_value(s, own_key)) is not None
        ]
        newest = max(bound, key=lambda binding: binding.number, default=None)
        return RelatedCandidates(
            snapshot,
            probe,
            tuple(dict.fromkeys(numbers)),
            newest if newest is not None and newest.number >= floor else None,
            dict(zip((term for term, _ in profile), rarity, strict=True)),
        )

    async def load_candidates(
        self, found: RelatedCandidates, extra_numbers: Iterable[int] = ()
    ) -> list[Candidate]:
        """The live articles among those found and ``extra_numbers``, compared by terms: one round trip."""
        space, subject = found.probe.space, found.probe.analysis
        numbers = list(dict.fromkeys((*found.numbers, *extra_numbers)))
        spaces = dict.fromkeys(numbers, space)
        await self._lookup.load_into_snapshot(
            found.snapshot,
            spaces,
            lambda number: [keys.state(number), keys.duplicate_ids(number)],
            lambda stored: [CandidateRecord.of(decode_record_summary(*item)) for item in stored],
        )
        states = [found.snapshot.newest_value(space, keys.state(number)) for number in numbers]
        live: list[tuple[ArticleRecord, tuple[str, int]]] = []
        for record, state in zip(map(found.snapshot.record, numbers), states, strict=True):
            if record is None or record.id == found.probe.id or state == keys.DEAD:
                continue
            pointer = decode_pointer(state) if state else record
            live.append((record, (pointer.id, pointer.first_version)))
        similarities = cosines(subject, [record for record, _ in live])
        return [
            Candidate(
                record,
                canonical,
                Evidence(NO_OVERLAP, similarity, hamming_distance(subject.fingerprint, record.fingerprint)),
            )
            for (record, canonical), similarity in zip(live, similarities.tolist(), strict=True)
        ]

    async def copies_of(self, found: RelatedCandidates, groups: Sequence[int]) -> dict[int, int]:
        """The number of copies in each duplicate group; those deleted lately count as well."""
        space, lists = found.probe.space, list(map(keys.duplicate_ids, groups))
        tag = found.snapshot.stacks[space].writable_tag
        if missing := [key for key in lists if tag + key not in found.snapshot.values]:  # of updated articles
            found.snapshot.values.update((await self._segments.read({space: missing})).values)
        rows = [b"".join(filter(None, found.snapshot.values_in_all_segments(space, [key]))) for key in lists]
        counts = [len({row[i : i + 16] for i in range(0, len(row), 16)}) for row in rows]
        return dict(zip(groups, counts, strict=True))

    async def article_numbers_of(self, space: str, ids: Sequence[str]) -> list[int]:
        """Article numbers of those of the ids that are bound in this space: one round trip."""
        wanted = [keys.binding(id_) for id_ in ids]
        snapshot = await self._segments.read({space: wanted})
        return [decode_binding(raw).number for key in wanted if (raw := snapshot.newest_value(space, key))]
