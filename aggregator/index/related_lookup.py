"""What stands around an article, for readers? Two round trips, whatever the size of the index.

``around`` reads 68 buckets and the newest articles under a dozen terms, and in the same instant what the article's
own id is bound to; ``examined`` reads what was found there. Nothing is decided on it, so nothing is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.dedup.verdict import Candidate
from aggregator.domain import Analysis
from aggregator.index import keys, term_index
from aggregator.index.codec.postings import numbers_within, top_by_terms
from aggregator.index.codec.records import Binding, decode_binding
from aggregator.index.lookup import MAX_CANDIDATES, RADIUS_BITS, Lookup, Probe
from aggregator.index.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RelatedCandidates:
    """What one read found: article numbers, and the binding of the id that was asked for while it is kept."""

    snapshot: Snapshot
    probe: Probe
    numbers: tuple[int, ...]
    own_binding: Binding | None


class RelatedLookup(Lookup):
    """Reading for ``related.py``."""

    async def find_related(self, analysis: Analysis, id_: str, now_ms: int) -> RelatedCandidates:
        """What is near by bits or has distinctive terms in common: one round trip."""
        probe = self.probe(analysis, id_)
        space, weights = probe.space, term_index.query_weights(analysis.terms)
        buckets = keys.block_buckets(b"", probe.probe_plan)
        under = [keys.term_bucket(b"", hashed) for hashed in weights]
        own = keys.binding_by_id(b"", id_)
        wanted = {served: [own] for served in self.spaces} | {space: [own, *buckets, *under]}
        snapshot = await self.segments.read(wanted)
        floor = self.floor(snapshot.stacks[space], now_ms)
        near, distances = numbers_within(
            snapshot.values_in_all_segments(space, buckets), probe.probe_plan, RADIUS_BITS, floor
        )
        alike = top_by_terms(snapshot.values_in_all_segments(space, under), weights, floor)
        numbers = near[np.lexsort((near, distances))][:MAX_CANDIDATES].tolist()
        bound = [decode_binding(raw) for s in wanted if (raw := snapshot.newest_value(s, own)) is not None]
        newest = max(bound, key=lambda binding: binding.number, default=None)
        return RelatedCandidates(
            snapshot,
            probe,
            tuple(dict.fromkeys(numbers + alike[:MAX_CANDIDATES].tolist())),
            newest if newest is not None and newest.number >= floor else None,
        )

    async def load_candidates(
        self, found: RelatedCandidates, extra_numbers: Iterable[int] = ()
    ) -> list[Candidate]:
        """The live articles among what was found, and among ``more`` of the same space: one round trip."""
        numbers, space = dict.fromkeys((*found.numbers, *extra_numbers)), found.probe.space
        await self.load_into_snapshot(found.snapshot, dict.fromkeys(numbers, space))
        return self.build_candidates(found.snapshot, found.probe, list(numbers))

    async def article_numbers_of(self, space: str, ids: Sequence[str]) -> list[int]:
        """Article numbers of the ids that are bound in this space: one round trip."""
        wanted = [keys.binding_by_id(b"", id_) for id_ in ids]
        snapshot = await self.segments.read({space: wanted})
        return [decode_binding(raw).number for key in wanted if (raw := snapshot.newest_value(space, key))]
