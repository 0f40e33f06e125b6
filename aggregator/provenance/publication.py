"""When an article was published, and how well that is known. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aggregator.domain import ArticleRecord, arrival_ms_of
from aggregator.time_units import DAY_MS

# published: the time that the outlet states; day: it states a day only; arrived: when the crawler sent it.
TimeBasis = Literal["published", "day", "arrived"]


@dataclass(frozen=True, slots=True)
class Publication:
    """An article with the time (ms since 1970 UTC) that its order is judged by."""

    record: ArticleRecord
    at_ms: int
    basis: TimeBasis

    @classmethod
    def of(cls, record: ArticleRecord) -> Publication:
        """The publication of a stored article."""
        at_ms, basis = publication_time(record.published_at_ms, arrival_ms_of(record.first_version))
        return cls(record, at_ms, basis)

    @property
    def source(self) -> str:
        """The outlet, "" if unknown."""
        return self.record.source

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: by time, at equal times by arrival."""
        return self.at_ms, self.record.first_version


def publication_time(published_ms: int | None, arrived_ms: int) -> tuple[int, TimeBasis]:
    """The time to order an article by, and its basis.

    ``arrived_ms``: arrival of the first version. An article without a time, or with one after its arrival
    (a wrong clock or a scheduled time), was published by its arrival. Midnight UTC exactly is a day without a
    time: the arrival is used if it was on that day.
    """
    if published_ms is None or published_ms > arrived_ms:
        return arrived_ms, "arrived"
    if published_ms % DAY_MS == 0:
        return (arrived_ms, "arrived") if arrived_ms < published_ms + DAY_MS else (published_ms, "day")
    return published_ms, "published"
