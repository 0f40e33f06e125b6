"""When an article was published, and how well that is known. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.domain import ArticleRecord, TimeBasis, arrival_ms_of, publication_time


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
