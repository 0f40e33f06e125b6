"""Extraction health of outlets: problems of their newest articles, and how late their dates arrive. Pure."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.domain import LATE_MS, Problem
from aggregator.time_units import DAY_MS, HOUR_MS

PROBLEM_NAMES = tuple([str(problem.name) for problem in Problem])
# In the others no source fails: many state a day only, or are read once a day.
FAILING_NAMES = tuple(name for name in PROBLEM_NAMES if name not in ("late", "no_time", "undated"))
# An extractor that breaks shows within hours at a busy source, and a single article fails no source.
CHECKED_ARTICLES, MIN_CHECKED = 200, 10
FAILING_SHARE = 0.5
MAX_DELAY_MS = 30 * DAY_MS  # an older date is of an archive, or a default such as 1970, and no delay


class ExtractionHealth(msgspec.Struct, frozen=True, array_like=True):
    """How many of an outlet's newest articles were checked, and how many have each of ``PROBLEM_NAMES``.

    ``dated`` ones, not declared as past, were published ``least_ms`` to ``most_ms`` before, but two tenths;
    all within ``MAX_DELAY_MS``.
    """

    checked: int = 0
    counts: tuple[int, ...] = (0,) * len(PROBLEM_NAMES)
    dated: int = 0
    least_ms: int = 0
    most_ms: int = 0

    @property
    def shares(self) -> dict[str, float]:
        """The share of the articles with each problem, 0 to 1."""
        return {n: count / max(1, self.checked) for n, count in zip(PROBLEM_NAMES, self.counts, strict=False)}

    @property
    def frequent(self) -> list[str]:
        """The problems of at least ``FAILING_SHARE`` of the articles; [] below ``MIN_CHECKED``."""
        shares = self.shares if self.checked >= MIN_CHECKED else {}
        return [name for name, share in shares.items() if share >= FAILING_SHARE]

    @property
    def failing(self) -> list[str]:
        """Those of ``frequent`` that are ``FAILING_NAMES``."""
        return [name for name in self.frequent if name in FAILING_NAMES]

    @property
    def believed_ms(self) -> int:
        """How long before the arrival a date of the outlet is believed: up to twice what is usual for it."""
        return max(LATE_MS, 2 * self.most_ms if self.dated >= MIN_CHECKED else 0)

    @property
    def late_by_hours(self) -> float | None:
        """Hours by which all dates lie before the arrival, as local time without an offset does; or None."""
        is_steady = self.dated >= MIN_CHECKED and self.most_ms - self.least_ms <= HOUR_MS <= self.least_ms
        return self.least_ms * 2 // HOUR_MS / 2 if is_steady else None


def health_of_outlets(
    outlet: npt.NDArray[np.uint32],
    first_version: npt.NDArray[np.uint64],
    problems: npt.NDArray[np.uint16],
    delay_ms: npt.NDArray[np.int64],
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
    is_past = (delay_ms > MAX_DELAY_MS) | ((delay_ms > LATE_MS) & (problems & Problem.late == 0))
    dated = newest[~is_past[newest] & (problems[newest] & Problem.undated == 0)]
    dated = dated[np.lexsort((delay_ms[dated], outlet[dated]))]
    starts = outlet[dated].searchsorted(np.arange(outlet_count + 1))
    sizes = np.diff(starts)
    delays = np.append(delay_ms[dated], 0)  # of outlets at the end without any
    most, least = (delays[starts[:-1] + sizes * tenths // 10] * (sizes > 0) for tenths in (9, 1))
    rows = zip(*(column.tolist() for column in (checked, counts, sizes, least, most)), strict=True)
    return [ExtractionHealth(n, tuple(row), *of_dates) for n, row, *of_dates in rows]
