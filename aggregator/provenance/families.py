"""Syndication families: groups of outlets that publish the same texts. Pure.

The share of two outlets is the number of texts that both published, divided by the number of texts of the
smaller one. Families are found by average linkage (UPGMA): the two groups with the highest mean share are
joined as long as it reaches ``MIN_SHARE``, and if more than half of the pairs between them have at least half
of ``MIN_SHARE``. So a republisher that takes texts from several newswires does not join them into one family,
as connected components or the mean alone would.

The constants were chosen on Russian channels and tried on English outlets, and the other way round
(scripts/bench provenance).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

MIN_SHARE = 0.1
MIN_SHARED_TEXTS = 5
MIN_DAYS = 3
MAX_LINKED_OUTLETS = 2_000  # those of the strongest links; the others join no family

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FamilyRule:
    """When two outlets are linked: shared texts, different days, share of the smaller one's texts."""

    min_share: float = MIN_SHARE
    min_shared_texts: int = MIN_SHARED_TEXTS
    min_days: int = MIN_DAYS

    def share(self, shared: int, texts: int) -> float:
        """Share of ``shared`` in ``texts`` of the smaller outlet, 0..1.

        Few texts count as the number at which ``min_shared_texts`` are ``min_share``: so 3 of 3 texts are
        no evidence.
        """
        return shared / max(texts, self.min_shared_texts / self.min_share)


@dataclass(slots=True)
class SharedTexts:
    """Texts that two outlets published: their number and a bit mask of their days, modulo 64."""

    count: int = 0
    days: int = 0

    def add(self, day: int) -> None:
        """Count a text of this day (days since 1970)."""
        self.count += 1
        self.days |= 1 << day % 64


def find_families(
    texts: Mapping[int, int], shared: Mapping[Pair, SharedTexts], rule: FamilyRule | None = None
) -> list[tuple[int, ...]]:
    """Groups of two or more outlets, the largest first; an outlet is in one at most.

    ``texts``: number of different texts of each outlet; ``shared``: of pairs, smaller number first.
    """
    rule = rule or FamilyRule()
    shares = {
        pair: rule.share(found.count, min(texts[pair[0]], texts[pair[1]])) for pair, found in shared.items()
    }
    links = [
        pair
        for pair, found in shared.items()
        if found.count >= rule.min_shared_texts
        and found.days.bit_count() >= rule.min_days
        and shares[pair] >= rule.min_share
    ]
    links.sort(key=lambda pair: (-shares[pair], pair))
    linked = list(dict.fromkeys(outlet for pair in links for outlet in pair))[:MAX_LINKED_OUTLETS]
    families = _join(linked, shares, rule.min_share)
    return sorted(families, key=lambda family: (-len(family), family))


@dataclass(frozen=True, slots=True)
class _Between:
    """Two groups of outlets: sum of the shares of the pairs between them, and how many of these are close."""

    shares: float = 0.0
    close: int = 0

    def plus(self, other: _Between) -> _Between:
        return _Between(self.shares + other.shares, self.close + other.close)


_NOTHING = _Between()


def _join(outlets: Collection[int], shares: Mapping[Pair, float], min_share: float) -> list[tuple[int, ...]]:
    """Average linkage of single outlets; a joined group has a new number."""
    members = {outlet: [outlet] for outlet in outlets}
    between: dict[int, dict[int, _Between]] = {outlet: {} for outlet in outlets}
    for (a, b), share in shares.items():
        if a in between and b in between:
            between[a][b] = between[b][a] = _Between(share, int(share >= min_share / 2))
    queue = [(-found.shares, a, b) for a, row in between.items() for b, found in row.items() if a < b]
    heapq.heapify(queue)
    numbers = itertools.count(max(outlets, default=0) + 1)
    while queue:
        mean, a, b = heapq.heappop(queue)
        if -mean < min_share:
            break
        if a not in members or b not in members:
            continue
        if 2 * between[a][b].close <= len(members[a]) * len(members[b]):
            continue  # it returns with another mean if one of the two groups grows
        new = next(numbers)
        members[new] = members.pop(a) + members.pop(b)
        row, other_row = between.pop(a), between.pop(b)
        between[new] = {}
        for other in (row.keys() | other_row.keys()) & members.keys():
            joined = row.get(other, _NOTHING).plus(other_row.get(other, _NOTHING))
            between[new][other] = between[other][new] = joined
            pairs = len(members[new]) * len(members[other])
            heapq.heappush(queue, (-joined.shares / pairs, other, new))
    return [tuple(sorted(family)) for family in members.values() if len(family) > 1]
