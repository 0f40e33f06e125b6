"""The newest publications of the article stream in packed arrays, 42 bytes per article. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.analysis.source import outlet_key, outlet_name
from aggregator.domain import NUMBER_RANDOM_BITS, Problem, StreamItem, arrival_ms_of, publication_time
from aggregator.provenance.extraction import ExtractionHealth, health_of_outlets
from aggregator.time_units import DAY_MS

MAX_ARTICLES = 500_000
MAX_OUTLETS = 20_000
WINDOW_MS = 30 * DAY_MS
UNNAMED = 0  # outlet number of articles without a source, and of outlets beyond MAX_OUTLETS


@dataclass(frozen=True, slots=True)
class Publications:
    """Current versions of the articles of a window, by duplicate group, then by time; arrays of one length.

    ``outlet``: position in ``outlets``, UNNAMED is "", and in ``health``; ``is_dated``: whether the outlet
    stated the time, and is believed.
    """

    group: npt.NDArray[np.uint64]
    outlet: npt.NDArray[np.uint32]
    at_ms: npt.NDArray[np.int64]
    is_dated: npt.NDArray[np.bool_]
    first_version: npt.NDArray[np.uint64]
    outlets: tuple[str, ...]
    health: list[ExtractionHealth]

    def __len__(self) -> int:
        return len(self.group)


class PublicationWindow:
    """Collects stream items in commit order."""

    def __init__(self, max_articles: int = MAX_ARTICLES, max_outlets: int = MAX_OUTLETS) -> None:
        self._max_articles, self._max_outlets = max_articles, max_outlets
        self._arrived_ms, self._first_version, self._group = array("q"), array("Q"), array("Q")
        self._at_ms, self._outlet = array("q"), array("I")
        self._is_dated, self._problems = array("b"), array("H")
        self._outlets, self._names = {"": UNNAMED}, [""]  # by ``outlet_key``; as first spelled
        self._deleted: set[int] = set()

    def __len__(self) -> int:
        return len(self._group)

    @property
    def since_ms(self) -> int | None:
        """Arrival of the oldest version kept, in ms since 1970 UTC; None without any."""
        return self._arrived_ms[0] if self._arrived_ms else None

    def add(self, item: StreamItem) -> None:
        """Add an article, its new version, or its deletion."""
        if item.kind == "deleted":
            self._deleted.add(item.first_version)
            return
        if not item.space:  # replaced or deleted since: its record is gone
            return
        at_ms, basis = publication_time(item.published_at_ms, arrival_ms_of(item.first_version))
        self._arrived_ms.append(item.arrived_ms)
        self._first_version.append(item.first_version)
        group = None if item.keep and not item.has_text else item.canonical_first  # a headline may have news
        self._group.append(item.first_version if group is None else group)
        self._at_ms.append(at_ms)
        self._outlet.append(self._outlet_number(item.source))
        self._is_dated.append(basis == "published")
        self._problems.append(item.problems)
        if len(self) > self._max_articles + self._max_articles // 10:
            self._drop(len(self) - self._max_articles)

    def drop_before(self, arrived_ms: int) -> None:
        """Forget the versions that arrived before this time."""
        if count := bisect_left(self._arrived_ms, arrived_ms):
            self._drop(count)

    def publications(self) -> Publications:
        """The current versions of the articles that are not deleted."""
        first = np.array(self._first_version, np.uint64)
        _, last = np.unique(first[::-1], return_index=True)  # the newest entry of each article
        current = len(first) - 1 - last
        if self._deleted:
            gone = np.fromiter(self._deleted, np.uint64, len(self._deleted))
            current = current[~np.isin(first[current], gone)]
        first, group = first[current], np.array(self._group, np.uint64)[current]
        at_ms, outlet = np.array(self._at_ms, np.int64)[current], np.array(self._outlet, np.uint32)[current]
        problems = np.array(self._problems, np.uint16)[current]
        delay_ms = (first >> NUMBER_RANDOM_BITS).astype(np.int64) - at_ms
        health = health_of_outlets(outlet, first, problems, delay_ms, len(self._names))
        believed_ms = np.array([each.believed_ms for each in health])[outlet]
        is_claimed = (problems & Problem.late > 0) & (delay_ms > believed_ms)
        at_ms += delay_ms * is_claimed
        order = np.lexsort((first, at_ms, group))
        return Publications(
            group[order],
            outlet[order],
            at_ms[order],
            (np.array(self._is_dated, np.bool_)[current] & ~is_claimed)[order],
            first[order],
            tuple(self._names),
            health,
        )

    def _outlet_number(self, name: str) -> int:
        key = outlet_key(name)
        if key not in self._outlets and len(self._outlets) < self._max_outlets:
            self._outlets[key] = len(self._outlets)
            self._names.append(outlet_name(name))
        return self._outlets.get(key, UNNAMED)

    def _drop(self, count: int) -> None:
        """Forget the ``count`` oldest entries, and the names and deletions that only they used."""
        columns = (self._arrived_ms, self._first_version, self._group, self._at_ms)
        for column in (*columns, self._outlet, self._is_dated, self._problems):
            del column[:count]
        used = sorted(set(self._outlet) | {UNNAMED})
        renumbered = {old: new for new, old in enumerate(used)}
        self._names = [self._names[old] for old in used]
        self._outlets = {outlet_key(name): new for new, name in enumerate(self._names)}
        self._outlet = array("I", [renumbered[old] for old in self._outlet])
        self._deleted.intersection_update(self._first_version)
