"""Breaking events of a table of dated headlines, by the detector of the service under virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from aggregator.events.detection.model import BurstRule
from aggregator_archive import dates, replay
from aggregator_archive.notebook.tables import Columns, article_fields, span_ms

EVENT_COLUMNS = (
    "id", "title", "detected_at", "first_seen", "last_seen", "size", "peak", "sources", "items", "terms",
    "status", "story_id", "merged_into", "reason",
)  # fmt: skip


class EventDetector:
    """Finds subjects that many outlets report at once.

    items       an event has more than this number of similar items within ``window``
    window      length of the time window
    min_sources distinct sources that an event needs
    sensitivity an event must have 4 / sensitivity times the items that are usual for its terms
    columns     field -> column, for columns with other names than the fields of an article
    """

    def __init__(
        self,
        *,
        items: int = 15,
        window: timedelta = timedelta(hours=4),
        min_sources: int = 1,
        sensitivity: float = 1.0,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self._rule = BurstRule(
            items=items, window_ms=span_ms("window", window), min_sources=min_sources, sensitivity=sensitivity
        )
        self._columns = dict(columns or {})

    def run(self, table: Any) -> Columns:
        """Return the events as columns, one value per event in order of detection (``EVENT_COLUMNS``).

        ``table``: as in ``tables.read_rows``, in any order; rows need a ``title`` and a ``published_at``, as
        for ``Deduplicator``. Rows without a title are left out. ``items`` are ids of rows, times are RFC 3339
        texts in UTC. The detector starts without history: the first days of a table teach it what is usual.
        Raises InvalidInput if no row is dated or has a title, and as ``read_rows``.
        """
        rows = list(dates.require_dated(article_fields(table, self._columns, ["title"], ["published_at"])))
        rows.sort(key=lambda row: replay.parse_time_ms(row.get("published_at")) or -1)
        events = list(replay.replay(rows, self._rule))
        return {name: [event[name] for event in events] for name in EVENT_COLUMNS}
