"""Comparison of an article with those that a lookup found: the candidates for its verdict."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from aggregator.analysis.shingles import OverlapEstimate, estimate_overlaps
from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.boilerplate import SourceBoilerplate
from aggregator.dedup.evidence import Arrival, Evidence, hours_between, is_same_outlet, is_same_source
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate, cosine_to
from aggregator.index import keys
from aggregator.index.codec.binding_codec import CanonicalPointer, decode_pointer
from aggregator.index.codec.lazy_record import CandidateRecord
from aggregator.index.lookup import Probe
from aggregator.index.snapshot import Snapshot


class _LiveCandidate(NamedTuple):
    """``is_certain``: an exact copy, or in the group of the own id."""

    stored: CandidateRecord
    pointer: CanonicalPointer | None
    is_certain: bool


def build_candidates(
    snapshot: Snapshot, probe: Probe, numbers: Sequence[int], policy: Policy, arrival: Arrival
) -> list[Candidate]:
    """The live articles among ``numbers`` that can matter to the verdict or the related articles."""
    live = _live_articles(snapshot, probe, numbers)
    if not live:
        return []
    subject = probe.analysis
    min_containment = 0.0 if any(each.is_certain for each in live) else policy.containment_floor
    overlaps = estimate_overlaps(subject.sketch, [each.stored.sketch for each in live], min_containment)
    distances = [hamming_distance(subject.fingerprint, each.stored.fingerprint) for each in live]
    may_match = [
        _may_match(stored, overlap, arrival.source, policy)
        for (stored, _, _), overlap in zip(live, overlaps, strict=True)
    ]
    can_matter = [
        is_certain or matching or distance <= policy.related_bits
        for (_, _, is_certain), matching, distance in zip(live, may_match, distances, strict=True)
    ]
    if not any(can_matter):
        return []
    similarity_to = cosine_to(subject.terms)
    sources = None
    if policy.name == "verified" and any(may_match):
        sources = _source_boilerplate(probe, arrival.source, live, overlaps, policy)
    candidates = []
    for i in itertools.compress(range(len(live)), can_matter):
        stored, pointer, is_certain = live[i]
        if stored.id == probe.id:
            continue
        overlap, boilerplate = sources.remove_from(i) if sources is not None else (overlaps[i], 0.0)
        is_near = distances[i] <= policy.related_bits
        needs_terms = is_near or (may_match[i] and _may_match(stored, overlap, arrival.source, policy))
        if not (needs_terms or is_certain):
            continue  # it shares the boilerplate of its outlet and nothing else
        record = stored.record  # whole only now, of few
        evidence = Evidence(
            overlap,
            similarity_to(record.terms) if needs_terms else 0.0,
            distances[i],
            is_same_outlet(arrival, record),
            hours_between(arrival, record, arrival.arrived_ms, record.arrived_ms),
            boilerplate,
        )
        canonical = (pointer.id, pointer.first_version) if pointer else (record.id, record.first_version)
        candidates.append(Candidate(record, canonical, evidence))
    return candidates


def _live_articles(snapshot: Snapshot, probe: Probe, numbers: Sequence[int]) -> list[_LiveCandidate]:
    live = []
    states = snapshot.newest_values(probe.space, list(map(keys.untagged_state, numbers)))
    for stored, state in zip(map(snapshot.records.get, numbers), states, strict=True):
        if stored is None or state == keys.DEAD:
            continue
        pointer = decode_pointer(state) if state else None
        is_certain = stored.text_hash == probe.analysis.text_hash or (
            pointer is not None and pointer.id == probe.id
        )
        if is_certain and stored.id == probe.id:
            continue
        live.append(_LiveCandidate(stored, pointer, is_certain))
    return live


def _may_match(stored: CandidateRecord, overlap: OverlapEstimate, source: str, policy: Policy) -> bool:
    # The source takes 5 us, and nearly all candidates are below the floor.
    return overlap.containment >= policy.containment_floor and policy.may_match(
        overlap, same_outlet=is_same_source(source, stored.source)
    )


def _source_boilerplate(
    probe: Probe,
    source: str,
    live: Sequence[_LiveCandidate],
    overlaps: Sequence[OverlapEstimate],
    policy: Policy,
) -> SourceBoilerplate:
    return SourceBoilerplate(
        probe.analysis.sketch,
        source,
        [(stored.source if stored.id != probe.id else "", stored.sketch) for stored, _, _ in live],
        overlaps,
        policy,
    )
