"""Extraction health of outlets: how many of their newest articles have each ``Problem``. Pure."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.domain import Problem

PROBLEM_NAMES = tuple([str(problem.name) for problem in Problem])
# In the others no source fails: many state a day only, or are read once a day.
FAILING_NAMES = tuple(name for name in PROBLEM_NAMES if name not in ("late", "no_time", "undated"))
# An extractor that breaks shows within hours at a busy source, and a single article fails no source.
CHECKED_ARTICLES, MIN_CHECKED = 200, 10
FAILING_SHARE = 0.5


class ExtractionHealth(msgspec.Struct, frozen=True, array_like=True):
    """How many of an outlet's newest articles were checked, and how many have each of ``PROBLEM_NAMES``."""

    checked: int = 0
    counts: tuple[int, ...] = (0,) * len(PROBLEM_NAMES)

    @property
    def shares(self) -> dict[str, float]:
        """The share of the articles with each problem, 0 to 1."""
        return {n: count / max(1, self.checked) for n, count in zip(PROBLEM_NAMES, self.counts, strict=True)}

    @property
    def failing(self) -> list[str]:
        """The ``FAILING_NAMES`` of at least ``FAILING_SHARE`` of the articles; [] below ``MIN_CHECKED``."""
        shares = self.shares if self.checked >= MIN_CHECKED else {}
        return [name for name in FAILING_NAMES if shares.get(name, 0.0) >= FAILING_SHARE]


def health_of_outlets(
    outlet: npt.NDArray[np.uint32],
    first_version: npt.NDArray[np.uint64],
    problems: npt.NDArray[np.uint16],
    outlet_count: int,
) -> list[ExtractionHealth]:
    """The health of each outlet number below ``outlet_count``, from arrays of one length."""
    order = np.lexsort((first_version, outlet))
    sorted_outlets = outlet[order]
    ends = sorted_outlets.searchsorted(np.arange(outlet_count), side="right")
    newest = order[ends[sorted_outlets] - np.arange(len(order)) <= CHECKED_ARTICLES]
    checked = np.bincount(outlet[newest], minlength=outlet_count)
    counts = np.zeros((outlet_count, len(PROBLEM_NAMES)), np.int64)
    np.add.at(counts, outlet[newest], problems[newest, None] >> np.arange(len(PROBLEM_NAMES)) & 1)
    return [ExtractionHealth(n, tuple(row)) for n, row in zip(checked.tolist(), counts.tolist(), strict=True)]
