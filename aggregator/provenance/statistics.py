"""Statistics of outlets from a window of publications: originals, copies, lags, syndication families. Pure.

An article is an **original** if no other outlet published its text earlier, a **copy** if one did, and a
**repeat** if its own outlet published the text before. Articles of the same time are both originals.
**Families** are groups of outlets that publish the same texts, by average linkage (UPGMA) of the share of
common texts (docs/design/provenance.md); a republisher of several newswires does not join them.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

import msgspec
import numpy as np

from aggregator.provenance.extraction import MIN_CHECKED, ExtractionHealth
from aggregator.provenance.window import UNNAMED, Publications
from aggregator.time_units import DAY_MS

MIN_SHARE = 0.1
MIN_SHARED_TEXTS = 5
MIN_DAYS = 3
MAX_LINKED_OUTLETS = 2_000  # those of the strongest links; the others join no family

Pair = tuple[int, int]
MAX_SOURCES = 5_000  # reported, those with most articles
MAX_PARTNERS = 10  # outlets listed as copied from, and as copying
MAX_PAIRS = 200_000
MAX_OUTLETS_OF_TEXT = 60  # of one text, the earliest; more would make too many pairs
GROUPS_PER_STEP = 500


@dataclass(slots=True)
class SharedTexts:
    """Texts that two outlets published: their number and a bit mask of their days, modulo 64."""

    count: int = 0
    days: int = 0


def find_families(
    texts: Mapping[int, int],
    shared: Mapping[Pair, SharedTexts],
    min_share: float = MIN_SHARE,
    min_shared_texts: int = MIN_SHARED_TEXTS,
    min_days: int = MIN_DAYS,
) -> list[tuple[int, ...]]:
    """Groups of outlets that share texts, the largest first, each in one at most; see the module."""
    fewest = min_shared_texts / min_share
    shares = {
        pair: found.count / max(min(map(texts.__getitem__, pair)), fewest) for pair, found in shared.items()
    }
    links = [
        pair
        for pair, found in shared.items()
        if found.count >= min_shared_texts
        and found.days.bit_count() >= min_days
        and shares[pair] >= min_share
    ]
    links.sort(key=lambda pair: (-shares[pair], pair))
    linked = list(dict.fromkeys(outlet for pair in links for outlet in pair))[:MAX_LINKED_OUTLETS]
    return sorted(_join(linked, shares, min_share), key=lambda family: (-len(family), family))


def _join(outlets: Collection[int], shares: Mapping[Pair, float], min_share: float) -> list[tuple[int, ...]]:
    """Average linkage of single outlets; a joined group has a new number."""
    members = {outlet: [outlet] for outlet in outlets}
    # Of two groups: the sum of the shares of the pairs between them, and how many of these are close.
    between: dict[int, dict[int, tuple[float, int]]] = {outlet: {} for outlet in outlets}
    for (a, b), share in shares.items():
        if a in between and b in between:
            between[a][b] = between[b][a] = share, int(share >= min_share / 2)
    queue = [(-share, a, b) for a, row in between.items() for b, (share, _) in row.items() if a < b]
    heapq.heapify(queue)
    numbers = itertools.count(max(outlets, default=0) + 1)
    while queue:
        mean, a, b = heapq.heappop(queue)
        if -mean < min_share:
            break
        if a not in members or b not in members:
            continue
        if 2 * between[a][b][1] <= len(members[a]) * len(members[b]):
            continue  # it returns with another mean if one of the two groups grows
        new = next(numbers)
        members[new] = members.pop(a) + members.pop(b)
        row, other_row = between.pop(a), between.pop(b)
        between[new] = {}
        for other in (row.keys() | other_row.keys()) & members.keys():
            (share, close), (more, more_close) = row.get(other, (0.0, 0)), other_row.get(other, (0.0, 0))
            between[new][other] = between[other][new] = share + more, close + more_close
            heapq.heappush(queue, (-(share + more) / (len(members[new]) * len(members[other])), other, new))
    return [tuple(sorted(family)) for family in members.values() if len(family) > 1]


class Partner(msgspec.Struct, frozen=True, array_like=True):
    """Another outlet, and the number of texts."""

    name: str
    texts: int


class SourceStatistics(msgspec.Struct, frozen=True, array_like=True):
    """One outlet; articles = originals + copies + repeats.

    undated            articles ordered by their arrival or day, for lack of a publication time
    copied             originals that other outlets published later
    median_lag_ms      of its copies behind the first publisher; family: position in the report
    """

    name: str
    articles: int
    originals: int
    copies: int
    repeats: int
    undated: int
    copied: int
    median_lag_ms: int | None
    copied_from: tuple[Partner, ...]
    copied_by: tuple[Partner, ...]
    family: int | None = None
    extraction: ExtractionHealth = ExtractionHealth()


class Family(msgspec.Struct, frozen=True, array_like=True):
    """Outlets, those with most articles first, that share ``texts``; ``first``: published first by each."""

    members: tuple[str, ...]
    texts: int
    first: tuple[Partner, ...]


class SourcesReport(msgspec.Struct, frozen=True, array_like=True):
    """Statistics of the outlets of a window since ``since_ms``, those with most articles first."""

    computed_ms: int
    since_ms: int | None
    articles: int
    unnamed: int
    sources: tuple[SourceStatistics, ...]
    families: tuple[Family, ...]
    truncated: bool = False

    @property
    def usual_problems(self) -> dict[str, tuple[int, int]]:
        """By problem ``frequent`` in half of the checked outlets or more: in how many, and of how many."""
        checked = [s.extraction for s in self.sources if s.extraction.checked >= MIN_CHECKED]
        counts, size = Counter(name for each in checked for name in each.frequent), len(checked)
        return {name: (count, size) for name, count in counts.items() if size > 1 and 2 * count >= size}


@dataclass(slots=True)
class _Counts:
    copies: int = 0
    repeats: int = 0
    copied: int = 0
    lags: list[int] = field(default_factory=list)
    copied_from: Counter[int] = field(default_factory=Counter)
    copied_by: Counter[int] = field(default_factory=Counter)


class SourceCounter:
    """Counts a window group by group; run ``steps`` to the end, then ``report``."""

    def __init__(self, publications: Publications) -> None:
        self.window = publications
        self._counts: dict[int, _Counts] = defaultdict(_Counts)
        self.shared: dict[Pair, SharedTexts] = {}
        self.texts: Counter[int] = Counter()
        self._shared_groups: list[tuple[int, ...]] = []  # outlets of each text, in order of publication

    def steps(self) -> Iterator[None]:
        """Count; yields after each GROUPS_PER_STEP texts of several articles."""
        window = self.window
        articles = np.bincount(window.outlet, minlength=len(window.outlets))
        starts = np.flatnonzero(np.diff(window.group, prepend=np.uint64(0)) != 0)
        ends = np.append(starts[1:], len(window))
        is_several = ends - starts > 1
        several = zip(starts[is_several].tolist(), ends[is_several].tolist(), strict=True)
        self.texts.update({outlet: int(count) for outlet, count in enumerate(articles) if count})
        for number, (start, end) in enumerate(several):
            self._count_text(*(c[start:end].tolist() for c in (window.outlet, window.at_ms, window.is_dated)))
            if number % GROUPS_PER_STEP == GROUPS_PER_STEP - 1:
                yield

    def _count_text(self, outlets: list[int], times: list[int], dated: list[bool]) -> None:
        first_at: dict[int, int] = {}
        for outlet, at_ms, is_dated in zip(outlets, times, dated, strict=True):
            if outlet in first_at:
                if outlet != UNNAMED:
                    self._counts[outlet].repeats += 1
                    self.texts[outlet] -= 1
                continue
            first_at[outlet] = at_ms
            if at_ms > times[0]:
                self._count_copy(outlet, outlets[0])
                # Between a publication and an arrival is no delay.
                self._counts[outlet].lags += [at_ms - times[0]] * (is_dated == dated[0])
        named = [outlet for outlet in first_at if outlet != UNNAMED][:MAX_OUTLETS_OF_TEXT]
        if len(named) < 2:
            return
        if any(first_at[outlet] > times[0] for outlet in named) and outlets[0] != UNNAMED:
            self._counts[outlets[0]].copied += 1
        self._shared_groups.append(tuple(named))
        for pair in combinations(sorted(named), 2):
            found = self.shared.get(pair)
            if found is None:
                if len(self.shared) >= MAX_PAIRS:
                    continue
                found = self.shared[pair] = SharedTexts()
            found.count += 1
            found.days |= 1 << times[0] // DAY_MS % 64

    def _count_copy(self, outlet: int, original: int) -> None:
        counts = self._counts[outlet]
        counts.copies += 1
        if UNNAMED not in (original, outlet):
            counts.copied_from[original] += 1
            self._counts[original].copied_by[outlet] += 1

    def report(self, computed_ms: int, since_ms: int | None) -> SourcesReport:
        """The statistics of everything counted."""
        window = self.window
        articles = np.bincount(window.outlet, minlength=len(window.outlets))
        undated = np.bincount(window.outlet[~window.is_dated], minlength=len(window.outlets))
        ranked = sorted(
            (n for n in range(1, len(articles)) if articles[n]),
            key=lambda n: (-articles[n], window.outlets[n]),
        )
        shown = ranked[:MAX_SOURCES]
        rank = {outlet: position for position, outlet in enumerate(ranked)}
        families = [
            sorted(members, key=rank.__getitem__) for members in find_families(self.texts, self.shared)
        ]
        family_of = {outlet: n for n, members in enumerate(families) for outlet in members}
        return SourcesReport(
            computed_ms,
            since_ms,
            len(window),
            int(articles[UNNAMED]) if len(articles) else 0,
            tuple(self._source(n, int(articles[n]), int(undated[n]), family_of.get(n)) for n in shown),
            self._families(families, family_of),
            len(ranked) > MAX_SOURCES,
        )

    def _source(self, outlet: int, articles: int, undated: int, family: int | None) -> SourceStatistics:
        counts = self._counts.get(outlet) or _Counts()
        return SourceStatistics(
            name=self.window.outlets[outlet],
            articles=articles,
            originals=articles - counts.copies - counts.repeats,
            copies=counts.copies,
            repeats=counts.repeats,
            undated=undated,
            copied=counts.copied,
            median_lag_ms=round(median(counts.lags)) if counts.lags else None,
            copied_from=self._partners(counts.copied_from),
            copied_by=self._partners(counts.copied_by),
            family=family,
            extraction=self.window.health[outlet],
        )

    def _families(self, families: list[list[int]], family_of: dict[int, int]) -> tuple[Family, ...]:
        texts: Counter[int] = Counter()
        first: dict[int, Counter[int]] = defaultdict(Counter)
        for outlets in self._shared_groups:
            present: dict[int, list[int]] = defaultdict(list)
            for outlet in outlets:
                if outlet in family_of:
                    present[family_of[outlet]].append(outlet)
            for family, members in present.items():
                if len(members) > 1:
                    texts[family] += 1
                    first[family][members[0]] += 1
        return tuple(
            Family(
                tuple(self.window.outlets[outlet] for outlet in members), texts[n], self._partners(first[n])
            )
            for n, members in enumerate(families)
        )

    def _partners(self, counter: Counter[int]) -> tuple[Partner, ...]:
        return tuple(Partner(self.window.outlets[n], count) for n, count in counter.most_common(MAX_PARTNERS))
