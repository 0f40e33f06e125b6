"""Lookup of related articles for readers, by bits and by terms: two round trips, whatever the index size.

``find`` reads 68 block buckets, the newest articles under two dozen terms, and the binding of the article's
own id; ``load_candidates`` reads the records of what was found. Nothing is decided on the results, so
nothing is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.analysis.shingles import NO_OVERLAP
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.term_profile import cosines
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.verdict import Candidate
from aggregator.domain import Analysis, ArticleRecord
from aggregator.index import keys
from aggregator.index.codec.binding_codec import Binding, decode_binding, decode_pointer
from aggregator.index.codec.lazy_record import decode_summaries
from aggregator.index.codec.postings import numbers_within, top_by_terms
from aggregator.index.lookup import RADIUS_BITS, Lookup, Probe
from aggregator.index.lookup_result import MAX_CANDIDATES
from aggregator.index.segments import Segments
from aggregator.index.snapshot import Snapshot

# Limit for candidates that share terms, those of largest weight first: ``aggregator evaluate related`` finds
# no more from more of them (docs/benchmarks/related.md).
MAX_TERM_CANDIDATES = 128


@dataclass(frozen=True, slots=True)
class RelatedCandidates:
    """Article numbers that ``find`` returned, and the newest binding of the subject's id while it is live."""

    snapshot: Snapshot
    probe: Probe
    numbers: tuple[int, ...]
    own_binding: Binding | None


class RelatedLookup:
    """Finds related articles (``queries/related.py``)."""

    def __init__(self, lookup: Lookup, segments: Segments, spaces: Sequence[str]) -> None:
        self._lookup = lookup
        self._segments = segments
        self._spaces = tuple(spaces)

    async def find(self, article: Analysis | ArticleRecord, id_: str) -> RelatedCandidates:
        """The articles that are near by bits or share distinctive terms: one round trip."""
        probe = self._lookup.probe(article, id_)
        space, weights = probe.space, keys.query_weights(article.terms)
        block_buckets = keys.block_buckets(b"", probe.probe_plan)
        term_buckets = keys.term_buckets(b"", weights)
        own_key = probe.binding_key
        wanted = {served: [own_key] for served in self._spaces}
        wanted[space] = [own_key, *block_buckets, *term_buckets]
        snapshot = await self._segments.read(wanted)
        floor = snapshot.stacks[space].floor
        near, distances = numbers_within(
            snapshot.values_in_all_segments(space, block_buckets), probe.probe_plan, RADIUS_BITS, floor
        )
        by_terms = top_by_terms(snapshot.values_in_all_segments(space, term_buckets), weights, floor)
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
        )

    async def load_candidates(
        self, found: RelatedCandidates, extra_numbers: Iterable[int] = ()
    ) -> list[Candidate]:
        """The live articles among those found and ``extra_numbers``, compared by terms: one round trip."""
        space, subject = found.probe.space, found.probe.analysis
        numbers = list(dict.fromkeys((*found.numbers, *extra_numbers)))
        spaces = dict.fromkeys(numbers, space)
        await self._lookup.load_into_snapshot(found.snapshot, spaces, decode_summaries)
        states = found.snapshot.newest_values(space, [keys.state(b"", number) for number in numbers])
        live: list[tuple[ArticleRecord, tuple[str, int]]] = []
        for record, state in zip(map(found.snapshot.record, numbers), states, strict=True):
            if record is None or record.id == found.probe.id or state == keys.DEAD:
                continue
            pointer = decode_pointer(state) if state else record
            live.append((record, (pointer.id, pointer.first_version)))
        similarities = cosines(
            (subject.terms, subject.minor_terms), [(record.terms, record.minor_terms) for record, _ in live]
        )
        return [
            Candidate(
                record,
                canonical,
                Evidence(NO_OVERLAP, similarity, hamming_distance(subject.fingerprint, record.fingerprint)),
            )
            for (record, canonical), similarity in zip(live, similarities.tolist(), strict=True)
        ]

    async def article_numbers_of(self, space: str, ids: Sequence[str]) -> list[int]:
        """Article numbers of those of the ids that are bound in this space: one round trip."""
        wanted = [keys.binding_by_id(b"", id_) for id_ in ids]
        snapshot = await self._segments.read({space: wanted})
        return [decode_binding(raw).number for key in wanted if (raw := snapshot.newest_value(space, key))]
